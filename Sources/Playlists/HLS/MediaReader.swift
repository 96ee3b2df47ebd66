import CachePolicy
import HTTPModel

/// Collects the contents of a media playlist's tags. Tags before an address belong to its segment; keys and
/// initialization sections apply until others follow.
struct MediaReader {
    var playlist = MediaPlaylist()
    private var next = PendingSegment()
    /// The current ones, by their indices.
    private var keys: [Int32] = []
    /// The index of `keys` among the playlist's sets; nil until a segment needs it.
    private var keySet: Int32?
    private var initialization: Int32?
    private var lastSegment = SubRange(), lastPart = SubRange()

    /// The properties of a segment whose address has not been read yet.
    private struct PendingSegment {
        var duration: Duration = .zero
        var range: ByteRangeValue?
        var isDiscontinuity = false
        var isGap = false
        var parts: [MediaPlaylist.Part] = []
    }

    var hasSegments: Bool { !playlist.segments.isEmpty }

    private(set) var parts = 0

    /// The memory that it takes besides its strings, in bytes.
    var weight: Int {
        // no trap: what is in memory
        playlist.segments.capacity * MemoryLayout<MediaPlaylist.Segment>.stride
            + parts * 2 * MemoryLayout<MediaPlaylist.Part>.stride
            + playlist.keys.capacity * MemoryLayout<EncryptionKey>.stride
            + playlist.keySets.reduce(playlist.keySets.capacity * 8) { $0 + 32 + $1.capacity * 4 }
            + playlist.initializations.capacity * MemoryLayout<InitializationSection>.stride
            + playlist.initializationKeySets.capacity * 4
            + playlist.preloadHints.capacity * MemoryLayout<MediaPlaylist.PreloadHint>.stride
            + playlist.renditionReports.capacity * MemoryLayout<WrittenAddress>.stride
    }

    var finished: MediaPlaylist {
        var playlist = playlist
        playlist.trailingParts = next.parts
        return playlist
    }

    // MARK: - Segments

    /// Handles the address that ends a segment's tags.
    mutating func take(_ reference: String, _ line: HLSLine) throws(PlaylistError) {
        guard playlist.segments.count < PlaylistLimits.listedSegments else {
            throw .tooLarge("more than \(PlaylistLimits.listedSegments) segments", line: line.number)
        }
        let range = try lastSegment.next(next.range, of: reference, line: line.number)
        playlist.segments.append(
            MediaPlaylist.Segment(
                reference: reference, duration: next.duration, range: range,
                isDiscontinuity: next.isDiscontinuity, isGap: next.isGap, keySet: currentKeySet() ?? -1,
                initialization: initialization ?? -1, parts: next.parts))
        next = PendingSegment()
    }

    private mutating func currentKeySet() -> Int32? {
        guard keySet == nil, !keys.isEmpty else { return keySet }
        // Some packagers write the same key before each segment.
        if playlist.keySets.last != keys { playlist.keySets.append(keys) }
        keySet = Int32(exactly: playlist.keySets.count - 1)
        return keySet
    }

    /// Handles tags with one value, or none.
    mutating func take(_ tag: HLSTag, _ value: ArraySlice<UInt8>, _ line: Int) throws(PlaylistError) {
        let value = ASCII.trimmed(value)
        switch tag {
        // RFC 8216 §4.3.2.1. Lists of music have -1 for an unknown duration.
        case .segment: next.duration = MediaNumbers.seconds(value.prefix { $0 != ASCII.comma }) ?? .zero
        case .byteRange: next.range = try ByteRangeValue(value, line: line)
        case .discontinuity: next.isDiscontinuity = true
        case .gap: next.isGap = true
        case .endList: playlist.hasEndTag = true
        case .targetDuration: playlist.targetDuration = MediaNumbers.seconds(value)
        case .mediaSequence: playlist.mediaSequence = try Self.sequence(value, line)
        case .discontinuitySequence: _ = try Self.sequence(value, line)
        case .playlistType: playlist.type = .init(rawValue: String(decoding: value, as: UTF8.self))
        default: break
        }
    }

    private static func sequence(_ value: ArraySlice<UInt8>, _ line: Int) throws(PlaylistError) -> Int64 {
        guard let number = ByteNumber.parse(value) else {
            throw .malformed("a sequence number is not a number, or is too great", line: line)
        }
        return number
    }

    // MARK: - Tags with attributes

