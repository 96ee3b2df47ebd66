import CachePolicy
import DiskCache
import EventIO
import Synchronization

/// A resource in use: its current generation, and the fetches that are running for it.
///
/// Loops use it at once; the state is inside the mutex. Lock order: this lock before a fetch's status, before a generation's state.
package final class OpenResource: Sendable {
    package let key: CacheKey
    private let state = Mutex(State())

    fileprivate struct State {
        var lookup = Lookup.notStarted
        /// Whether what is being looked up may be an old answer.
        var isLookupOld = false
        /// Whether the last look-up could not be made.
        var isUnreadable = false
        var generation: Generation?
        /// The fetch that will tell what this resource is.
        var opening: FetchStatus?
        /// Running fetches for gaps of the current generation.
        var fetches: [ObjectIdentifier: FetchStatus] = [:]
        /// The last one that nobody followed any more.
        var lingering: FetchStatus?
        var filling: Filling?
        var play: OngoingPlay?
        var waiters: [@Sendable () -> Void] = []
        var lastUse: UInt64 = 0
        // What a running opening finds out about the generation that goes is for those who wait for it already.
        mutating func forgetGeneration() { (generation, fetches, opening) = (nil, [:], nil) }

        var pinning = Pinning.notYet
    }

    /// What is filled in the background (`ResourceFill`).
    fileprivate struct Filling {
        let generation: Generation
        /// All from here on is to be there in the end.
        var start: Int64
    }

    fileprivate enum Lookup { case notStarted, running, done }

    /// Whether it is pinned by a rule. `again`: there may be more to pin than there was when it was begun.
    fileprivate enum Pinning { case notYet, running, again, done }

    init(_ key: CacheKey) { self.key = key }

    /// What is known without waiting.
    package enum View: Sendable {
        case generation(Generation)
        /// Nothing is cached.
        case unknown
        /// The index has to be asked; whoever gets this answer asks it (`CacheFiller.lookUp`).
        case mustLookUp
        case lookingUp
        /// The index or the file cannot be read at this moment: nothing may take the place of what is perhaps there.
        case unreadable
    }

    package func view() -> View {
        state.withLock { state in
            state.lastUse = MonotonicClock.nanoseconds()
            if let generation = state.generation, !generation.isRetired { return .generation(generation) }
            switch state.lookup {
            case .notStarted where state.isUnreadable:
                // The next request asks again.
                state.isUnreadable = false
                return .unreadable
            case .notStarted:
                state.lookup = .running
                return .mustLookUp
            case .running: return .lookingUp
            case .done: return .unknown
            }
        }
    }

    /// Calls `wake` when the index has answered; at once if it has.
    package func whenLookedUp(_ wake: @escaping @Sendable () -> Void) {
        let isRunning = state.withLock { state in
            guard case .running = state.lookup else { return false }
            state.waiters.append(wake)
            return true
        }
        if !isRunning { wake() }
    }

    /// - Parameter found: nil where it could not be looked up.
    func lookedUp(_ found: Generation??) {
        let waiters = state.withLock { state in
            state.lookup = state.isLookupOld || found == nil ? .notStarted : .done
            state.isUnreadable = found == nil
            if !state.isLookupOld, state.generation == nil { state.generation = found ?? nil }
            state.isLookupOld = false
            defer { state.waiters = [] }
            return state.waiters
        }
        for wake in waiters { wake() }
    }

    /// - Returns: whether the caller has to pin it.
    func beginPinning() -> Bool {
        state.withLock { state in
            switch state.pinning {
            case .notYet:
                state.pinning = .running
                return true
            case .running:
                state.pinning = .again
                return false
            case .again, .done: return false
            }
        }
    }

    /// - Returns: whether it has to be tried once more.
    func endPinning(isPinned: Bool) -> Bool {
        state.withLock { state in
            let isWantedAgain = !isPinned && state.pinning == .again
            state.pinning = isPinned ? .done : isWantedAgain ? .running : .notYet
            return isWantedAgain
        }
    }

    // MARK: Fetches

    /// Follows the opening fetch that is running, or becomes the one that starts it.
    /// - Parameter validated: the generation whose origin is to be asked whether it still holds; nil where there is none.
    /// - Returns: the status, and whether the caller has to start the fetch; nil where another generation is known by now.
    func open(_ follower: FollowerID, validating validated: Generation?, make: () -> FetchStatus) -> (FetchStatus, isNew: Bool)? {
        state.withLock { state in
            if let generation = state.generation, !generation.isRetired, generation !== validated { return nil }
            if let running = state.opening, running.joinOpening(follower) { return (running, false) }
            let status = make()
            state.opening = status
            return (status, true)
        }
    }

    /// Follows the opening fetch that is running, if there is one.
    package func joinOpening(_ follower: FollowerID) -> FetchStatus? {
        state.withLock { state in state.opening.flatMap { $0.joinOpening(follower) ? $0 : nil } }
    }

    /// Follows a running fetch that brings the byte at `offset`, now or soon.
    func join(_ follower: FollowerID, of generation: Generation, at offset: Int64) -> FetchStatus? {
        state.withLock { state in
            guard state.generation === generation else { return nil }
            return state.fetches.values.first { $0.join(follower, at: offset) }
        }
    }

    /// Follows the running fetch by which alone the generation can be completed, so that it is not stopped before.
    func joinOnlyWay(_ follower: FollowerID, of generation: Generation, at offset: Int64) -> FetchStatus? {
        state.withLock { state in
            guard state.generation === generation else { return nil }
            return state.fetches.values.first { $0.joinOnlyWay(follower, at: offset) }
        }
    }

    /// Follows the fetch that lingers, if what lies between it and `wanted` is there, and more is wanted: it is kept for that.
    func takeUp(_ follower: FollowerID, _ wanted: Range<Int64>, of generation: Generation) -> FetchStatus? {
        state.withLock { state in
            guard state.generation === generation, let fetch = state.lingering, case .running(_, let frontier) = fetch.view, wanted.contains(frontier)
            else { return nil }
            let last = generation.geometry.chunkStart(generation.geometry.chunk(at: frontier))
            guard last <= wanted.lowerBound || generation.gap(in: wanted.lowerBound..<last) == nil, fetch.takeUp(follower, wanted) else { return nil }
            return fetch
        }
    }

    /// Follows a running fetch that fills a chunk, now or soon.
    func join(_ follower: FollowerID, of generation: Generation, filling chunk: Range<Int64>) -> FetchStatus? {
        state.withLock { state in
            guard state.generation === generation else { return nil }
            return state.fetches.values.first { $0.join(follower, filling: chunk) }
        }
    }

    /// Becomes the one that starts a fetch for the gap at the start of `wanted`, if that is still one that nobody fills.
    func demand(_ wanted: Range<Int64>, of generation: Generation, _ follower: FollowerID, horizon: Int64) -> FetchStatus? {
        let (status, former): (FetchStatus?, [FetchStatus]) = state.withLock { state in
            guard state.generation === generation else { return (nil, []) }
            let rounded = generation.geometry.roundedOut(wanted, length: generation.length)
            guard var gap = generation.gap(in: rounded), gap.contains(wanted.lowerBound) else { return (nil, []) }
            for fetch in state.fetches.values {
                // Between the look at the bytes and here, one may have come by or begun.
                if fetch.reaches(wanted.lowerBound) { return (nil, []) }
                // What another is about to bring is left to it, unless it ends with this one's begin.
                if !fetch.isAbandoned, case .running(_, let frontier) = fetch.view, frontier > gap.lowerBound, frontier < gap.upperBound {
                    gap = gap.lowerBound..<generation.geometry.chunkStart(generation.geometry.chunk(at: frontier))
                }
            }
            guard gap.contains(wanted.lowerBound) else { return (nil, []) }
            let abandoned = state.fetches.values.filter(\.isAbandoned)
            let status = FetchStatus(range: gap, horizon: horizon, follower: follower, at: wanted.lowerBound)
            state.fetches[ObjectIdentifier(status)] = status
            return (status, abandoned + (state.takeLingering().map { [$0] } ?? []))
        }
        for fetch in former { fetch.supersede() }
        return status
    }

    /// Nobody follows a fetch any more. Only one of them stays for a while.
    func lingers(_ status: FetchStatus) {
        let former = state.withLock { state in
            let former = state.lingering === status ? nil : state.takeLingering()
            state.lingering = state.fetches[ObjectIdentifier(status)]
            return former
        }
        former?.supersede()
    }

    // MARK: What passes by

    /// The play that a request belongs to, if there is one.
    func play(at now: UInt64, mayBegin: Bool) -> OngoingPlay? {
        state.withLock { state in state.play.flatMap { $0.goesOn(at: now, mayBegin: mayBegin) ? $0 : nil } }
    }

    /// A transfer of a play begins; `endedTransferOfPlay` has to follow.
    func beganTransferOfPlay(from source: String?, _ version: OngoingPlay.Version, at now: UInt64) {
        state.withLock { state in
            let transfers = state.play?.transfers ?? 0
            state.play = OngoingPlay(source: source, version: version, transfers: transfers + 1, lastUse: now)
        }
    }

    func endedTransferOfPlay(at now: UInt64) {
        state.withLock { state in
            state.play?.transfers -= 1
            state.play?.lastUse = now
        }
    }

    /// What the play came from is no longer there, or its origin has said that it still holds.
    func changePlay(_ change: (inout OngoingPlay) -> Void) {
        state.withLock { state in
            guard var play = state.play else { return }
            change(&play)
            state.play = play
        }
    }

    // MARK: Filling in the background

    /// Has all from `start` on filled.
    /// - Returns: whether the caller has to do it; else who does it already knows of this.
    func beginFilling(_ generation: Generation, from start: Int64) -> Bool {
        state.withLock { state in
            guard state.generation === generation else { return false }
            if let filling = state.filling, filling.generation === generation {
                state.filling?.start = min(filling.start, start)
                return false
            }
            state.filling = Filling(generation: generation, start: start)
            return true
        }
    }

    /// All from `offset` on is there.
    /// - Returns: where to begin with what lies before; nil where that is all, and the next may begin anew.
    func filled(_ generation: Generation, from offset: Int64) -> Int64? {
        state.withLock { state in
            guard let filling = state.filling, filling.generation === generation else { return nil }
            if filling.start < offset { return filling.start }
            state.filling = nil
            return nil
        }
    }

    func endFilling(_ generation: Generation) {
        state.withLock { state in
            if state.filling?.generation === generation { state.filling = nil }
        }
    }

    /// An opening fetch found a generation to keep: it is the current one, and the fetch is one of its fetches.
    /// - Returns: whether it is, and the generation that was current before. It is not where what it was asked about has changed meanwhile.
    func opened(_ generation: Generation, by status: FetchStatus) -> (isCurrent: Bool, previous: Generation?) {
        state.withLock { state in
            guard state.opening === status else { return (false, nil) }
            let previous = state.generation
            state.generation = generation
            state.fetches = [ObjectIdentifier(status): status]
            state.opening = nil
            return (true, previous)
        }
    }

    func ended(_ status: FetchStatus) {
        state.withLock { state in
            if state.lingering === status { state.lingering = nil }
            state.fetches[ObjectIdentifier(status)] = nil
            if state.opening === status { state.opening = nil }
        }
    }

    /// What an opening fetch is about to find was made before the origin changed: it is for those who wait for it already, and not kept.
    func outdateOpening() {
        state.withLock { state in
            state.opening = nil
        }
    }

    /// The origin no longer has this generation.
    func invalidate(_ generation: Generation) {
        state.withLock { state in
            guard state.generation === generation else { return }
            state.forgetGeneration()
        }
    }

    /// The store has another generation, or none: what is known is forgotten, unless it is newer.
    func lookAgain(after former: Generation?) {
        state.withLock { state in
            guard state.generation == nil || state.generation === former else { return }
            if state.generation != nil { state.forgetGeneration() }
            switch state.lookup {
            case .notStarted: break
            case .running: state.isLookupOld = true
            case .done: state.lookup = .notStarted
            }
        }
    }

    /// About what it holds in memory.
    var memoryBytes: Int { state.withLock { $0.generation }?.memoryBytes ?? 0 }

    /// When it was last used; nil while something runs here. What passes by has no generation here, and counts as its play.
    var idleSince: UInt64? {
        state.withLock { state in
            guard state.opening == nil, state.fetches.isEmpty, state.waiters.isEmpty, state.generation?.isInUse != true, state.play?.transfers ?? 0 == 0
            else { return nil }
            return max(state.lastUse, state.play?.lastUse ?? 0)
        }
    }
}

extension OpenResource.State {
    fileprivate mutating func takeLingering() -> FetchStatus? {
        defer { lingering = nil }
        return lingering
    }
}
