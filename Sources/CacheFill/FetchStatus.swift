import CachePolicy
import DiskCache
import EventIO
import Synchronization
import Upstream

/// Identifies who follows a fetch.
package struct FollowerID: Hashable, Sendable {
    /// For what it follows.
    package enum Kind: Sendable {
        /// A reader, or a waiting request: somebody waits at the other end.
        case reader
        /// What is filled beyond its reader.
        case fill
        /// It tries again by itself, later, and does not come back at once when it has left.
        case download
    }

    package let kind: Kind
    private let value: UInt64
    private static let next = Atomic<UInt64>(0)

    package init(_ kind: Kind = .reader) {
        self.kind = kind
        value = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }
}

/// What an opening fetch found.
package enum Opening: Sendable {
    /// The resource's generation, from which anyone may read.
    case stored(Generation)
    /// A response that is not stored: a window for the one who asked; others ask for themselves.
    /// - part: the bytes that come, where they are not the whole.
    /// - total: the length of the whole; nil where the origin keeps it to itself (`bytes 0-9/*`).
    case passing(Generation, owner: FollowerID, part: Range<Int64>?, total: Int64?)
    /// The generation that is there still holds, says its origin, with this status.
    case validated(Generation, status: Int)
}

/// How a fetch ended.
package enum FetchEnd: Sendable {
    /// All that was wanted is in the file.
    case completed
    /// Nobody followed it any more, or it met bytes that are there already.
    case stopped
    case failed(FillError)
}

