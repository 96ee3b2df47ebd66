import HTTPModel

/// A template for the cache keys of resources, such as `https://cdn.example.org{path}`: several URLs may share one
/// resource.
///
/// A key is an http or https URL, so that people can name the resource by it. This type ensures that every URL
/// yields a key, and that two sites can share one only if the template contains neither host nor scheme.
package struct KeyTemplate: Sendable, Equatable {
    let template: URLTemplate

    package init(_ text: String) throws(RuleError) {
        template = try URLTemplate(text, as: "a key")
        try checkBounds(text)
    }

    /// Checks that host and scheme are separated from their surroundings: with `/x{path}{host}`, or after a query
    /// that may contain slashes, one site could produce another site's key.
    private func checkBounds(_ text: String) throws(RuleError) {
        let pieces = template.pieces
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
        guard index + 1 < template.pieces.endIndex else { return true }
        switch template.pieces[index + 1] {
        case .text(let next): return next.hasPrefix("/") || next.hasPrefix("?")
        case .placeholder(let next): return next == .path || next == .query
        }
    }

    /// - Parameter query: the remaining query of the URL, with its `?`, or empty.
    func key(of url: OriginURL, query: String) -> CacheKey {
        template.url(for: url, query: query)?.cacheKey ?? url.cacheKey
    }
}
