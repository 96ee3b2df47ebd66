import HTTPModel
import Playlists

extension PlaylistDocument {
    /// The segments that a live playlist has left since it was in a former state.
    /// - Parameter now: since 1970.
    func left(since former: PlaylistDocument, at now: Duration) -> [MediaSegment] {
        // A delta update lists the end of its window alone (draft-pantos-hls-rfc8216bis §4.4.5.2).
        if case .hls(let playlist) = content, playlist.media?.skippedSegments ?? 0 > 0 { return [] }
        let known = former.renditions(at: now)
        return renditions(at: now).flatMap { id, segments in
            known.first { $0.id == id }.map { LiveWindow.left(by: segments, since: $0.segments) } ?? []
        }
    }
}

/// Which segments of a live stream nobody is likely to ask for again, as its playlist goes on.
enum LiveWindow {
    /// A stream whose window only grows would push all else out of the cache: what is further behind its end than this
    /// counts as left, too.
    static let longest: Duration = .seconds(600)
    /// Of one step: a playlist that begins anew leaves no more than that to be looked up.
    static let most = 1000

    /// The segments that a playlist has left since its former state, in order.
    static func left(by newer: any SegmentSequence, since former: any SegmentSequence) -> [MediaSegment] {
        guard !newer.isEmpty, !former.isEmpty else { return [] }
        let start = max(newer[0].number, firstKept(of: newer)), known = firstKept(of: former)
        // Those before were left when the former state came.
        return (0..<former.count).lazy.map { former[$0] }.filter { $0.number < start && $0.number >= known }
            .prefix(most).map { $0 }
    }

    /// The number of the first that is not further behind the end than `longest`.
    private static func firstKept(of segments: any SegmentSequence) -> Int64 {
        var behind: Duration = .zero
        for position in (0..<segments.count).reversed() {
            behind += segments[position].duration
            if behind > longest { return segments[position].number +| 1 }
        }
        return segments[0].number
    }
}