/// What all loops may know of a fetch: how far it is, who follows it. The fetch itself lives on one loop.
///
/// Lock order: a resource's lock may be held when this one is taken, never the other way round.
package final class FetchStatus: Sendable {
    private let state: Mutex<State>

    struct State {
        /// nil until the origin has said what the resource is.
        var opening: Opening?
        /// Offsets that this fetch fills; the upper end is open (`Int64.max`) while the length is unknown.
        var range: Range<Int64>
        /// Up to here its bytes are in the file.
        var frontier: Int64
        var end: FetchEnd?
        /// Up to here bytes were taken in; those past the frontier are yet to be written.
        var received: Int64
        /// At the horizon: waits for its furthest follower.
        var isPaused = false
        var followers: [FollowerID: Cursor] = [:]
        /// The last follower's, once nobody follows any more.
        var departed: Cursor?
        var wasLeftByDownload = false
        var waiters: [FollowerID: @Sendable () -> Void] = [:]
        var fetch: LoopBound<Fetch>?
        /// How far past its furthest follower the fetch goes; past its slowest, once it overflowed.
        var horizon = Horizon(limit: .max)
        /// In bytes; the horizon is never further, as what lies beyond could not be kept.
        var furthest: Int64
        /// Whether what it brings comes in no other way, so that followers wait for it however far ahead they are: the origin sends no
        /// ranges, or nothing would tell whether another answer is of the same version.
        var isOnlyWay = false
        var overflow: Overflow?
        /// Whether what it brings would be kept, if the store had room.
        var lacksRoom = false
        /// The status of the origin's last answer.
        var answer: Int?
        /// Why what it brings passes by.
        var passing: Storing.Reason?
        /// How far its transfer is; nil before the first.
        var phase: UpstreamError.Phase?
    }

    /// From `start` on the bytes stand in a window in memory, as the store has no room and they come in no other way. It takes no more
    /// than what its slowest follower has yet to read.
    package struct Overflow: Sendable {
        package let window: Generation
        package let start: Int64
    }

    /// A follower that is at most so far ahead of the frontier waits for it; one further on gets a fetch of its own.
    static let joinDistance: Int64 = 1 << 20

    /// - Parameter horizon: how far past its furthest follower it goes at most, in bytes.
    init(range: Range<Int64>, horizon: Int64, follower: FollowerID, at offset: Int64) {
        var state = State(range: range, frontier: range.lowerBound, received: range.lowerBound, furthest: horizon)
        state.followers[follower] = Cursor(at: offset)
        self.state = Mutex(state)
    }

    /// A follower's place.
    struct Cursor: Sendable {
        /// Where it began to read.
        var start: Int64
        var offset: Int64
        /// Bytes before this were there before it came: not fetched for it.
        var freshFrom: Int64 = 0

        init(at offset: Int64, freshFrom: Int64 = 0) {
            (start, self.offset, self.freshFrom) = (offset, offset, freshFrom)
        }
    }

    // MARK: For readers

    /// What a follower sees.
    package enum View: Sendable {
        case running(range: Range<Int64>, frontier: Int64)
        case ended(FetchEnd, frontier: Int64)
    }

    package var view: View {
        state.withLock { state in
            state.end.map { .ended($0, frontier: state.frontier) } ?? .running(range: state.range, frontier: state.frontier)
        }
    }

    /// Up to here it has brought bytes: past the frontier, where they are being written.
    var received: Int64 { state.withLock { max($0.received, $0.frontier) } }

    package var opening: Opening? { state.withLock { $0.opening } }

    package var overflow: Overflow? { state.withLock { $0.overflow } }

    /// Whether what it brings passes by only because the store has no room, or its disk fails.
    var lacksRoom: Bool { state.withLock { $0.lacksRoom } }

    /// The status of the origin's last answer; nil before it.
    package var answer: Int? { state.withLock { $0.answer } }

    func answered(_ status: Int) { state.withLock { $0.answer = status } }

    /// How far its transfer is, or was when it ended; nil before the first.
    package var phase: UpstreamError.Phase? { state.withLock { $0.phase } }

    func isIn(_ phase: UpstreamError.Phase) { state.withLock { $0.phase = phase } }

    /// Why what it brings passes by; nil where it is kept, or would be.
    package var passingReason: Storing.Reason? { state.withLock { $0.passing } }

    func mayNotStore(_ reason: Storing.Reason) { state.withLock { $0.passing = reason } }

    func foundNoRoom() { state.withLock { $0.lacksRoom = true } }

    /// Follows this fetch, if it runs and fills `offset` now or soon.
    func join(_ follower: FollowerID, at offset: Int64) -> Bool {
        admit(follower) { $0.end == nil && $0.reaches(offset) ? Cursor(at: offset) : nil }
    }

    /// Follows this fetch, if it runs and fills a chunk now or soon.
    func join(_ follower: FollowerID, filling chunk: Range<Int64>) -> Bool {
        admit(follower) { $0.fills(chunk) ? Cursor(at: max($0.frontier, chunk.lowerBound)) : nil }
    }

    /// Lets a follower in at its place, if it has one. Where nobody followed before but downloads, and it is none, the fetch no longer waits as they
    /// do.
    private func admit(_ follower: FollowerID, _ place: (State) -> Cursor?) -> Bool {
        let (isIn, hurried): (Bool, LoopBound<Fetch>?) = state.withLock { state in
            guard let cursor = place(state) else { return (false, nil) }
            let isFirst = follower.kind != .download && state.followers.keys.allSatisfy { $0.kind == .download }
            state.followers[follower] = cursor
            return (true, isFirst ? state.fetch : nil)
        }
        hurried?.post { $0.hurry() }
        return isIn
    }

    /// Whether a chunk comes from this fetch soon enough to wait for it.
    func fills(_ chunk: Range<Int64>) -> Bool { state.withLock { $0.fills(chunk) } }

    /// Follows a fetch that lingers, to read what it has brought and then what it will bring.
    func takeUp(_ follower: FollowerID, _ wanted: Range<Int64>) -> Bool {
        admit(follower) { state in
            guard state.end == nil, state.followers.isEmpty, state.departed != nil, wanted.contains(state.frontier),
                state.frontier - wanted.lowerBound <= min(state.furthest, state.horizon.limit)
            else { return nil }
            return Cursor(at: wanted.lowerBound, freshFrom: state.frontier)
        }
    }

    /// Follows an opening fetch, whatever it will find. False when it has ended.
    func joinOpening(_ follower: FollowerID) -> Bool {
        admit(follower) { $0.end == nil && $0.opening == nil ? Cursor(at: $0.range.lowerBound) : nil }
    }

    /// Whether the byte at `offset`, which is there, came by this fetch. It may be there before the frontier tells.
    func brings(_ offset: Int64, to follower: FollowerID) -> Bool {
        state.withLock { state in
            state.range.contains(offset) && offset - state.frontier < Self.joinDistance && offset >= state.followers[follower]?.freshFrom ?? 0
        }
    }

    /// Follows this fetch, if what it brings comes in no other way, wherever its frontier is.
    func joinOnlyWay(_ follower: FollowerID, at offset: Int64) -> Bool {
        admit(follower) { $0.end == nil && $0.isOnlyWay ? Cursor(at: offset) : nil }
    }

    /// Whether `offset` will come from this fetch soon enough to wait for it.
    package func reaches(_ offset: Int64) -> Bool {
        state.withLock { $0.end == nil && $0.reaches(offset) }
    }

    /// Tells how far a follower has read; a fetch that paused for it goes on.
    /// - Parameter start: where it began, if the fetch does not know yet.
    package func advance(_ follower: FollowerID, to offset: Int64, from start: Int64? = nil) {
        let resumed: LoopBound<Fetch>? = state.withLock { state in
            guard state.followers[follower] != nil else { return nil }
            if let start { state.followers[follower]?.start = start }
            state.followers[follower]?.offset = offset
            return state.takeResumption()
        }
        resumed?.post { $0.resume() }
    }

    /// Calls `wake` once, at the next news. If there are some already (the frontier is past `offset`, the fetch has ended, or has
    /// found what it opens while `offset` is nil), nothing is registered.
    /// - Returns: whether `wake` will be called.
    package func wait(_ follower: FollowerID, at offset: Int64?, wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if state.end != nil { return false }
            if let offset { if state.frontier > offset { return false } } else if state.opening != nil { return false }
            state.waiters[follower] = wake
            return true
        }
    }

    /// Follows no longer. A fetch without followers comes to an end, when it has lingered.
    package func leave(_ follower: FollowerID) {
        let (abandoned, resumed): (LoopBound<Fetch>?, LoopBound<Fetch>?) = state.withLock { state in
            state.waiters[follower] = nil
            guard let cursor = state.followers.removeValue(forKey: follower), state.end == nil else { return (nil, nil) }
            guard state.followers.isEmpty else { return (nil, state.takeResumption()) }
            state.departed = cursor
            state.wasLeftByDownload = follower.kind == .download
            return (state.fetch, nil)
        }
        abandoned?.post { $0.considerStopping() }
        resumed?.post { $0.resume() }
    }

    // MARK: For the fetch

    func attach(_ fetch: LoopBound<Fetch>, horizon: Horizon) {
        state.withLock { ($0.fetch, $0.horizon) = (fetch, horizon) }
    }

    /// Ends a fetch that lingers, as another one has begun: of seeks in a row only the last leaves one behind.
    func supersede() {
        state.withLock { $0.end == nil && $0.followers.isEmpty ? $0.fetch : nil }?.post { $0.endLinger() }
    }

    /// The origin has answered: what it is, and which bytes come.
    /// - Parameter horizon: how far past its furthest follower it goes at most, in bytes.
    func opened(_ opening: Opening, range: Range<Int64>, horizon: Int64, isOnlyWay: Bool) {
        ring { state in
            state.opening = opening
            state.isOnlyWay = isOnlyWay
            state.furthest = horizon
            state.range = range
            (state.frontier, state.received) = (range.lowerBound, range.lowerBound)
        }
    }

    /// A fetch for a gap turned out to bring the whole, as the origin sends no ranges.
    func moved(to range: Range<Int64>) {
        ring { state in
            state.isOnlyWay = true
            state.range = range
            (state.frontier, state.received) = (range.lowerBound, range.lowerBound)
        }
    }

    /// What comes from `start` on goes into a window.
    func overflowed(into window: Generation, at start: Int64, horizon: Int64) {
        ring { state in
            state.overflow = Overflow(window: window, start: start)
            state.furthest = horizon
        }
    }

    func published(_ frontier: Int64) {
        ring { $0.frontier = frontier }
    }

    func ended(_ end: FetchEnd) {
        ring { state in
            state.end = end
            state.fetch = nil
        }
    }

    /// Ends the fetch if nobody follows it; nobody can join once this has answered true.
    func endIfAbandoned() -> Bool {
        state.withLock { state in
            guard state.followers.isEmpty, state.end == nil else { return false }
            state.end = .stopped
            state.fetch = nil
            return true
        }
    }

    var isAbandoned: Bool { state.withLock { $0.followers.isEmpty } }

    /// Whether the last that left was a download.
    var wasLeftByDownload: Bool { state.withLock { $0.wasLeftByDownload } }

    /// Whether nobody waits for it but downloads.
    var isForDownloads: Bool { state.withLock { state in !state.followers.isEmpty && state.followers.keys.allSatisfy { $0.kind == .download } } }

    /// Whether bytes come in that a reader needs soon.
    var isBeingRead: Bool {
        state.withLock { state in
            state.end == nil && !state.isPaused && state.followers.contains { $0.key.kind == .reader && !state.isAhead(of: $0.value, byQuarters: 4) }
        }
    }

    /// Pauses at the horizon. Answers whether it did; then a follower's `advance` resumes.
    /// - Parameters:
    ///   - received: up to where it has taken bytes in.
    ///   - position: up to where they are in the file.
    func pauseIfFarAhead(received: Int64, writtenTo position: Int64) -> Bool {
        state.withLock { state in
            state.frontier = position
            state.received = received
            guard state.isAhead(byQuarters: 4) else { return false }
            state.isPaused = true
            return true
        }
    }

    /// The offset of the follower that is furthest behind; nil without followers.
    var slowestFollower: Int64? { state.withLock { $0.followers.values.lazy.map(\.offset).min() } }

    /// Changes the state and wakes who waits, outside of the lock.
    private func ring(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            guard !state.waiters.isEmpty else { return [FollowerID: @Sendable () -> Void]() }
            defer { state.waiters = [:] }
            return state.waiters
        }
        for wake in waiters.values { wake() }
    }
}

