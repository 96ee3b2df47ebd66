/// RFC 3986 by the letter, for tests alone: its own parser (appendix B), resolution (§5.2.2), merging (§5.2.3),
/// removal of dot segments (§5.2.4) and recomposition (§5.3).
struct StrictURL: Equatable {
    var scheme: String?
    var authority: String?
    var path = ""
    var query: String?
    var fragment: String?

    init(_ text: String) {
        var rest = Substring(text)
        if let mark = rest.firstIndex(of: "#") {
            fragment = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let colon = rest.firstIndex(of: ":"), !rest[..<colon].isEmpty, !rest[..<colon].contains("/") {
            scheme = String(rest[..<colon])
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            authority = String(rest.prefix { $0 != "/" })
            rest = rest.drop { $0 != "/" }
        }
        path = String(rest)
    }

    func resolving(_ reference: String) -> StrictURL {
        let reference = StrictURL(reference)
        var target = self
        target.fragment = reference.fragment
        if reference.scheme != nil {
            target = reference
            target.path = Self.removeDotSegments(reference.path)
        } else if reference.authority != nil {
            target.authority = reference.authority
            target.path = Self.removeDotSegments(reference.path)
            target.query = reference.query
        } else if reference.path.isEmpty {
            target.query = reference.query ?? query
        } else {
            target.path = Self.removeDotSegments(
                reference.path.hasPrefix("/") ? reference.path : merged(reference.path))
            target.query = reference.query
        }
        return target
    }

    private func merged(_ reference: String) -> String {
        if authority != nil, path.isEmpty { return "/" + reference }
        guard let slash = path.lastIndex(of: "/") else { return reference }
        return path[...slash] + reference
    }

    static func removeDotSegments(_ path: String) -> String {
        var input = Substring(path), output = ""
        while !input.isEmpty {
            if input.hasPrefix("../") {
                input = input.dropFirst(3)
            } else if input.hasPrefix("./") {
                input = input.dropFirst(2)
            } else if input.hasPrefix("/./") {
                input = input.dropFirst(2)
            } else if input == "/." {
                input = "/"
            } else if input.hasPrefix("/../") || input == "/.." {
                input = "/" + input.dropFirst(4)
                output = String(output.prefix(upTo: output.lastIndex(of: "/") ?? output.startIndex))
            } else if input == "." || input == ".." {
                input = ""
            } else {
                let segment =
                    input.first == "/"
                    ? "/" + input.dropFirst().prefix { $0 != "/" } : String(input.prefix { $0 != "/" })
                output += segment
                input = input.dropFirst(segment.count)
            }
        }
        return output
    }

    var text: String {
        (scheme.map { $0 + ":" } ?? "") + (authority.map { "//" + $0 } ?? "") + path + (query.map { "?" + $0 } ?? "")
            + (fragment.map { "#" + $0 } ?? "")
    }
}
