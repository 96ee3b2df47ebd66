import CachePolicy
import Glibc
import HTTPModel

/// One line of an HLS playlist (RFC 8216 §4.1), as offsets in its text.
struct HLSLine: Sendable, Equatable {
    /// Counted from 1.
    let number: Int
    /// Without the line ending, and without surrounding white space.
    let content: Range<Int>
    /// With the line ending: the range to remove in order to remove the line.
    let whole: Range<Int>
}

/// The lines of a text, ended by LF or CRLF; the last one may lack its ending.
struct HLSLines: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var place: Int
    private var number = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        // RFC 8216 §4.1 forbids a byte order mark, but some texts have one.
        place = bytes.starts(with: PlaylistKind.byteOrderMark) ? PlaylistKind.byteOrderMark.count : 0
    }

    mutating func next() -> HLSLine? {
        guard place < bytes.count else { return nil }
        let start = place, end = lineFeed(from: start)
        place = end < bytes.count ? end + 1 : end
        number += 1
        return HLSLine(number: number, content: trimmed(start..<end), whole: start..<place)
    }

    private func lineFeed(from start: Int) -> Int {
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress,
                let found = memchr(base + start, Int32(ASCII.lineFeed), buffer.count - start)
            else { return buffer.count }
            return UnsafeRawPointer(found) - base
        }
    }

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, ASCII.isXMLSpace(bytes[end - 1]) { end -= 1 }
        while start < end, ASCII.isXMLSpace(bytes[start]) { start += 1 }
        return start..<end
    }
}
