import HTTPModel

/// The bytes that the first answer about a resource carries, and how they are used.
package struct FirstAnswer: Sendable, Equatable {
    package enum Problem: Error, Equatable {
        /// The answer does not match the request.
        case unusable(String)
    }

    /// The bytes of the body that are used; the upper bound is `Int64.max` if unknown.
    package let range: Range<Int64>
    /// The resource's length; nil if unknown.
    package let total: Int64?
    package let isPart: Bool

    /// - Parameters:
    ///   - requested: the requested range; nil for the whole resource.
    ///   - longest: the greatest accepted length, in bytes. Tables grow with the length, and an origin must not
    ///     choose how much memory they take.
    package init(_ answer: OriginAnswer, requested: ByteRangeSpec?, longest: Int64) throws(Problem) {
        isPart = answer.status == 206
        total = answer.total
        if isPart {
            // RFC 9110 §15.3.7.1
            guard let part = answer.contentRange?.range else { throw .unusable(OriginAnswer.lacksRange) }
            guard Self.isExpected(part, of: total, requested) else {
                throw .unusable(
                    "it answers with bytes \(part.lowerBound)-\(part.upperBound -| 1), which were not requested")
            }
            guard answer.isAsLong(as: part) else { throw .unusable(OriginAnswer.contradictsLength) }
            // §15.3.7: more than was requested may come. It is not read.
            if case .bounded(let first, let last)? = requested {
                range = part.clamped(to: first..<max(first, last +| 1)) // no trap: at least first
            } else {
                range = part
            }
        } else {
            range = 0..<(total ?? .max) // no trap: a declared length is not below 0
        }
        let length = knownLength ?? 0
        if length > longest { throw .unusable("a length of \(length) bytes is more than can be handled") }
    }

    private static func isExpected(_ range: Range<Int64>, of total: Int64?, _ requested: ByteRangeSpec?) -> Bool {
        switch requested {
        case nil: range.lowerBound == 0
        case .bounded(let first, _), .from(let first): range.lowerBound == first
        // The missing part of the suffix would never arrive.
        case .suffix(let count):
            total.map { range.upperBound == $0 && range.upperBound -| range.lowerBound >= min(count, $0) } ?? true
        }
    }

    /// The known length: of the whole resource, or else up to the last byte of the answer.
    package var knownLength: Int64? { total ?? (range.upperBound < .max ? range.upperBound : nil) }

    /// Whether the answer is stored for later requests.
    /// - Parameters:
    ///   - condition: `Combining.condition` of its fields.
    package func isKept(_ storing: Storing, condition: String?) -> Bool {
        // A part of a resource of unknown length is of use only to the client that requested it. A response without
        // a strong validator (RFC 9110 §15.3.7.3) is stored only if it arrives whole, in one transfer.
        storing == .store && (total != nil || !isPart) && (condition != nil || !isPart)
    }

    /// Whether no other request could fetch the same bytes again.
    /// - Parameters:
    ///   - isStored: whether the bytes go where other requests find them.
    ///   - isAskedForPart: whether a part was requested; a whole answer then means that the origin serves no parts.
    package func isUnresumable(isStored: Bool, condition: String?, isPartRequested: Bool) -> Bool {
        !isStored || condition == nil || total == nil || !isPart && isPartRequested
    }

    /// The first byte that is stored: a suffix may begin anywhere, and bytes before its first whole chunk are
    /// discarded.
    package func start(_ geometry: ChunkGeometry) -> Int64 {
        guard range.lowerBound > 0 else { return 0 }
        return geometry.chunkStart(geometry.chunk(at: range.lowerBound +| (geometry.chunkSize -| 1)))
    }
}

extension OriginAnswer {
    static let lacksRange = "a 206 without a usable Content-Range"
    static let contradictsLength = "a 206 whose Content-Length contradicts its Content-Range"

    /// RFC 9110 §14.4: a body that is longer or shorter than its `Content-Range` cannot be located.
    func isAsLong(as part: Range<Int64>) -> Bool {
        contentLength.map { $0 == part.upperBound -| part.lowerBound } ?? true
    }
}
