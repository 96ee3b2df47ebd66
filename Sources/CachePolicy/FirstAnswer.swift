import HTTPModel

/// Which bytes the first answer about a resource brings, and what becomes of them.
package struct FirstAnswer: Sendable, Equatable {
    package enum Problem: Error, Equatable {
        /// The answer cannot be what was asked for.
        case unusable(String)
    }

    /// The bytes that the body brings; the upper end is `Int64.max` where it is not told.
    package let range: Range<Int64>
    /// The resource's length; nil where it is not told.
    package let total: Int64?
    package let isPart: Bool

    /// - Parameters:
    ///   - asked: what was asked for; nil for the whole.
    ///   - longest: tables grow with the length; an origin must not choose how much memory that is. In bytes.
    package init(_ answer: OriginAnswer, asked: ByteRangeSpec?, longest: Int64) throws(Problem) {
        isPart = answer.status == 206
        total = answer.total
        if isPart {
            // RFC 9110 §15.3.7.1
            guard let part = answer.contentRange?.range else { throw .unusable(OriginAnswer.lacksRange) }
            guard Self.isExpected(part, of: total, asked) else {
                throw .unusable(
                    "it answers with bytes \(part.lowerBound)-\(part.upperBound -| 1), which were not asked for")
            }
            range = part
        } else {
            range = 0..<(total ?? .max) // no trap: a declared length is none below 0
        }
        let length = knownLength ?? 0
        if length > longest { throw .unusable("a length of \(length) bytes is more than can be handled") }
    }

    private static func isExpected(_ range: Range<Int64>, of total: Int64?, _ asked: ByteRangeSpec?) -> Bool {
        switch asked {
        case nil: range.lowerBound == 0
        case .bounded(let first, let last): range.lowerBound == first && range.upperBound <= last +| 1
        case .from(let first): range.lowerBound == first
        // What is missing of the suffix would never come.
        case .suffix(let count):
            total.map { range.upperBound == $0 && range.upperBound -| range.lowerBound >= min(count, $0) } ?? true
        }
    }

    /// The length of what comes, as far as it is told: of the whole, else up to the last byte.
    package var knownLength: Int64? { total ?? (range.upperBound < .max ? range.upperBound : nil) }

    /// Whether it is kept for others.
    /// - Parameters:
    ///   - condition: `Combining.condition` of its fields.
    package func isKept(_ storing: Storing, condition: String?) -> Bool {
        // A part of an unknown whole is nobody's but the one's who asked for it; and what cannot be told from another
        // version (RFC 9110 §15.3.7.3) is kept only where it comes as a whole, in one transfer.
        storing == .store && (total != nil || !isPart) && (condition != nil || !isPart)
    }

    /// Whether what it brings comes in no other way.
    /// - Parameters:
    ///   - isStored: whether it goes to where others find it.
    ///   - isAskedForPart: whether a part was asked for, so that a whole says that parts are not to be had.
    package func isUnresumable(isStored: Bool, condition: String?, isAskedForPart: Bool) -> Bool {
        !isStored || condition == nil || total == nil || !isPart && isAskedForPart
    }

    /// The first byte that is kept: a suffix begins anywhere, and bytes before its first whole chunk are let go.
    package func start(_ geometry: ChunkGeometry) -> Int64 {
        guard range.lowerBound > 0 else { return 0 }
        return geometry.chunkStart(geometry.chunk(at: range.lowerBound +| (geometry.chunkSize -| 1)))
    }
}

extension OriginAnswer {
    static let lacksRange = "a 206 without a usable Content-Range"
}
