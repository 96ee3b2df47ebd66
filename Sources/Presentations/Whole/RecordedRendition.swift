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
    private var next: Int64?
    /// Whether segments are missing before the next one.
    private var hasGap = false

    /// RFC 8216 §6.3.3: players begin three segments before the end.
    private static let first = 3

    /// - Parameter recorded: the segments that an earlier process has recorded.
    init(_ url: OriginURL, continuingAfter recorded: [MediaSegment] = []) {
        (self.url, segments) = (url, recorded)
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
        if start < listed.count { next = listed[listed.count - 1].number +| 1 }
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
        if let next { return position(of: next, in: listed) }
        // Another process recorded the last one: it may still be listed.
        guard let url = last.url,
            let place = try? listed.position(of: url, at: last.range?.lowerBound, within: .ofMatch)
        else { return edge }
        hasGap = false
        return place + 1
    }

    private mutating func position(of number: Int64, in listed: some SegmentSequence) -> Int {
        let first = listed[0].number
        // The stream has restarted its numbers.
        if number -| first > Int64(listed.count) +| Int64(listed.count) {
            hasGap = true
            return max(0, listed.count - Self.first)
        }
        if number < first { hasGap = true }
        return Int(clamping: max(0, number -| first))
    }

    /// A copy without the items that have not arrived yet.
    func without(_ items: Set<PresentationItem>) -> RecordedRendition {
        guard !items.isEmpty else { return self }
        var rendition = self
        for item in items { rendition.lose(item) }
        return rendition
    }

    /// Removes an item that could not be fetched, and with a key or an initialization section all segments that need
    /// it: no player can do without. Of segments with one URL, the earlier ones have arrived.
    mutating func lose(_ item: PresentationItem) {
        func needs(_ segment: MediaSegment) -> Bool {
            item.kind == .segment
                ? segment.url == item.url && segment.range == item.range : segment.companions.contains(item)
        }
        let first = item.kind == .segment ? segments.lastIndex(where: needs) : segments.firstIndex(where: needs)
        guard let first else { return }
        let (rest, endsInGap) = (segments[first...], hasGap)
        segments.removeSubrange(first...)
        for segment in rest {
            if needs(segment) { hasGap = true } else { append(segment) }
        }
        hasGap = hasGap || endsInGap
    }
}
