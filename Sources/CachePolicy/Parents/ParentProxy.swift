import CXXHash
import HTTPModel

/// A *parent*: another cache that is asked before the origin, as an HTTP proxy (RFC 9110 §3.7). Its address is
/// configured, so it may be a private one.
package struct ParentProxy: Sendable, Hashable {
    /// `http://host[:port]/`
    package let url: String

    /// - Parameter text: `http://host[:port]`, perhaps with a slash behind it.
    package init(_ text: String) throws(RuleError) {
        guard let url = try? OriginURL(url: text), url.scheme == .http, url.pathAndQuery == "/" else {
            throw RuleError("'\(text)' is not the address of a parent; write it like http://10.0.0.5:7335")
        }
        self.url = url.absolute
    }

    /// The setting's text.
    package var text: String { String(url.dropLast()) }

    /// The most parents of a list.
    package static let most = 64

    /// The parents of a list in the configuration.
    /// - Throws: for an entry that is not a parent or is listed twice, and for too many of them.
    package static func list(_ texts: [String]) throws(RuleError) -> [ParentProxy] {
        guard texts.count <= most else {
            throw RuleError("\(texts.count) parents are too many; write at most \(most)")
        }
        let parents = try texts.map { text throws(RuleError) in try ParentProxy(text) }
        var known: Set<ParentProxy> = []
        for parent in parents where !known.insert(parent).inserted {
            throw RuleError("\(parent.text) is listed twice; name each parent once")
        }
        return parents
    }
}

extension [ParentProxy] {
    /// The order in which they are asked for a resource: the one with the highest hash of address and key first
    /// (rendezvous hashing). So a tier of parents holds each resource once, and a parent that is added or lost moves
    /// only its share.
    package func order(for key: CacheKey) -> [ParentProxy] {
        guard count > 1 else { return self }
        let weighed = map { (parent: $0, weight: Self.weight(of: $0, key)) }
        return weighed.sorted { ($0.weight, $0.parent.url) > ($1.weight, $1.parent.url) }.map(\.parent)
    }

    private static func weight(of parent: ParentProxy, _ key: CacheKey) -> UInt64 {
        [UInt8]("\(parent.url) \(key.text)".utf8).withUnsafeBytes { XXH3_64bits($0.baseAddress, $0.count) }
    }
}
