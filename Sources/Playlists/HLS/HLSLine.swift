import CachePolicy
import Glibc
import HTTPModel

/// One line of an HLS playlist (RFC 8216 §4.1), as offsets in its text.
struct HLSLine: Sendable, Equatable {
    /// Counted from 1.
    let number: Int
    /// Without the line ending, surrounding white space, and byte order marks before it.
    let content: Range<Int>
    /// With the line ending: the range to remove in order to remove the line.
    let whole: Range<Int>
}

/// The lines of a text, ended by LF or CRLF, or by CR as players take it; the last one may lack its ending.
struct HLSLines: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var place = 0
    /// The first line feed at or after `place`: searched once, so that a text without any takes one pass.
    private var feed = -1
    private var number = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> HLSLine? {
        guard place < bytes.count else { return nil }
        if feed < place { feed = index(of: ASCII.lineFeed, in: place..<bytes.count) }
        let start = place, carriageReturn = index(of: ASCII.carriageReturn, in: start..<feed)
        let end = carriageReturn + 1 < feed ? carriageReturn : feed
        place = end < bytes.count ? end + 1 : end
        number += 1
        return HLSLine(number: number, content: trimmed(start..<end), whole: start..<place)
    }

    /// Roughly how many lines are addresses: those that do not begin with `#`.
    static func addresses(in bytes: [UInt8]) -> Int {
        var (count, last) = (0, ASCII.lineFeed)
        for byte in bytes {
            if last == ASCII.lineFeed, byte != UInt8(ascii: "#"), !ASCII.isXMLSpace(byte) {
                count += 1 // no trap: a text's bytes
            }
            last = byte
        }
        return count
    }

    /// The place of a byte; the end of the range if it is not there.
    private func index(of byte: UInt8, in range: Range<Int>) -> Int {
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress, let found = memchr(base + range.lowerBound, Int32(byte), range.count)
            else { return range.upperBound }
            return UnsafeRawPointer(found) - base
        }
    }

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        let mark = PlaylistKind.byteOrderMark
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, ASCII.isXMLSpace(bytes[end - 1]) { end -= 1 }
        while start < end {
            // RFC 8216 §4.1 forbids a byte order mark, but some texts have one, and joined files have several.
            let isMark = bytes[start] == mark[0] && bytes[start..<end].starts(with: mark)
            guard isMark || ASCII.isXMLSpace(bytes[start]) else { break }
            start += isMark ? mark.count : 1
        }
        return start..<end
    }
}
