import Testing

/// Every link in the documents works. Addresses on the web are not requested.
@Suite struct LinkTests {
    @Test(arguments: Documents.all)
    func linksLeadSomewhere(path: String) throws {
        let page = try Documents.page(path)
        for link in page.links where !link.target.contains(/^[a-z]+:/) {
            if let fault = try fault(of: link.target, in: path) { Issue.record("\(path):\(link.line): \(fault)") }
        }
    }

    /// The mistake in a link, or nil.
    private func fault(of target: String, in path: String) throws -> String? {
        let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let file = parts[0].isEmpty ? path : resolved(parts[0], against: path)
        guard let file else { return "\(target) leads out of the repository" }
        guard Documents.exists(file) else { return "there is no \(file)" }
        guard parts.count == 2, file.hasSuffix(".md") else { return nil }
        let anchors = try Documents.page(file).anchors
        return anchors.contains(parts[1]) ? nil : "there is no #\(parts[1]) in \(file)"
    }

    private func resolved(_ target: String, against path: String) -> String? {
        var parts = path.split(separator: "/").dropLast().map(String.init)
        for part in target.split(separator: "/") where part != "." {
            if part != ".." {
                parts.append(String(part))
            } else if parts.popLast() == nil {
                return nil
            }
        }
        return parts.joined(separator: "/")
    }

    @Test func readmeIsShort() throws {
        let words = try Documents.text("README.md").split(whereSeparator: \.isWhitespace)
        #expect(words.count <= 600)
    }
}
