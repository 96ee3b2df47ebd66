import HTTPModel

/// How much of a resource to fetch beyond the bytes that players request.
public enum FillMode: Sendable, Equatable {
    /// Only the requested bytes.
    case read
    /// A read-ahead window of this many bytes beyond the furthest reader, up to 1 TiB.
    case ahead(bytes: Int64)
    /// To the end of the resource, even if every reader disconnects.
    case end
    /// The whole resource, from its first byte.
    case whole
}

extension FillMode {
    /// Whether more is fetched than what is read, however far a player gets.
    package var readsOn: Bool {
        switch self {
        case .read, .ahead: false
        case .end, .whole: true
        }
    }

    package static let standard = FillMode.ahead(bytes: 32 << 20)

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
        case ("ahead", let size?): self = .ahead(bytes: try Self.distance(String(size)))
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

    /// The setting's text.
    package var text: String {
        switch self {
        case .read: "read"
        case .ahead(let bytes): "ahead \(ByteSize.exactText(bytes))"
        case .end: "end"
        case .whole: "whole"
        }
    }

    /// - Throws: if the distance is out of range.
    package func checked() throws(RuleError) -> FillMode {
        if case .ahead(let bytes) = self { try Self.check(distance: bytes) }
        return self
    }

    private static func check(distance bytes: Int64) throws(RuleError) {
        guard bytes > 0 else { throw RuleError("ahead 0 means read; write read") }
        guard bytes <= furthest else {
            throw RuleError("that far ahead means end; write end, or at most ahead 1TiB")
        }
    }
}
