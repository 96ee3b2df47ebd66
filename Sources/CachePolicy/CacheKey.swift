import HTTPModel

/// What a resource is found by: a URL in the one spelling that all its spellings share (RFC 3986 §6.2.2 and §6.2.3).
///
/// Scheme and host are in lower case, a default port and a fragment are gone, percent-encoding is normalised. Dot
/// segments are left alone: origins differ in what they make of them. Always ASCII.
package struct CacheKey: Sendable, Hashable {
    package let text: String

    /// - Parameter text: a normalised URL, as `OriginURL.cacheKey` makes them and the index keeps them; taken as it is.
    package init(text: String) { self.text = text }
}

extension OriginURL {
    package var cacheKey: CacheKey {
        // Most URLs have nothing encoded: then the spelling is normal already.
        guard pathAndQuery.utf8.contains(UInt8(ascii: "%")) else { return CacheKey(text: absolute) }
        return CacheKey(text: scheme.rawValue + "://" + authority + PercentEncoding.normalized(pathAndQuery))
    }
}
