import HTTPModel

/// Which fields of a response stay with it: in the index, and in memory for as long as its resource is open. An origin
/// must not choose how much memory that is.
extension HeaderFields {
    /// For names, values and the lines themselves.
    package static let keptBytes = 8 << 10
    /// What a line costs beside its text.
    private static let lineBytes = 64

    /// What says what the content is, for how long it holds, and what a page may do with it. Without these a response
    /// would be another one.
    private static let essential: FieldNames = [
        "access-control-allow-credentials", "access-control-allow-origin", "access-control-expose-headers",
        "cache-control", "content-disposition",
        "content-encoding", "content-language", "content-location", "content-security-policy", "content-type",
        "cross-origin-embedder-policy",
        "cross-origin-opener-policy", "cross-origin-resource-policy", "date", "etag", "expires", "last-modified",
        "permissions-policy", "pragma",
        "referrer-policy", "vary", "x-content-type-options", "x-frame-options",
    ]

    /// Whether all that must not be missing has room.
    package var canBeKept: Bool {
        lines.lazy.filter(Self.isEssential).map(Self.bytes).reduce(0, +) <= Self.keptBytes
    }

    /// The essential ones, and of the others as many, in their order, as there is room for.
    package var worthKeeping: HeaderFields {
        var left = Self.keptBytes - lines.lazy.filter(Self.isEssential).map(Self.bytes).reduce(0, +)
        return HeaderFields(
            lines.filter { line in
                if Self.isEssential(line) { return true }
                guard Self.bytes(line) <= left else { return false }
                left -= Self.bytes(line)
                return true
            })
    }

    private static func isEssential(_ line: Line) -> Bool { essential.contains(line.name) }

    private static func bytes(_ line: Line) -> Int { line.name.utf8.count + line.value.utf8.count + lineBytes }
}
