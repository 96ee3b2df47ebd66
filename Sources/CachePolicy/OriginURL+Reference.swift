import HTTPModel

/// What a reference means to whoever found it in an answer about this URL (RFC 3986 §5.2).
extension OriginURL {
    /// - Returns: nil where it leads to what cannot be fetched: another scheme, no host, characters that no URL has.
    package func resolving(_ reference: String) -> OriginURL? {
        let reference = PercentEncoding.encodingNonASCII(ASCII.trimmed(reference.utf8)).prefix { $0 != "#" }
        if Self.hasScheme(reference) { return (try? OriginURL(url: String(reference)))?.withoutDotSegments }
        if reference.hasPrefix("//") {
            return (try? OriginURL(url: scheme.rawValue + ":" + reference))?.withoutDotSegments
        }
        let path = pathAndQuery.prefix { $0 != "?" }
        let target: Substring
        switch reference.first {
        case nil: return self
        case "/": target = reference
        case "?": target = path + reference
        // §5.2.3: in place of what follows the last slash.
        default: target = path.prefix(through: path.lastIndex(of: "/") ?? path.startIndex) + reference
        }
        return (try? OriginURL(url: scheme.rawValue + "://" + authority + target))?.withoutDotSegments
    }

    /// §4.2: a colon before the first slash; `./a:b` is written where a path is meant.
    private static func hasScheme(_ reference: Substring) -> Bool {
        reference.prefix { $0 != "/" && $0 != "?" }.contains(":")
    }

    /// §5.2.4, on the path alone: dots in a query mean nothing.
    private var withoutDotSegments: OriginURL {
        let path = pathAndQuery.prefix { $0 != "?" }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var kept: [Substring] = []
        for segment in segments where segment != "." {
            if segment != ".." { kept.append(segment) } else { _ = kept.popLast() }
        }
        // What ends in a dot segment names a directory.
        if let last = segments.last, last == "." || last == ".." { kept.append("") }
        return OriginURL(
            scheme: scheme, host: host, port: port,
            pathAndQuery: "/" + kept.joined(separator: "/") + pathAndQuery.dropFirst(path.count))
    }
}
