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
        let start = max(newer[0].number, firstKept(of: newer)), known = firstKept(of: former)
        // Earlier ones had already left when the earlier state arrived.
        return (0..<former.count).lazy.map { former[$0] }.filter { $0.number < start && $0.number >= known }
            .prefix(most).map { $0 }
    }

    /// The number of the first segment that is at most `longest` behind the end.
    private static func firstKept(of segments: any SegmentSequence) -> Int64 {
        var behind: Duration = .zero
        for position in (0..<segments.count).reversed() {
            behind += segments[position].duration
            if behind > longest { return segments[position].number +| 1 }
        }
        return segments[0].number
    }
}
