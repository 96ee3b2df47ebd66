/// Locates a request's body, and its end, in the bytes that its connection sends (RFC 9112 §6.3 and §7.1).
///
/// Chunks are parsed as strictly as heads, including line ends: anything that another server could interpret
/// differently is rejected. Chunk extensions and trailer fields are skipped, as the proxy has no use for them (RFC
/// 9112 §7.1.1, §7.1.2).
package struct BodyDecoder: Sendable {
    package enum Step: Equatable {
        /// The range of body bytes in the input. Bytes before it are framing.
        case content(Range<Int>)
        /// All input is consumed, and the body continues.
        case incomplete
        /// The body has ended; the next request follows the consumed bytes.
        case end(consumed: Int)
    }

    /// The part to which the next byte belongs.
    private enum Place {
        case content
        case sizeStart, size, beforeExtension, chunkExtension, sizeLineFeed
        case chunk, chunkReturn, chunkLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed, lastLineFeed
        case end
    }

    /// RFC 9112 §7.1.1 demands a limit on the length of extensions.
    private static let maxLineBytes = 256
    private static let maxTrailerBytes = 8192

    private var place: Place
    /// Bytes left of the body or of the chunk; in a size line, the number read so far.
    private var left: Int64 = 0
    /// Bytes read so far of the size line, or of all trailer fields.
    private var framingBytes = 0

    package init(_ framing: BodyFraming) {
        switch framing {
        case .empty: place = .end
        case .length(let length): (place, left) = (.content, length)
        case .chunked: place = .sizeStart
        }
    }

    /// Bytes left of the body; nil for a chunked body that has not ended.
    package var remaining: Int64? {
        switch place {
        case .content: left
        case .end: 0
        default: nil
        }
    }

    /// Whether the body ends within these bytes, which are the next to arrive.
    package func ends(within bytes: UnsafeRawBufferPointer) -> Bool {
        if let remaining { return remaining <= Int64(bytes.count) }
        var decoder = self, rest = bytes
        while case .content(let range)? = try? decoder.next(in: rest) {
            rest = UnsafeRawBufferPointer(rebasing: rest[range.upperBound...])
        }
        return decoder.place == .end
    }

    /// The next step.
    /// - Parameter bytes: the bytes after those of the previous step. A body may end without another byte, so a
    ///   call with no bytes may be useful, too.
    /// - Throws: if the chunks are malformed; the end of the body is then unknown.
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

    /// Consumes one byte of framing.
    private mutating func take(_ byte: UInt8) throws(RequestFault) {
        switch place {
        case .sizeStart, .size, .beforeExtension, .chunkExtension, .sizeLineFeed: try takeOfSizeLine(byte)
        case .chunkReturn: try expect(ASCII.carriageReturn, byte, then: .chunkLineFeed)
        case .chunkLineFeed:
            try expect(ASCII.lineFeed, byte, then: .sizeStart)
            framingBytes = 0
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .lastLineFeed: try takeOfTrailer(byte)
        case .content, .chunk, .end: preconditionFailure("these bytes are not framing")
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
        // Numbers beyond 60 bits are not sizes of chunks, but attempts at an overflow.
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
