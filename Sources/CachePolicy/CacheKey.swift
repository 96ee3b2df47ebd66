import HTTPModel

/// The name under which a resource is found: its URL in one normalised spelling (RFC 3986 §6.2.2 and §6.2.3).
///
/// Scheme and host are in lower case, a default port and a fragment are removed, percent-encoding is normalised.
/// Dot segments are left alone, because origins interpret them differently. Always ASCII.
package struct CacheKey: Sendable, Hashable {
    package let text: String
    /// Of the text: a key is looked up for each of its requests.
    private let textHash: Int

    /// - Parameter text: a normalised URL, as `OriginURL.cacheKey` returns it and the index stores it; not checked.
    package init(text: String) { (self.text, textHash) = (text, text.hashValue) }

    package func hash(into hasher: inout Hasher) { hasher.combine(textHash) }

    package static func == (first: CacheKey, second: CacheKey) -> Bool {
        first.textHash == second.textHash && first.text == second.text
    }
}

extension OriginURL {
    package var cacheKey: CacheKey { CacheKey(text: hasEncoded ? normalized.absolute : absolute) }
}
