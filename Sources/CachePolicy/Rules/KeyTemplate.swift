import HTTPModel

/// A template for the cache keys of resources, such as `https://cdn.example.org{path}`: several URLs may share one
/// resource.
///
/// A key is an http or https URL, so that people can name the resource by it. This type ensures that every URL
/// yields a key, and that two sites can share one only if the template contains neither host nor scheme.
package struct KeyTemplate: Sendable, Equatable {
    private enum Piece: Sendable, Equatable {
        case text(String)
        case placeholder(Placeholder)
    }

    private enum Placeholder: String, CaseIterable {
        case scheme
        /// With its port, unless that is the scheme's default.
        case host
        case path, query

        static let list = "{scheme}, {host}, {path} and {query}"
    }

    private let pieces: [Piece]

    package init(_ text: String) throws(RuleError) {
        pieces = Self.joined(try Self.pieces(text))
        try checkAuthority(text)
        try checkBounds(text)
        let sample = expanded(scheme: "https", host: "example.org", path: "/film.mp4", query: "?a=1")
        guard !sample.contains("#") else {
            throw RuleError("'\(text)' is not a key; remove the #, as a key has no fragment")
        }
        do throws(OriginURLError) { _ = try OriginURL(url: sample) } catch {
            throw RuleError("'\(text)' is not a key: \(error.reason)")
        }
    }

    private static func pieces(_ text: String) throws(RuleError) -> [Piece] {
        var (pieces, rest): ([Piece], Substring) = ([], text[...])
        while !rest.isEmpty {
            let literal = rest.prefix { $0 != "{" }
            rest = rest[literal.endIndex...]
            guard !literal.contains("}") else {
                throw RuleError("'\(text)' has a } without a {; the placeholders are \(Placeholder.list)")
            }
            if !literal.isEmpty { pieces.append(.text(String(literal))) }
            guard !rest.isEmpty else { break }
            guard let end = rest.firstIndex(of: "}") else {
                throw RuleError("'\(text)' has a { without a }; the placeholders are \(Placeholder.list)")
            }
            let name = rest[..<end].dropFirst()
            guard let placeholder = Placeholder(rawValue: String(name)) else {
                throw RuleError("there is no {\(name)}; the placeholders are \(Placeholder.list)")
            }
            pieces.append(.placeholder(placeholder))
            rest = rest[end...].dropFirst()
        }
        return pieces
    }

    /// A path begins with its own `/` and a query with its own `?`: one that precedes the placeholder is the same
    /// one.
    private static func joined(_ pieces: [Piece]) -> [Piece] {
        var pieces = pieces
        for index in pieces.indices.dropLast() {
            guard case .text(let text) = pieces[index], case .placeholder(let next) = pieces[index + 1] else {
                continue
            }
            if next == .path && text.hasSuffix("/") && !text.hasSuffix("://") || next == .query && text.hasSuffix("?") {
                pieces[index] = .text(String(text.dropLast()))
            }
        }
        return pieces.filter { $0 != .text("") }
    }

    /// A host fills the place between `//` and the path, because it may be an address in brackets and have a port.
    private func checkAuthority(_ text: String) throws(RuleError) {
        // Characters that stand for the placeholders and occur in no text.
        let shape = expanded(scheme: "\u{1}", host: "\u{2}", path: "/\u{3}", query: "?\u{4}")
        guard let start = shape.firstRange(of: "://"),
            ["http", "https", "\u{1}"].contains(shape[..<start.lowerBound].lowercased())
        else {
            throw RuleError("'\(text)' is not a key; begin it with http://, https:// or {scheme}://")
        }
        let authority = shape[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard authority == "\u{2}" || !authority.contains(where: { "\u{1}\u{2}".contains($0) }) else {
            throw RuleError(
                "'\(text)' is not a key for every host; write {host} as the whole host or in the path, such as https://all.example/{host}{path}"
            )
        }
    }

    /// Checks that host and scheme are separated from their surroundings: with `/x{path}{host}`, or after a query
    /// that may contain slashes, one site could produce another site's key.
    private func checkBounds(_ text: String) throws(RuleError) {
        for (index, piece) in pieces.enumerated()
        where piece == .placeholder(.host) || piece == .placeholder(.scheme) && index > 0 {
            let before = pieces[..<index]
            let isFirst = !before.contains(.placeholder(.path)) && !before.contains(.placeholder(.query))
            guard isFirst, case .text(let start)? = before.last, start.hasSuffix("/"), endsSegment(index) else {
                throw RuleError(
                    "'\(text)' could give two sites the same key; write {host} and {scheme} between slashes, before {path} and {query}, "
                        + "such as https://all.example/{host}{path}")
            }
        }
    }

    private func endsSegment(_ index: Int) -> Bool {
        guard index + 1 < pieces.endIndex else { return true }
        switch pieces[index + 1] {
        case .text(let next): return next.hasPrefix("/") || next.hasPrefix("?")
        case .placeholder(let next): return next == .path || next == .query
        }
    }

    var namesHost: Bool { pieces.contains(.placeholder(.host)) }

    /// The scheme that all keys share; nil if the template contains the URL's scheme.
    var scheme: OriginURL.Scheme? {
        guard !pieces.contains(.placeholder(.scheme)), case .text(let start)? = pieces.first else { return nil }
        return OriginURL.Scheme(rawValue: ASCII.lowercased(String(start.prefix { $0 != ":" })))
    }

    private func expanded(scheme: String, host: String, path: some StringProtocol, query: String) -> String {
        pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .placeholder(.scheme): scheme
            case .placeholder(.host): host
            case .placeholder(.path): String(path)
            case .placeholder(.query): query
            }
        }.joined()
    }

    /// - Parameter query: the remaining query of the URL, with its `?`, or empty.
    func key(of url: OriginURL, query: String) -> CacheKey {
        let text = expanded(scheme: url.scheme.rawValue, host: url.authority, path: url.path, query: query)
        return (try? OriginURL(url: text))?.cacheKey ?? url.cacheKey
    }
}
