/// A page of the guide with generated parts, each between two comments:
///
///     <!-- begin generated: settings -->
///     ...
///     <!-- end generated -->
package struct GeneratedParts {
    private let page: String

    private static let begin = "<!-- begin generated: "
    private static let end = "<!-- end generated -->"

    package init(_ page: String) { self.page = page }

    /// A part with an unknown name, or one without an end.
    package struct BadPart: Error, CustomStringConvertible {
        let name: String
        let reason: String

        package var description: String { "the generated part '\(name)' \(reason)" }
    }

    /// The names of the parts, in page order.
    package var names: [String] {
        page.split(separator: "\n").compactMap(Self.name)
    }

    /// The page with all parts generated again.
    /// - Parameter make: generates a part by its name; returns nil for an unknown one.
    package func filled(_ make: (String) -> String?) throws(BadPart) -> String {
        var (lines, open): ([String], String?) = ([], nil)
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if let name = Self.name(line) {
                guard open == nil else { throw BadPart(name: open ?? name, reason: "has no end: write \(Self.end)") }
                guard let text = make(name) else { throw BadPart(name: name, reason: "is unknown: remove it") }
                open = name
                lines += [String(line), "", text, ""]
            } else if line == Self.end {
                open = nil
                lines.append(String(line))
            } else if open == nil {
                lines.append(String(line))
            }
        }
        if let open { throw BadPart(name: open, reason: "has no end: write \(Self.end)") }
        return lines.joined(separator: "\n")
    }

    private static func name(_ line: Substring) -> String? {
        guard line.hasPrefix(begin), line.hasSuffix(" -->") else { return nil }
        return String(line.dropFirst(begin.count).dropLast(4))
    }
}
