import HTTPModel

/// Which fields of a response are stored with it: in the index, and in memory while its resource is open. An origin
/// must not choose how much memory they take.
extension HeaderFields {
    /// The limit for names, values and the overhead of lines.
    package static let keptBytes = 8 << 10
    /// The overhead of a line beside its text.
    private static let lineBytes = 64

    /// Fields that state what the content is, its lifetime, and what a page may do with it. Without them, it would
    /// be a different response.
    private static let essential: FieldNames = [
        "access-control-allow-credentials", "access-control-allow-origin", "access-control-expose-headers",
        "cache-control", "content-disposition",
        "content-encoding", "content-language", "content-location", "content-security-policy", "content-type",
        "cross-origin-embedder-policy",
        "cross-origin-opener-policy", "cross-origin-resource-policy", "date", "etag", "expires", "last-modified",
        "permissions-policy", "pragma",
        "referrer-policy", "vary", "x-content-type-options", "x-frame-options",
    ]

    /// Without the fields that a shared cache must not store (RFC 9111 §5.2.2.7).
    package func storable(under terms: CacheTerms) -> HeaderFields {
        guard terms.kind == .shared else { return self }
        var fields = self
        for name in ResponseDirectives(self, terms).unstoredFields { fields.remove(name) }
        return fields
    }

    /// Removes fields that concern only the connection to the origin, fields that this proxy sets itself, and malformed
    /// lines.
    package mutating func removeUnfitForClients() {
        removeHopByHop { Self.ofTheProxy.contains($0.name) || $0.isMalformed }
        boundCacheStatus()
    }

    /// The same, and fields about ranges: for parts this proxy sets its own (RFC 9110 §14.4).
    package mutating func removeUnstored() {
        removeHopByHop { Self.unstored.contains($0.name) || $0.isMalformed }
        boundCacheStatus()
    }

    private static let ofTheProxy: FieldNames = ["content-length", "age", "reelcache-source", "set-cookie"]

    private static let unstored: FieldNames = [
        "content-length", "age", "reelcache-source", "set-cookie", "accept-ranges", "content-range",
    ]

    /// Whether all essential fields fit.
    package var canBeKept: Bool {
        fits || lines.lazy.filter(Self.isEssential).map(Self.bytes).reduce(0, +) <= Self.keptBytes
    }

    /// The essential fields, and as many of the others as fit, in their order.
    package var worthKeeping: HeaderFields {
        if fits { return self }
        var left = Self.keptBytes - lines.lazy.filter(Self.isEssential).map(Self.bytes).reduce(0, +)
        return HeaderFields(
            lines.filter { line in
                if Self.isEssential(line) { return true }
                guard Self.bytes(line) <= left else { return false }
                left -= Self.bytes(line)
                return true
            })
    }

    private var fits: Bool { lines.lazy.map(Self.bytes).reduce(0, +) <= Self.keptBytes }

    private static func isEssential(_ line: Line) -> Bool {
        essential.contains(line.name) || TargetedField.isOne(line.name)
    }

    private static func bytes(_ line: Line) -> Int { line.name.utf8.count + line.value.utf8.count + lineBytes }
}
