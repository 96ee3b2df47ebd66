/// Finds a request's body in what its connection sends, and its end (RFC 9112 §6.3 and §7.1).
///
/// Chunks are read as strictly as heads, line ends included: what another server could take for something else is
/// refused. Chunk extensions and trailer fields are passed over, as nothing here has a use for them (RFC 9112 §7.1.1,
/// §7.1.2).
package struct BodyDecoder: Sendable {
    package enum Step: Equatable {
        /// Where bytes of the body are in what was given. What is before them is framing.
        case content(Range<Int>)
        /// All that was given is used up, and the body goes on.
        case incomplete
        /// The body is over; what follows these bytes is the next request.
        case end(consumed: Int)
    }

    /// What the next byte is part of.
    private enum Place {
        case content
        case sizeStart, size, beforeExtension, chunkExtension, sizeLineFeed
        case chunk, chunkReturn, chunkLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed, lastLineFeed
        case end
    }

    /// RFC 9112 §7.1.1 asks for a limit to what extensions may cost.
    private static let maxLineBytes = 256
    private static let maxTrailerBytes = 8192

    private var place: Place
    /// Bytes to come of the body or of the chunk; in a size line what has been read of the number.
    private var left: Int64 = 0
    /// Bytes of the size line, or of all trailer fields, so far.
    private var framingBytes = 0

    package init(_ framing: BodyFraming) {
        switch framing {
        case .empty: place = .end
        case .length(let length): (place, left) = (.content, length)
        case .chunked: place = .sizeStart
        }
    }

    /// Bytes of the body still to come; nil where it comes in chunks and is not over.
    package var remaining: Int64? {
        switch place {
        case .content: left
        case .end: 0
        default: nil
        }
    }

    /// Whether the body ends in these bytes, which come next.
    package func ends(within bytes: UnsafeRawBufferPointer) -> Bool {
        if let remaining { return remaining <= Int64(bytes.count) }
        var decoder = self, rest = bytes
        while case .content(let range)? = try? decoder.next(in: rest) {
            rest = UnsafeRawBufferPointer(rebasing: rest[range.upperBound...])
        }
        return decoder.place == .end
    }

    /// The next step.
    /// - Parameter bytes: what has come since the bytes of the step before. A body may end without a further byte, so
    ///   it is worth asking with none.
    /// - Throws: what is wrong with the chunks; where the body ends is not known then.
    package mutating func next(in bytes: UnsafeRawBufferPointer) throws(RequestFault) -> Step {
        var position = 0
        while true {
            switch place {
            case .end:
                return .end(consumed: position)
            case .content, .chunk:
                guard left > 0 else {
                    place = place == .content ? .end : .chunkReturn
                    continue
                }
                guard position < bytes.count else { return .incomplete }
                let count = Int(min(left, Int64(bytes.count - position)))
                left -= Int64(count) // no trap: at most `left`
                return .content(position..<position + count)
            default:
                guard position < bytes.count else { return .incomplete }
                try take(bytes[position])
                position += 1
            }
        }
    }

    /// One byte of the framing.
    private mutating func take(_ byte: UInt8) throws(RequestFault) {
        switch place {
        case .sizeStart, .size, .beforeExtension, .chunkExtension, .sizeLineFeed: try takeOfSizeLine(byte)
        case .chunkReturn: try expect(ASCII.carriageReturn, byte, then: .chunkLineFeed)
        case .chunkLineFeed:
            try expect(ASCII.lineFeed, byte, then: .sizeStart)
            framingBytes = 0
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .lastLineFeed: try takeOfTrailer(byte)
        case .content, .chunk, .end: preconditionFailure("these bytes are no framing")
        }
    }

    private mutating func expect(_ expected: UInt8, _ byte: UInt8, then next: Place) throws(RequestFault) {
        guard byte == expected else { throw .badChunk }
        place = next
    }

    private mutating func takeOfSizeLine(_ byte: UInt8) throws(RequestFault) {
        framingBytes += 1
        guard framingBytes <= Self.maxLineBytes else { throw .chunkLineTooLong }
        switch (place, byte) {
        case (.sizeStart, _): try takeDigit(byte)
        case (.size, _) where ASCII.hexValue(byte) != nil: try takeDigit(byte)
        case (.size, ASCII.carriageReturn), (.chunkExtension, ASCII.carriageReturn): place = .sizeLineFeed
        case (.size, UInt8(ascii: ";")), (.beforeExtension, UInt8(ascii: ";")): place = .chunkExtension
        case (.size, ASCII.space), (.size, ASCII.tab), (.beforeExtension, ASCII.space), (.beforeExtension, ASCII.tab):
            place = .beforeExtension
        case (.chunkExtension, _) where ASCII.isFieldContent(byte): break
        case (.sizeLineFeed, ASCII.lineFeed):
            place = left == 0 ? .trailerStart : .chunk
            framingBytes = 0
        default: throw .badChunk
        }
    }

    private mutating func takeDigit(_ byte: UInt8) throws(RequestFault) {
        guard let digit = ASCII.hexValue(byte) else { throw .badChunk }
        if place == .sizeStart { left = 0 }
        // Numbers beyond 60 bits mean no chunk, but somebody's overflow.
        guard left >> 56 == 0 else { throw .badChunk }
        left = left << 4 | Int64(digit)
        place = .size
    }

    private mutating func takeOfTrailer(_ byte: UInt8) throws(RequestFault) {
        framingBytes += 1
        guard framingBytes <= Self.maxTrailerBytes else { throw .trailerTooLong }
        switch (place, byte) {
        case (.trailerStart, ASCII.carriageReturn): place = .lastLineFeed
        case (.trailerStart, _) where ASCII.isToken(byte), (.trailerName, _) where ASCII.isToken(byte):
            place = .trailerName
        case (.trailerName, ASCII.colon): place = .trailerValue
        case (.trailerValue, _) where ASCII.isFieldContent(byte): break
        case (.trailerValue, ASCII.carriageReturn): place = .trailerLineFeed
        case (.trailerLineFeed, ASCII.lineFeed): place = .trailerStart
        case (.lastLineFeed, ASCII.lineFeed): place = .end
        default: throw .badTrailer
        }
    }
}
