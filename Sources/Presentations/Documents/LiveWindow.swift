import HTTPModel
import Playlists

extension PlaylistDocument {
    /// The segments that have left a live playlist since an earlier state of it.
    /// - Parameter now: the time since 1970.
    func left(since former: PlaylistDocument, at now: Duration) -> [MediaSegment] {
        // A delta update lists only the end of its window (draft-pantos-hls-rfc8216bis §4.4.5.2).
        if case .hls(let playlist) = content, playlist.media?.skippedSegments ?? 0 > 0 { return [] }
        let known = former.renditions(at: now)
        return renditions(at: now).flatMap { id, segments in
            known.first { $0.id == id }.map { LiveWindow.left(by: segments, since: $0.segments) } ?? []
        }
    }
}

/// Finds the segments of a live stream that are unlikely to be requested again, as its playlist advances.
enum LiveWindow {
    /// A stream whose window only grows would push everything else out of the cache: segments further behind its
    /// end than this count as having left, too.
    static let longest: Duration = .seconds(600)
    /// The most segments of one step: a playlist that restarts leaves no more than that to be looked up.
    static let most = 1000

    /// The segments that have left a playlist since its earlier state, in order.
    static func left(by newer: any SegmentSequence, since former: any SegmentSequence) -> [MediaSegment] {
        guard !newer.isEmpty, !former.isEmpty else { return [] }
        let kept = firstKept(of: newer)
        let start = kept < newer.count ? newer.number(at: kept) : newer.number(at: newer.count - 1) +| 1
        // Earlier ones had already left when the earlier state arrived. There may be a million of them.
        return (firstKept(of: former)..<former.count).lazy.prefix { former.number(at: $0) < start }.prefix(most)
            .map { former[$0] }
    }

    /// The position of the first segment that is at most `longest` behind the end.
    private static func firstKept(of segments: any SegmentSequence) -> Int {
        var behind: Duration = .zero
        for position in (0..<segments.count).reversed() {
            behind += segments[position].duration
            if behind > longest { return position + 1 } // no trap: below the count
        }
        return 0
    }
}
