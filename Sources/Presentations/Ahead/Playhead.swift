import CachePolicy
import HTTPModel
import Playlists

/// What is fetched in one go: a segment, or what goes with it.
struct AheadPiece: Sendable, Equatable {
    let url: OriginURL
    /// Half-open; nil for the whole file.
    let range: Range<Int64>?
}

/// Where one player is in one rendition, and what comes next for it. All places are segments' numbers, which stay the
/// same when a live window moves on.
///
///     start ▓▓▓▓▓▓▓▓▓▓ number ▓▓▓▓▓ known ░░░░░ number + ahead
///           was read           there        yet to be fetched, in order
///
/// The segment that is being read is the first to be fetched: that follows the player's own fetch, so the next one
/// begins when this is there, however slowly the player reads it. A value.
struct Playhead {
    /// Where this began, with a player's first request or the last seek.
    private var start: Int64
    /// What the player has asked for last.
    private(set) var number: Int64
    /// Everything from `start` up to here is there, or does not concern the player any more.
    private var known: Int64
    /// How many segments come after `number`.
    private var ahead: Int64
    private var segments: any SegmentSequence
    /// What is left to fetch of the segment `known`; empty before it is begun.
    private var pieces: [AheadPiece] = []
    /// Something could not be had: nothing more is asked for before the player does.
    private var hasFailed = false

    /// - Parameters:
    ///   - position: of the segment that the player reads.
    ///   - ahead: how many segments come after it.
    init(_ segments: any SegmentSequence, at position: Int, ahead: Int) {
        number = segments.number(at: position)
        (start, known, self.ahead, self.segments) = (number, number, Int64(ahead), segments)
    }

    /// The player has asked for another segment, or once more for the same.
    /// - Returns: whether it is near enough for what is being fetched to go on. Otherwise it is a seek, and this begins
    ///   anew.
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

    /// The playlist has a newer version.
    mutating func renew(_ segments: any SegmentSequence) { self.segments = segments }

    /// What to fetch now; nil where all is there that the player needs soon, as far as it is listed.
    mutating func next() -> AheadPiece? {
        guard !hasFailed else { return nil }
        while pieces.isEmpty {
            guard known <= number +| ahead, let position = segments.position(number: known) else { return nil }
            // Without anything behind it, the last one is the player's own affair.
            if known == number, position + 1 >= segments.count { return nil }
            pieces = pieces(at: position)
            if pieces.isEmpty { known +|= 1 }
        }
        return pieces.first
    }

    /// What `next` has named last has ended.
    /// - Parameter isThere: whether it is in the cache.
    mutating func ended(_ piece: AheadPiece, isThere: Bool) {
        // The player may have gone past it meanwhile.
        guard pieces.first == piece else { return }
        // Keys may not be stored, as a rule: what comes behind them may.
        if !isThere, pieces.count == 1 {
            (hasFailed, pieces) = (true, [])
            return
        }
        pieces.removeFirst()
        if pieces.isEmpty { known +|= 1 }
    }

    /// A segment, and before it what the one before did not need; of one that is missing, that alone. What belongs to
    /// the first one the player asks for itself.
    private func pieces(at position: Int) -> [AheadPiece] {
        let segment = segments[position]
        let companions = known > start && position > 0 ? companions(of: segment, after: segments[position - 1]) : []
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
