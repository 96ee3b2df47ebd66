import CachePolicy
import DiskCache
import EventIO
import Synchronization

/// A resource in use: its current generation, and the fetches that are running for it.
///
/// The lock and the shell of `ResourceState`: what that says is to be done is done here, when the lock is free again.
/// Loops use it at once. Lock order: this lock before a generation's state.
package final class OpenResource: Sendable {
    package let key: CacheKey
    private let state = Mutex(State())

    struct State {
        fileprivate var lookup = Lookup.notStarted
        /// Whether what is being looked up may be an old answer.
        fileprivate var isLookupOld = false
        /// Whether the last look-up could not be made.
        fileprivate var isUnreadable = false
        fileprivate(set) var generation: Generation?
        var resource = ResourceState()
        /// What those call who wait for news of a fetch.
        var wakers: [FollowerID: @Sendable () -> Void] = [:]
        /// The fetches themselves, as far as they have come to their loops.
        var loops: [FetchID: LoopBound<Fetch>] = [:]
        fileprivate var filling: Filling?
        fileprivate var play: OngoingPlay?
        fileprivate var waiters: [@Sendable () -> Void] = []
        /// One that is new has not been looked at by whoever it was made for.
        fileprivate var lastUse = MonotonicClock.nanoseconds()
        fileprivate var pinning = Pinning.notYet

        /// Whether it is the resource's, and no other has taken its place.
        fileprivate func isCurrent(_ generation: Generation) -> Bool {
            self.generation === generation && !generation.isRetired
        }

        fileprivate mutating func forgetGeneration() {
            generation = nil
            resource.forgetGeneration()
        }
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
        /// The index is being asked.
        case lookingUp
        /// The index or the file cannot be read at this moment: nothing may take the place of what is perhaps there.
        case unreadable
    }

    /// - Returns: nil where the index has to be asked: who gets this answer asks it, and says what it has found
    ///   (`lookedUp`).
    func view() -> View? {
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
                return nil
            case .running: return .lookingUp
            case .done: return .unknown
            }
        }
    }

    /// Its generation, as far as it is known; nobody is asked.
    var current: Generation? {
        state.withLock { state in state.generation.flatMap { $0.isRetired ? nil : $0 } }
    }

    /// Calls `wake` when the index has answered; at once if it has.
    func whenLookedUp(_ wake: @escaping @Sendable () -> Void) {
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

    /// Looks at the state, or changes what nobody is told of.
    func look<Value>(_ look: (inout State) -> Value) -> Value { state.withLock { look(&$0) } }

    /// Changes the state, and then does what that says is to be done.
    func change<Value>(_ change: (inout State) -> Value) -> Value {
        let (value, effects, gone) = state.withLock { state in
            (change(&state), state.takeEffects(), state.resource.takeGone())
        }
        for effect in effects { effect.run() }
        // Until here: it gives back memory.
        _ = gone
        return value
    }

    /// Follows the opening fetch that is running, or becomes the one that starts it.
    /// - Parameter validated: the generation whose origin is to be asked whether it still holds; nil where there is
    ///   none.
    /// - Returns: the fetch, and whether the caller has to start it; nil where another generation is known by now.
    func open(
        _ follower: FollowerID, validating validated: Generation?, _ range: Range<Int64>, _ reach: ResourceState.Reach
    ) -> (SharedFetch, isNew: Bool)? {
        let opened: (FetchID, isNew: Bool)? = change { state in
            if let generation = state.generation, !generation.isRetired, generation !== validated { return nil }
            if let running = state.resource.followOpening(follower) { return (running, false) }
            return (state.resource.enter(range, reach, follower, at: range.lowerBound, isOpening: true), true)
        }
        return opened.map { (SharedFetch(resource: self, id: $0.0), $0.isNew) }
    }

    /// A fetch that is for one request alone.
    func openAlone(_ follower: FollowerID, at offset: Int64, _ range: Range<Int64>, _ reach: ResourceState.Reach)
        -> SharedFetch
    {
        SharedFetch(
            resource: self, id: change { $0.resource.enter(range, reach, follower, at: offset, isOpening: false) })
    }

    /// Follows the opening fetch that is running, if there is one.
    package func joinOpening(_ follower: FollowerID) -> SharedFetch? {
        change { $0.resource.followOpening(follower) }.map { SharedFetch(resource: self, id: $0) }
    }

    /// Follows the running fetch by which alone the generation can be completed, so that it is not stopped before.
    func joinUnresumable(_ follower: FollowerID, of generation: Generation, at offset: Int64) -> SharedFetch? {
        change { state in state.isCurrent(generation) ? state.resource.followUnresumable(follower, at: offset) : nil }
            .map { SharedFetch(resource: self, id: $0) }
    }

    /// Follows the fetch that lingers, if what lies between it and `wanted` is there, and more is wanted: it is kept
    /// for that.
    func takeUp(_ follower: FollowerID, _ wanted: Range<Int64>, of generation: Generation) -> SharedFetch? {
        change { state in
            state.isCurrent(generation) ? state.resource.followLingering(follower, wanted, generation.presence) : nil
        }
        .map { SharedFetch(resource: self, id: $0) }
    }

    /// Where a byte is (`ResourceState.locate`), and who is woken when there is news of it.
    /// - Parameters:
    ///   - isThere: whether it is there by now. Called with the resource's lock held, as `reach` is: a look at the
    ///     generation, the ledger and the settings.
    ///   - wake: called once, from any thread, where it is on its way.
    func locate(
        _ request: ResourceState.Request, in generation: Generation, isThere: () -> Bool,
        reach: () -> ResourceState.Reach?,
        wake: @escaping @Sendable () -> Void
    ) -> ResourceState.Whereabouts {
        change { state in
            let found = state.resource.locate(
                request, isCurrent: state.isCurrent(generation), in: generation, generation.presence, isThere: isThere,
                reach: reach)
            switch found {
            case .coming: state.wakers[request.follower] = wake
            case .present, .passing, .failed, .lost, .unsettled: state.wakers[request.follower] = nil
            }
            return found
        }
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
    /// - Parameters:
    ///   - range: the bytes that the fetch brings.
    ///   - furthest: how far past its furthest follower it goes at most, in bytes.
    /// - Returns: whether it is, and the generation that was current before. It is not where what it was asked about
    ///   has changed meanwhile.
    func opened(
        _ generation: Generation, by fetch: SharedFetch, _ range: Range<Int64>, furthest: Int64, isUnresumable: Bool
    ) -> (isCurrent: Bool, previous: Generation?) {
        change { state in
            guard state.resource.becomesCurrent(fetch.id) else { return (false, nil) }
            let previous = state.generation
            state.generation = generation
            state.resource.ring(fetch.id) {
                $0.opened(.stored(generation), range, furthest: furthest, isUnresumable: isUnresumable)
            }
            return (true, previous)
        }
    }

    /// What an opening fetch found, or what one brings past the cache, is not kept.
    func passes(_ opening: Opening, by fetch: SharedFetch, _ range: Range<Int64>, furthest: Int64, isUnresumable: Bool)
    {
        change { state in
            state.resource.passes(fetch.id)
            state.resource.ring(fetch.id) {
                $0.opened(opening, range, furthest: furthest, isUnresumable: isUnresumable)
            }
        }
    }

    /// What an opening fetch is about to find was made before the origin changed: it is for those who wait for it
    /// already, and not kept.
    func outdateOpening() {
        state.withLock { $0.resource.outdateOpening() }
    }

    /// The origin no longer has this generation.
    func invalidate(_ generation: Generation) {
        change { state in
            guard state.generation === generation else { return }
            state.forgetGeneration()
        }
    }

    /// The store has another generation, or none: what is known is forgotten, unless it is newer.
    func lookAgain(after former: Generation?) {
        change { state in
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

    /// When it was last used; nil while something runs here. What passes by has no generation here, and counts as its
    /// play.
    var idleSince: UInt64? {
        state.withLock { state in
            guard state.resource.isIdle, state.waiters.isEmpty, state.generation?.isInUse != true,
                state.play?.transfers ?? 0 == 0
            else { return nil }
            return max(state.lastUse, state.play?.lastUse ?? 0)
        }
    }
}

extension OpenResource.State {
    /// What is to be done about a change, once the lock is free.
    fileprivate enum Effect {
        case wake(@Sendable () -> Void)
        case tell(LoopBound<Fetch>, ResourceState.Notice)

        func run() {
            switch self {
            case .wake(let wake): wake()
            case .tell(let fetch, let notice): fetch.post { $0.hear(notice) }
            }
        }
    }

    fileprivate mutating func takeEffects() -> [Effect] {
        resource.takeActions().compactMap { action in
            switch action {
            case .wake(let follower): wakers.removeValue(forKey: follower).map { .wake($0) }
            // One that has not come to its loop yet looks around when it has.
            case .tell(let id, let notice): loops[id].map { .tell($0, notice) }
            }
        }
    }
}

extension Generation {
    fileprivate var presence: ResourceState.Presence {
        ResourceState.Presence(geometry: geometry) { [self] range in gap(in: geometry.roundedOut(range, length: length))
        }
    }
}
