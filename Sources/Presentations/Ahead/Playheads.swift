import Activity
import CachePolicy
import HTTPModel
import Playlists

/// One request for a segment, for which further ones are fetched.
package struct Reading: Hashable, Sendable {
    fileprivate let head: PlayheadID
    fileprivate let turn: UInt64
}

struct PlayheadID: Hashable, Sendable {
    let player: PlayerID
    let rendition: RenditionID
}

/// The fetches ahead of all players: those that run, that stop, and that start next. A value, without locks,
/// clocks or threads: it receives events, and returns the actions to take.
///
/// - Each player has a playhead for each rendition that it plays at a time, and one piece is fetched at a time for
///   each playhead.
/// - `Asker` is the information about the last request that the fetching code needs.
struct Playheads<Requester: Sendable> {
    struct RunID: Hashable, Sendable {
        fileprivate let value: UInt64
    }

    enum Action {
        case start(RunID, AheadPiece, Requester)
        case stop(RunID)
    }

    struct Entry {
        var head: Playhead
        let role: RenditionRole?
        var requester: Requester
        /// The number of the last request.
        var turn: UInt64
        /// In nanoseconds.
        var lastUse: UInt64
        var run: (id: RunID, piece: AheadPiece)?

        /// - Returns: the piece to start; nil if one is being fetched, or none is left.
        mutating func next() -> AheadPiece? { run == nil ? head.next() : nil }

        /// - Returns: whether the request continues what is being fetched.
        mutating func take(
            _ place: SegmentPlace, _ requester: Requester, ahead: Int, turn: UInt64, at now: UInt64
        ) -> Bool {
            (self.requester, self.turn, lastUse) = (requester, turn, now)
            return head.move(to: place.position, in: place.segments, ahead: ahead)
        }
    }

    private(set) var entries: [PlayheadID: Entry] = [:]
    private var runs: [RunID: PlayheadID] = [:]
    private var turns: UInt64 = 0

    /// The most playheads.
    static var most: Int { 256 }
    /// A playhead that has not moved for this long is forgotten, in nanoseconds.
    private static var longestPause: UInt64 { 300 * 1_000_000_000 }

    init() {}

    var runningCount: Int { runs.count }

    /// Whether the fetch is still needed.
    func isRunning(_ run: RunID) -> Bool { runs[run] != nil }

    /// Takes a player's request for a segment.
    /// - Parameters:
    ///   - ahead: how many segments to fetch after it.
    ///   - role: called if the player has not read this rendition before.
    ///   - now: nanoseconds of a clock that never goes back.
    mutating func read(
        _ place: SegmentPlace, by player: PlayerID, _ requester: Requester, ahead: Int, at now: UInt64,
        role: () -> RenditionRole?
    ) -> (Reading, [Action]) {
        let id = PlayheadID(player: player, rendition: place.rendition)
        var actions: [Action] = []
        turns &+= 1
        // This runs for every request of a player: an index avoids hashing the key on each line.
        if let known = entries.index(forKey: id) {
            let continues = entries.values[known].take(place, requester, ahead: ahead, turn: turns, at: now)
            guard !continues else { return (Reading(head: id, turn: turns), startNext(at: known)) }
            actions = stop(id)
        } else {
            let role = role()
            actions = makeWay(for: id, role, at: now)
            let head = Playhead(place.segments, at: place.position, ahead: ahead)
            entries[id] = Entry(head: head, role: role, requester: requester, turn: turns, lastUse: now)
        }
        return (Reading(head: id, turn: turns), actions + proceed(id))
    }

    /// Takes the end of a fetch that was not stopped.
    mutating func ended(_ run: RunID, isThere: Bool) -> [Action] {
        guard let id = runs.removeValue(forKey: run), let piece = entries[id]?.run?.piece else { return [] }
        entries[id]?.run = nil
        entries[id]?.head.ended(piece, isThere: isThere)
        return proceed(id)
    }

    /// Takes the departure of a player before the end of its answer. If it has sent another request since, it
    /// continues there.
    mutating func left(_ reading: Reading) -> [Action] {
        entries[reading.head]?.turn == reading.turn ? forget(reading.head) : []
    }

    /// Takes a newer version of a playlist.
    /// - Parameter segments: the current segments of its renditions.
    mutating func renewed(_ playlist: CacheKey, _ segments: (RenditionID) -> (any SegmentSequence)?) -> [Action] {
        entries.keys.filter { $0.rendition.playlist == playlist }.flatMap { id -> [Action] in
            guard let newer = segments(id.rendition) else { return [] }
            entries[id]?.head.renew(newer)
            return proceed(id)
        }
    }

    mutating func forgetAll() -> [Action] { Array(entries.keys).flatMap { forget($0) } }

    // MARK: -

    private mutating func proceed(_ id: PlayheadID) -> [Action] {
        entries.index(forKey: id).map { startNext(at: $0) } ?? []
    }

    private mutating func startNext(at known: [PlayheadID: Entry].Index) -> [Action] {
        guard let piece = entries.values[known].next() else { return [] }
        turns &+= 1
        let run = RunID(value: turns)
        runs[run] = entries.keys[known]
        entries.values[known].run = (run, piece)
        return [.start(run, piece, entries.values[known].requester)]
    }

    private mutating func stop(_ id: PlayheadID) -> [Action] {
        guard let run = entries[id]?.run?.id else { return [] }
        entries[id]?.run = nil
        runs[run] = nil
        return [.stop(run)]
    }

    private mutating func forget(_ id: PlayheadID) -> [Action] {
        defer { entries[id] = nil }
        return stop(id)
    }

    /// Forgets the playheads of renditions that this one replaces, and those that have not moved for long.
    private mutating func makeWay(for id: PlayheadID, _ role: RenditionRole?, at now: UInt64) -> [Action] {
        var gone = entries.filter { other, entry in
            now > entry.lastUse &+ Self.longestPause
                || other.player == id.player && role != nil && entry.role == role
        }.map(\.key)
        if entries.count - gone.count >= Self.most {
            let rest = entries.filter { !gone.contains($0.key) }
            if let oldest = rest.min(by: { $0.value.lastUse < $1.value.lastUse })?.key { gone.append(oldest) }
        }
        return gone.flatMap { forget($0) }
    }
}
