import CachePolicy
import HTTPModel
import Playlists

/// The recorded part of one rendition. A value.
struct RecordedRendition: Sendable {
    /// The URL of the stream's media playlist.
    let url: OriginURL
    /// The segments in order, including those that are yet to be fetched.
    private(set) var segments: [MediaSegment] = []
    /// The number of the segment that follows the last one, as the stream counts; nil if only the last one's URL
    /// is known.
    private(set) var next: Int64?
    /// The first number of the stream's playlist when segments were last taken, and how many it listed.
    private var former: (number: Int64, count: Int)?
    /// How many of the segments are parts of the recording in the index already.
    var committed = 0
    /// Whether segments are missing before the next one.
    private var hasGap = false

    /// RFC 8216 §6.3.3: players begin three segments before the end.
    private static let first = 3

    /// - Parameters:
    ///   - recorded: the segments that an earlier attempt has recorded.
    ///   - next: the number that followed them, as it was written with them.
    init(_ url: OriginURL, continuingAfter recorded: [MediaSegment] = [], next: Int64? = nil) {
        (self.url, segments, self.next) = (url, recorded, next)
        hasGap = !recorded.isEmpty
    }

    /// Takes the new segments of the stream's playlist.
    /// - Returns: the new segments.
    mutating func take(_ listed: some SegmentSequence) -> [MediaSegment] {
        guard !listed.isEmpty else { return [] }
        let start = start(in: listed)
        let new = (start..<max(start, listed.count)).map { listed[$0] }
        for segment in new {
            guard segment.url != nil, !segment.isGap else {
                hasGap = true
                continue
            }
            append(segment)
        }
        // An older state of the playlist, from another server, has no new segments.
        if start < listed.count {
            next = listed[listed.count - 1].number +| 1
            former = (listed[0].number, listed.count)
        }
        return new.filter { $0.url != nil && !$0.isGap }
    }

    private mutating func append(_ segment: MediaSegment) {
        var segment = segment
        if hasGap { segment.isDiscontinuity = true }
        hasGap = false
        segments.append(segment)
    }

    /// The position of the first new segment.
    private mutating func start(in listed: some SegmentSequence) -> Int {
        let edge = max(0, listed.count - Self.first)
        guard let last = segments.last else { return next.map { position(of: $0, in: listed) } ?? edge }
        if let next {
            let place = position(of: next, in: listed)
            // An earlier attempt recorded the last one, and nothing is missing after it.
            if place > 0, place <= listed.count {
                let before = listed[place - 1]
                if before.url == last.url, before.range == last.range { hasGap = false }
            }
            return place
        }
        // An earlier version of the program recorded the last one: it may still be listed.
        guard let url = last.url,
            let place = try? listed.position(of: url, at: last.range?.lowerBound, within: .ofMatch)
        else { return edge }
        hasGap = false
        return place + 1
    }

    private mutating func position(of number: Int64, in listed: some SegmentSequence) -> Int {
        let first = listed[0].number
        if number -| first > Int64(listed.count) +| Int64(listed.count) || isRestart(listed, before: number) {
            hasGap = true
            return max(0, listed.count - Self.first)
        }
        if number < first { hasGap = true }
        return Int(clamping: max(0, number -| first))
    }

    /// Whether the stream has restarted its numbers, and these are few yet: an older state of the playlist, from
    /// another server, is as long as the newer one, or lists what was recorded.
    private func isRestart(_ listed: some SegmentSequence, before number: Int64) -> Bool {
        guard let former, listed[0].number < former.number, listed.count < former.count,
            listed[listed.count - 1].number +| 1 < number
        else { return false }
        let recorded = Set(segments.suffix(2 * former.count).compactMap(\.url)) // no trap: a playlist's segments
        return !listed.all.contains { $0.url.map(recorded.contains) ?? false }
    }

    /// A copy without the items that have not arrived yet. Those at its end are the next ones for another attempt.
    func without(_ items: Set<PresentationItem>) -> RecordedRendition {
        guard !items.isEmpty else { return self }
        var rendition = self
        let lacking = segments.reversed().prefix { segment in items.contains { $0.isNeeded(for: segment) } }
        if let first = lacking.last { rendition.next = first.number }
        for item in items { rendition.lose(item) }
        return rendition
    }

    /// Removes an item that could not be fetched, and with a key or an initialization section all segments that need
    /// it: no player can do without. Of segments with one URL, the earlier ones have arrived.
    mutating func lose(_ item: PresentationItem) {
        let needs = item.isNeeded(for:)
        let first = item.kind == .segment ? segments.lastIndex(where: needs) : segments.firstIndex(where: needs)
        guard let first else { return }
        let (rest, endsInGap) = (segments[first...], hasGap)
        segments.removeSubrange(first...)
        committed = min(committed, first)
        for segment in rest {
            if needs(segment) { hasGap = true } else { append(segment) }
        }
        hasGap = hasGap || endsInGap
    }
}

extension PresentationItem {
    fileprivate func isNeeded(for segment: MediaSegment) -> Bool {
        kind == .segment ? segment.url == url && segment.range == range : segment.companions.contains(self)
    }
}
