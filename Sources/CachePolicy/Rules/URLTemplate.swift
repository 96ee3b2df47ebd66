import HTTPModel

/// A template for URLs, such as `https://api.example{path}`, into which the parts of a requested URL are put.
///
/// It is an http or https URL with a placeholder for some of its parts; a host has a place of its own, so that the
/// result is always a URL.
struct URLTemplate: Sendable, Equatable {
    enum Piece: Sendable, Equatable {
        case text(String)
        case placeholder(Placeholder)
    }

    enum Placeholder: String, CaseIterable {
        case scheme
        /// With its port, unless that is the scheme's default.
        case host
        case path, query

        static let list = "{scheme}, {host}, {path} and {query}"
    }

    let pieces: [Piece]

    /// - Parameter use: what the URLs are for, such as `a key`, for messages.
    init(_ text: String, as use: String) throws(RuleError) {
        pieces = Self.joined(try Self.pieces(text))
        try checkAuthority(text, use)
        let sample = expanded(scheme: "https", host: "example.org", path: "/film.mp4", query: "?a=1")
        guard !sample.contains("#") else {
            throw RuleError("'\(text)' is not \(use); remove the #, as \(use) has no fragment")
        }
        do throws(OriginURLError) { _ = try OriginURL(url: sample) } catch {
            throw RuleError("'\(text)' is not \(use): \(error.reason)")
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
    private func checkAuthority(_ text: String, _ use: String) throws(RuleError) {
        // Characters that stand for the placeholders and occur in no text.
        let shape = expanded(scheme: "\u{1}", host: "\u{2}", path: "/\u{3}", query: "?\u{4}")
        guard let start = shape.firstRange(of: "://"),
            ["http", "https", "\u{1}"].contains(shape[..<start.lowerBound].lowercased())
        else {
            throw RuleError("'\(text)' is not \(use); begin it with http://, https:// or {scheme}://")
        }
        let authority = shape[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard authority == "\u{2}" || !authority.contains(where: { "\u{1}\u{2}".contains($0) }) else {
            throw RuleError(
                "'\(text)' is not \(use) for every host; write {host} as the whole host or in the path, such as https://all.example/{host}{path}"
            )
        }
    }

    var namesHost: Bool { pieces.contains(.placeholder(.host)) }

    /// The scheme that all URLs share; nil if the template contains the requested URL's scheme.
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

    /// - Parameters:
    ///   - url: the requested URL.
    ///   - query: stands for `{query}`: with its `?`, or empty.
    /// - Returns: nil if the result would not be a URL, such as one that is too long.
    func url(for url: OriginURL, query: String) -> OriginURL? {
        try? OriginURL(url: expanded(scheme: url.scheme.rawValue, host: url.authority, path: url.path, query: query))
    }
}
