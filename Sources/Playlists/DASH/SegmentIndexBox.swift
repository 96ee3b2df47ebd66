import HTTPModel

/// A segment index (`sidx`, ISO/IEC 14496-12 §8.16.3): the byte ranges of a file that are its segments.
package struct SegmentIndexBox: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// Bytes of the file, half-open.
        package let range: Range<Int64>
        package let duration: Duration
        /// Whether it is another index instead of media.
        package let isIndex: Bool
    }

    package let entries: [Entry]
    /// The segments; empty if an entry is another index, as this one does not locate all media then.
    let media: [Entry]

    /// - Parameters:
    ///   - bytes: the part of the file that `indexRange` names; boxes before the index are skipped.
    ///   - offset: the offset of that part in the file.
    /// - Throws: if it contains no complete index.
    package init(_ bytes: [UInt8], at offset: Int64) throws(PlaylistError) {
        var reader = Reader(bytes[...])
        var place = offset
        while let box = reader.next() {
            place +|= box.size
            if box.type == Array("sidx".utf8) {
                let all = try Self.entries(box.body, after: place)
                (entries, media) = (all, all.contains(where: \.isIndex) ? [] : all)
                return
            }
        }
        throw .malformed("the index has no complete sidx box")
    }

    /// - Parameter anchor: the offset of the first byte after the index, from which offsets are counted.
    private static func entries(_ body: ArraySlice<UInt8>, after anchor: Int64) throws(PlaylistError) -> [Entry] {
        var reader = Reader(body)
        let isLong = (try reader.number(4) >> 24) > 0
        _ = try reader.number(4)
        let timescale = Timescale(rate: max(1, try reader.number(4)))
        _ = try reader.number(isLong ? 8 : 4)
        var start = anchor +| (try reader.number(isLong ? 8 : 4))
        // 16 bits; each entry takes 12 bytes, which must be present.
        let count = Int(try reader.number(4) & 0xFFFF)
        var entries: [Entry] = []
        for _ in 0..<count {
            let reference = try reader.number(4), duration = try reader.number(4)
            _ = try reader.number(4)
            guard let range = Range(offset: start, length: reference & 0x7FFF_FFFF),
                range.upperBound <= ByteNumber.greatest
            else {
                throw .malformed("a sidx box refers to bytes beyond any file")
            }
            entries.append(Entry(range: range, duration: timescale.duration(duration), isIndex: reference >> 31 == 1))
            start = range.upperBound
        }
        return entries
    }
}

extension SegmentIndexBox {
    /// Reads boxes of an ISO base media file, and numbers in them (ISO/IEC 14496-12 §4.2).
    private struct Reader {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

        /// The next box, with its whole size; nil if there is no complete one.
        mutating func next() -> (type: [UInt8], body: ArraySlice<UInt8>, size: Int64)? {
            let start = rest
            guard var size = try? number(4), rest.count >= 4 else { return nil }
            let type = Array(rest.prefix(4))
            rest = rest.dropFirst(4)
            // 1: the size follows in 64 bits; 0: the box extends to the end.
            if size == 1 { size = (try? number(8)) ?? 0 } else if size == 0 { size = Int64(start.count) }
            let header = start.count - rest.count
            guard size >= header, size <= start.count else { return nil }
            let body = start.dropFirst(header).prefix(Int(size) - header)
            rest = start.dropFirst(Int(size))
            return (type, body, size)
        }

        /// A big-endian number, clamped to `Int64.max`.
        /// - Parameter count: the number of bytes, at most 8.
        mutating func number(_ count: Int) throws(PlaylistError) -> Int64 {
            guard rest.count >= count else { throw .malformed("a sidx box ends too early") }
            let value = rest.prefix(count).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            rest = rest.dropFirst(count)
            return Int64(clamping: value)
        }
    }
}