extension FetchStatus.State {
    /// Whether so many quarters of the horizon, or more, have been taken in ahead of the furthest follower; of the slowest, where what it
    /// lacks is kept in memory. Where nobody follows any more, whether all has been taken in that is fetched for one who may come back.
    func isAhead(byQuarters quarters: Int64) -> Bool {
        guard !followers.isEmpty else {
            return departed.map { received - $0.offset >= min(furthest, horizon.reach(afterLeaving: $0.offset - $0.start)) } ?? false
        }
        let isBeyond = { isAhead(of: $0, byQuarters: quarters) }
        return overflow == nil ? followers.values.allSatisfy(isBeyond) : followers.values.contains(where: isBeyond)
    }

    func isAhead(of cursor: FetchStatus.Cursor, byQuarters quarters: Int64) -> Bool {
        received - cursor.offset >= min(furthest, horizon.reach(afterReading: cursor.offset - cursor.start)) / 4 * quarters
    }

    /// The fetch, if it is paused and may go on by now.
    mutating func takeResumption() -> LoopBound<Fetch>? {
        guard isPaused, end == nil, !isAhead(byQuarters: 3) else { return nil }
        isPaused = false
        return fetch
    }

    func reaches(_ offset: Int64) -> Bool {
        range.contains(offset) && offset >= frontier && (isOnlyWay || offset - frontier <= FetchStatus.joinDistance)
    }

    func fills(_ chunk: Range<Int64>) -> Bool {
        end == nil && range.overlaps(chunk) && frontier < chunk.upperBound && (isOnlyWay || chunk.lowerBound - frontier <= FetchStatus.joinDistance)
    }
}