    mutating func take(_ tag: HLSTag, _ values: TagValues) throws(PlaylistError) {
        switch tag {
        case .key: try takeKey(values)
        case .map: try takeInitialization(values)
        case .part: try takePart(values)
        case .preloadHint: takeHint(values)
        case .renditionReport: values.address("URI").map { playlist.renditionReports.append($0) }
        case .partInformation: playlist.partTarget = values.seconds("PART-TARGET")
        case .skip:
            playlist.skippedSegments =
                values["SKIPPED-SEGMENTS"].flatMap { ASCII.decimal($0.utf8, upTo: Int64(PlaylistLimits.segments)) } ?? 0
        default: break
        }
    }

    /// RFC 8216 §4.3.2.4: a key applies until the next one of its format, and `NONE` ends all keys.
    private mutating func takeKey(_ values: TagValues) throws(PlaylistError) {
        keySet = nil
        guard let key = values.key else {
            keys = []
            return
        }
        let known = keys.first { playlist.keys[Int($0)] == key }
        keys.removeAll { playlist.keys[Int($0)].format == key.format }
        guard keys.count < PlaylistLimits.keyFormats else {
            throw .tooLarge("more than \(PlaylistLimits.keyFormats) keys at a time", line: values.line.number)
        }
        keys.append(known ?? Int32(truncatingIfNeeded: playlist.keys.count))
        if known == nil { playlist.keys.append(key) }
    }

    /// RFC 8216 §4.3.2.5
    private mutating func takeInitialization(_ values: TagValues) throws(PlaylistError) {
        let range = try values["BYTERANGE"].map { text throws(PlaylistError) in
            try ByteRangeValue(Array(text.utf8)[...], line: values.line.number).range(
                after: 0, line: values.line.number)
        }
        let section = InitializationSection(address: values.address("URI"), range: range), set = currentKeySet() ?? -1
        if playlist.initializations.last != section || playlist.initializationKeySets.last != set {
            playlist.initializations.append(section)
            playlist.initializationKeySets.append(set)
        }
        initialization = Int32(exactly: playlist.initializations.count - 1)
    }

    private mutating func takePart(_ values: TagValues) throws(PlaylistError) {
        guard let address = values.address("URI") else { return }
        parts += 1
        let value = try values["BYTERANGE"].map { text throws(PlaylistError) in
            try ByteRangeValue(Array(text.utf8)[...], line: values.line.number)
        }
        next.parts.append(
            MediaPlaylist.Part(
                address: address, range: try lastPart.next(value, of: address.reference, line: values.line.number),
                duration: values.seconds("DURATION") ?? .zero,
                isIndependent: values.has("INDEPENDENT"), isGap: values.has("GAP")))
    }

    private mutating func takeHint(_ values: TagValues) {
        guard let kind = values["TYPE"].flatMap(MediaPlaylist.PreloadHint.Kind.init) else { return }
        playlist.preloadHints.append(
            MediaPlaylist.PreloadHint(
                kind: kind, address: values.address("URI"),
                start: values["BYTERANGE-START"].flatMap { ByteNumber.parse($0.utf8) } ?? 0,
                length: values["BYTERANGE-LENGTH"].flatMap { ByteNumber.parse($0.utf8) }))
    }
}

/// A byte range in HLS notation: `length[@offset]` (RFC 8216 §4.3.2.2).
struct ByteRangeValue: Sendable, Equatable {
    let length: Int64
    /// Nil if the range follows the previous one.
    let offset: Int64?

    init(_ text: ArraySlice<UInt8>, line: Int) throws(PlaylistError) {
        let parts = text.split(
            separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let length = parts.first.flatMap({ ByteNumber.parse($0) }) else { throw Self.bad(line) }
        self.length = length
        offset = parts.count == 2 ? ByteNumber.parse(parts[1]) : nil
        if parts.count == 2, offset == nil { throw Self.bad(line) }
    }

    /// - Parameter end: the end of the previous range; nil if there is none.
    func range(after end: Int64?, line: Int) throws(PlaylistError) -> Range<Int64> {
        guard let start = offset ?? end else {
            throw .malformed("a byte range without an offset does not follow a range of the same file", line: line)
        }
        guard let range = Range(offset: start, length: length), range.upperBound <= ByteNumber.greatest else {
            throw Self.bad(line)
        }
        return range
    }

    private static func bad(_ line: Int) -> PlaylistError {
        .malformed("a byte range is not length@offset, or is too great", line: line)
    }
}

/// The range of the previous segment, after which a range without an offset begins.
private struct SubRange {
    private var reference = ""
    private var end: Int64?

    /// - Returns: nil for the whole file.
    mutating func next(_ value: ByteRangeValue?, of reference: String, line: Int) throws(PlaylistError) -> Range<Int64>?
    {
        let range = try value.map { value throws(PlaylistError) in
            try value.range(after: reference == self.reference ? end : nil, line: line)
        }
        self.reference = reference
        end = range?.upperBound
        return range
    }
}
