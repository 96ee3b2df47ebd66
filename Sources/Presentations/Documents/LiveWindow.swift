import HTTPModel
import Playlists

extension PlaylistDocument {
    /// The segments that have left a live playlist since an earlier state of it.
    /// - Parameter now: the time since 1970.
    /// - Throws: if the budget is spent.
    func left(since former: PlaylistDocument, at now: Duration, within budget: WorkBudget) throws(PlaylistError)
        -> [MediaSegment]
    {
        // A delta update lists only the end of its window (draft-pantos-hls-rfc8216bis §4.4.5.2).
        if case .hls(let playlist) = content, playlist.media?.skippedSegments ?? 0 > 0 { return [] }
        let known = Dictionary(
            try former.renditions(at: now, within: budget).map { ($0.id.representation, $0.segments) }
        ) { first, _ in
            first
        }
        var left: [MediaSegment] = []
        for (id, segments) in try renditions(at: now, within: budget) where left.count < LiveWindow.most {
            guard let former = known[id.representation] else { continue }
            left += try LiveWindow.left(
                by: segments, since: former, limit: LiveWindow.most - left.count, within: budget)
        }
        return left
    }
}

extension PlaylistDocument {
    /// Finds the segments of a live stream that are unlikely to be requested again, as its playlist advances.
    enum LiveWindow {
        /// A stream whose window only grows would push everything else out of the cache: segments further behind its
        /// end than this count as having left, too.
        static let longest: Duration = .seconds(600)
        /// The most segments of one step, of all renditions: a playlist that restarts leaves no more to be looked up.
        static let most = 1000

        /// The first segments that have left a playlist since its earlier state, in order.
        static func left(
            by newer: any SegmentSequence, since former: any SegmentSequence, limit: Int = most,
            within budget: WorkBudget
        ) throws(PlaylistError) -> [MediaSegment] {
            guard !newer.isEmpty, !former.isEmpty else { return [] }
            let kept = try newer.position(within: longest, budget)
            let start =
                try kept < newer.count
                ? former.number(of: newer[kept], within: budget) : newer.number(at: newer.count - 1) +| 1
            // Earlier ones had already left when the earlier state arrived. There may be a million of them.
            let first = try former.position(within: longest, budget), end = first + min(limit, former.count - first)
            return (first..<end).prefix { former.number(at: $0) < start }.map { former[$0] }
        }
    }
}
