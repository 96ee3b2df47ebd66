import CachePolicy
import HTTPModel
import Playlists

/// A unit of fetching ahead: a segment, or another item that it needs.
struct AheadPiece: Sendable, Equatable {
    let url: OriginURL
    /// Half-open; nil for the whole file.
    let range: Range<Int64>?
}

/// One player's position in one rendition, and the segments to fetch next. Positions are segment numbers, which
/// stay the same when a live window advances.
///
///     start ▓▓▓▓▓▓▓▓▓▓ number ▓▓▓▓▓ known ░░░░░ number + ahead
///           was read           cached       yet to be fetched, in order
///
/// The segment being read is the first to be fetched: this joins the player's own fetch, so the next one begins
/// when this one is cached, however slowly the player reads it. A value.
struct Playhead {
    /// The segment of the player's first request, or of its last seek.
    private var start: Int64
    /// The segment that the player requested last.
    private(set) var number: Int64
    /// All segments from `start` up to here are cached, or no longer concern the player.
    private var known: Int64
    /// How many segments to fetch after `number`.
    private var ahead: Int64
    private var segments: any SegmentSequence
    /// The pieces of the segment `known` that are yet to be fetched; empty before it is begun.
    private var pieces: [AheadPiece] = []
    /// Whether a fetch failed: nothing more is requested until the player's next request.
    private var hasFailed = false

    /// - Parameters:
    ///   - position: the position of the segment that the player reads.
    ///   - ahead: how many segments to fetch after it.
    init(_ segments: any SegmentSequence, at position: Int, ahead: Int) {
        number = segments.number(at: position)
        (start, known, self.ahead, self.segments) = (number, number, Int64(ahead), segments)
    }

    /// Moves to the segment that the player has requested, perhaps again.
    /// - Returns: whether it is near enough that the running fetch can continue. Otherwise it is a seek, and the
    ///   playhead restarts.
    mutating func move(to position: Int, in segments: any SegmentSequence, ahead: Int) -> Bool {
        let place = segments.number(at: position)
        guard place >= start, place <= number +| self.ahead +| 1 else {
            self = Playhead(segments, at: position, ahead: ahead)
            return false
        }
        (number, self.ahead, self.segments, hasFailed) = (place, Int64(ahead), segments, false)
        if place > known { (known, pieces) = (place, []) }
        return true
    }

    /// Takes over a newer version of the playlist, in which segments may have other numbers.
    mutating func renew(_ newer: any SegmentSequence) {
        if let position = segments.position(number: number),
            let shifted = try? newer.number(of: segments[position], within: .ofMatch)
        {
            let shift = shifted -| number
            (start, number, known) = (start +| shift, shifted, known +| shift)
        }
        segments = newer
    }

    /// The piece to fetch now; nil if everything that the player needs soon is cached, as far as it is listed.
    mutating func next() -> AheadPiece? {
        guard !hasFailed else { return nil }
        while pieces.isEmpty {
            guard known <= number +| ahead, let position = segments.position(number: known) else { return nil }
            // The last segment, with nothing after it, is left to the player.
            if known == number, position + 1 >= segments.count { return nil }
            pieces = pieces(at: position)
            if pieces.isEmpty { known +|= 1 }
        }
        return pieces.first
    }

    /// Takes the end of the fetch that `next` returned.
    /// - Parameter isThere: whether the piece is in the cache.
    mutating func ended(_ piece: AheadPiece, isThere: Bool) {
        // The player may have moved past it meanwhile.
        guard pieces.first == piece else { return }
        // Keys usually must not be stored; the pieces after them may be.
        if !isThere, pieces.count == 1 {
            (hasFailed, pieces) = (true, [])
            return
        }
        pieces.removeFirst()
        if pieces.isEmpty { known +|= 1 }
    }

    /// The pieces of a segment, preceded by the items that the previous one did not need; only these if the
    /// segment is missing. The player requests the items of the first segment itself.
    private func pieces(at position: Int) -> [AheadPiece] {
        let segment = segments[position]
        let needsOthers = !segment.keys.isEmpty || segment.initialization != nil
        let companions =
            needsOthers && known > start && position > 0 ? companions(of: segment, after: segments[position - 1]) : []
        guard let url = segment.url, !segment.isGap else { return companions }
        return companions + [AheadPiece(url: url, range: segment.range)]
    }

    private func companions(of segment: MediaSegment, after former: MediaSegment) -> [AheadPiece] {
        let keys = segment.keys.filter { $0.format == "identity" && !former.keys.contains($0) }.compactMap(\.url)
        var pieces = keys.map { AheadPiece(url: $0, range: nil) }
        if let section = segment.initialization, section != former.initialization, let url = section.url {
            pieces.append(AheadPiece(url: url, range: section.range))
        }
        return pieces
    }
}
