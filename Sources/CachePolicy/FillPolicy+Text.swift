import HTTPModel

extension FillPolicy {
    /// The accepted spellings.
    package static let forms = "read, ahead, ahead 32MiB, end or whole"
    /// A longer distance means the end of any resource.
    private static let furthest: Int64 = 1 << 40

    /// Parses `read`, `ahead`, `ahead SIZE`, `end` or `whole`.
    package init(_ text: String) throws(RuleError) {
        let words = text.split(separator: " ", maxSplits: 1)
        switch (words.first, words.dropFirst().first) {
        case ("read", nil): self = .read
        case ("ahead", nil): self = .standard
        case ("ahead", let size?): self = .ahead(try Self.distance(String(size)))
        case ("end", nil): self = .end
        case ("whole", nil): self = .whole
        default: throw RuleError("'\(text)' is not a fill policy; write \(Self.forms)")
        }
    }

    private static func distance(_ text: String) throws(RuleError) -> Int64 {
        guard let size = ByteSize(text) else { throw RuleError("'\(text)' is not a size; write it like ahead 32MiB") }
        try check(distance: size.bytes)
        return size.bytes
    }

    /// - Throws: if the distance is out of range.
    package static func check(distance bytes: Int64) throws(RuleError) {
        guard bytes > 0 else { throw RuleError("ahead 0 means read; write read") }
        guard bytes <= furthest else {
            throw RuleError("that far ahead means end; write end, or at most ahead 1TiB")
        }
    }
}
