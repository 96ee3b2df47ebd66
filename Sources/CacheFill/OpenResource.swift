import CachePolicy
import DiskCache
import EventIO
import Synchronization

/// A resource in use: its current generation and its running fetches.
///
/// It puts a lock around `ResourceState` and carries out the actions which that returns, after releasing the lock. All
/// loops use it concurrently. Lock order: this lock before a generation's state.
package final class OpenResource: Sendable {
    package let key: CacheKey
    private let state = Mutex(State())
    /// Whether it has fetches, or had a moment ago.
    private let isFetched = Atomic(false)

    struct State {
        fileprivate var lookup = Lookup()
        fileprivate(set) var generation: Generation?
        var resource = ResourceState()
        /// Called to wake followers that wait for news of a fetch.
        var wakers: [FollowerID: @Sendable () -> Void] = [:]
        /// Called to notify fetches, once they have reached their loops: few, nearly always one.
        var loops: [(id: FetchState.ID, hear: @Sendable (ResourceState.Notice) -> Void)] = []
        fileprivate var filling: Filling?
        fileprivate var play: OngoingPlay?
        /// Set at creation: a new resource has not been looked at by its creator yet.
        fileprivate var lastUse = MonotonicClock.nanoseconds()
        fileprivate var pinning = Pinning.notYet
        fileprivate var changes = 0
        /// Set while the current generation is to take the place of one that is kept, once it is whole.
        fileprivate var succession: Succession?

        /// Whether the generation is the resource's current one.
        fileprivate func isCurrent(_ generation: Generation) -> Bool {
            self.generation === generation && !generation.isRetired
        }

        fileprivate mutating func forgetGeneration() {
            // The store has the one before.
            if succession != nil { forgetLookup() }
            (generation, succession) = (nil, nil)
            resource.forgetGeneration()
        }

        fileprivate mutating func forgetLookup() {
            switch lookup.phase {
            case .notStarted: break
            case .running: lookup.isOld = true
            case .done: lookup.phase = .notStarted
            }
        }

        /// Whether nobody has used a generation that is not whole for a while, or nobody does after a failure.
        private func isLeft(_ generation: Generation, _ succession: Succession, at now: UInt64) -> Bool {
            let isOver = succession == .failed || now &- lastUse >= Self.longestSeek
            return generation.isRetired || isOver && resource.isIdle && !generation.isInUse
        }

        /// A player may close its connection to seek, or while it has enough. In nanoseconds.
        private static let longestSeek: UInt64 = 300_000_000_000

        fileprivate mutating func view() -> View? {
            let now = MonotonicClock.nanoseconds()
            if let succession, let generation, isLeft(generation, succession, at: now) { forgetGeneration() }
            lastUse = now
            if let generation, !generation.isRetired { return .generation(generation) }
            switch lookup.phase {
            case .notStarted where lookup.hasFailed:
                // The next request asks again.
                lookup.hasFailed = false
                return .unreadable
            case .notStarted:
                lookup.phase = .running
                return nil
            case .running: return .lookingUp
            case .done: return .unknown
            }
        }

        /// - Returns: who waits for it.
        fileprivate mutating func lookedUp(_ found: Generation??) -> [@Sendable () -> Void] {
            defer { (lookup.isOld, lookup.waiters) = (false, []) }
            lookup.phase = lookup.isOld || found == nil ? .notStarted : .done
            lookup.hasFailed = found == nil
            if !lookup.isOld, generation == nil { generation = found ?? nil }
            return lookup.waiters
        }

        mutating func standing(of id: FetchState.ID) -> SharedFetch.Standing {
            let (isForDownloads, isAbandoned) =
                resource.with(id) { ($0.isForDownloads, $0.isAbandoned) } ?? (false, true)
            return SharedFetch.Standing(
                isForDownloads: isForDownloads, isAbandoned: isAbandoned, play: play, changes: changes)
        }
    }

    /// A fill in the background (`ResourceFill`).
    fileprivate struct Filling {
        let generation: Generation
        /// Everything from here on will be filled in the end.
        var start: Int64
    }

    enum Succession { case running, failed }

    /// Whether a rule has pinned it. `again`: more may have become known since the running attempt began.
    fileprivate enum Pinning { case notYet, running, again, done }

    init(_ key: CacheKey) { self.key = key }

    /// What is known without waiting.
    package enum View: Sendable {
        case generation(Generation)
        /// Nothing is cached.
        case unknown
        /// The index is being read.
        case lookingUp
        /// The index or the file cannot be read at the moment: whatever may be stored must not be replaced.
        case unreadable
    }

    /// - Returns: nil if the index has to be read. The caller that gets nil reads it and reports the result
    ///   (`lookedUp`).
    func view() -> View? { state.withLock { $0.view() } }

    /// Reports that the index lacks it (`lookedUp`).
    /// - Returns: what is known then.
    func viewOfUnknown() -> View? {
        let (waiters, view) = state.withLock { state in (state.lookedUp(.some(nil)), state.view()) }
        for wake in waiters { wake() }
        return view
    }

    /// The current generation, if known; does not read the index.
    var current: Generation? {
        state.withLock { state in state.generation.flatMap { $0.isRetired ? nil : $0 } }
    }

    /// Calls `wake` when the index has answered; at once if it has already.
    func whenLookedUp(_ wake: @escaping @Sendable () -> Void) {
        let isRunning = state.withLock { state in
            guard case .running = state.lookup.phase else { return false }
            state.lookup.waiters.append(wake)
            return true
        }
        if !isRunning { wake() }
    }

    /// - Parameter found: nil if the look-up failed.
    func lookedUp(_ found: Generation??) {
        for wake in state.withLock({ $0.lookedUp(found) }) { wake() }
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

    /// - Returns: whether to try once more.
    func endPinning(isPinned: Bool) -> Bool {
        state.withLock { state in
            let isWantedAgain = !isPinned && state.pinning == .again
            state.pinning = isPinned ? .done : isWantedAgain ? .running : .notYet
            return isWantedAgain
        }
    }

    // MARK: Fetches

    /// Reads the state, or changes it where no follower and no fetch has to be told.
    func look<Value>(_ look: (inout State) -> Value) -> Value { state.withLock { look(&$0) } }

    /// Changes the state, then carries out the resulting actions outside the lock.
    func change<Value>(_ change: (inout State) -> Value) -> Value {
        let (value, effects, gone) = state.withLock { state in
            defer { isFetched.store(!state.resource.fetches.isEmpty, ordering: .releasing) }
            return (change(&state), state.takeEffects(), state.resource.takeGone())
        }
        for effect in effects { effect.run() }
        // Keeps ended fetches alive until here: freeing their memory takes time.
        _ = gone
        return value
    }

    /// Joins the running opening, or enters a new one that the caller starts.
    /// - Parameter validated: the stored generation to revalidate; nil if there is none.
    /// - Returns: the fetch, and whether the caller has to start it; nil if another generation has become known.
    func open(
        _ follower: FollowerID, validating validated: Generation?, _ range: Range<Int64>, _ reach: ResourceState.Reach,
        _ requester: Requester? = nil
    ) -> (SharedFetch, isNew: Bool)? {
        let opened: (FetchState.ID, isNew: Bool)? = change { state in
            if let generation = state.generation, !generation.isRetired, generation !== validated { return nil }
            if let running = state.resource.followOpening(follower) { return (running, false) }
            return (
                state.resource.enter(range, reach, follower, at: range.lowerBound, isOpening: true, requester), true
            )
        }
        return opened.map { (SharedFetch(resource: self, id: $0.0), $0.isNew) }
    }

    /// Enters a fetch for one request alone.
    func openAlone(
        _ follower: FollowerID, at offset: Int64, _ range: Range<Int64>, _ reach: ResourceState.Reach,
        _ requester: Requester? = nil
    ) -> SharedFetch {
        SharedFetch(
            resource: self,
            id: change { $0.resource.enter(range, reach, follower, at: offset, isOpening: false, requester) })
    }

    /// Joins the running opening, if there is one.
    package func joinOpening(_ follower: FollowerID) -> SharedFetch? {
        change { $0.resource.followOpening(follower) }.map { SharedFetch(resource: self, id: $0) }
    }

    /// Joins the fetch that alone can complete the generation, so that it is not stopped too early.
    func joinUnresumable(_ follower: FollowerID, of generation: Generation, at offset: Int64) -> SharedFetch? {
        change { state in state.isCurrent(generation) ? state.resource.followUnresumable(follower, at: offset) : nil }
            .map { SharedFetch(resource: self, id: $0) }
    }

    /// Joins the lingering fetch if more than the present bytes up to its frontier is wanted, so that it is kept for
    /// the rest.
    func takeUp(_ follower: FollowerID, _ wanted: Range<Int64>, of generation: Generation) -> SharedFetch? {
        guard isFetched.load(ordering: .acquiring) else { return nil }
        return change { state in
            state.isCurrent(generation) ? state.resource.followLingering(follower, wanted, generation.presence) : nil
        }
        .map { SharedFetch(resource: self, id: $0) }
    }

    /// Locates a byte (`ResourceState.locate`), and registers the follower's `wake`.
    /// - Parameters:
    ///   - isThere: whether the byte is present by now. Called with the resource's lock held, as is `reach`: these look
    ///     at the generation and the settings.
    ///   - wake: called once, from any thread, if the byte is on its way.
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

    // MARK: Responses that pass through

    /// The last play, if there was one.
    var play: OngoingPlay? { state.withLock { $0.play } }

    /// A transfer of a play begins; the caller must call `endedTransferOfPlay`.
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

    /// Changes the play, if there is one: its source has gone, or the origin has confirmed its version.
    func changePlay(_ change: (inout OngoingPlay) -> Void) {
        state.withLock { state in
            guard var play = state.play else { return }
            change(&play)
            state.play = play
        }
    }

    // MARK: Filling in the background

    /// Extends the background fill to begin at `start`.
    /// - Returns: whether the caller has to do the filling; otherwise the running fill will.
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

    /// Everything from `offset` on is present.
    /// - Returns: where to begin with the part before; nil if there is none, and the fill is over.
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

    /// Makes the generation that an opening has found the current one, and lets others follow the fetch.
    /// - Parameters:
    ///   - range: the range that the fetch delivers.
    ///   - furthest: the limit on its read-ahead window, in bytes.
    /// - Returns: whether the generation is current now, and the one before it. It does not become current if the
    ///   resource has changed since the opening began.
    func opened(
        _ generation: Generation, by fetch: SharedFetch, _ range: Range<Int64>, furthest: Int64, isUnresumable: Bool
    ) -> (isCurrent: Bool, previous: Generation?) {
        change { state in
            guard state.resource.becomesCurrent(fetch.id) else { return (false, nil) }
            let previous = state.generation
            (state.generation, state.succession) = (generation, generation.isHidden ? .running : nil)
            state.resource.ring(fetch.id) {
                $0.opened(.stored(generation), range, furthest: furthest, isUnresumable: isUnresumable)
            }
            return (true, previous)
        }
    }

    /// Records a response that is not stored, found by an opening or delivered past the cache.
    func passes(_ opening: Opened, by fetch: SharedFetch, _ range: Range<Int64>, furthest: Int64, isUnresumable: Bool) {
        change { state in
            state.resource.passes(fetch.id)
            state.resource.ring(fetch.id) {
                $0.opened(opening, range, furthest: furthest, isUnresumable: isUnresumable)
            }
        }
    }

    /// Marks the running opening as outdated because the origin has changed the resource: its result is for those who
    /// wait for it now, and is not kept.
    func outdateOpening() {
        state.withLock { state in
            state.resource.outdateOpening()
            state.changes &+= 1
        }
    }

    /// Counts how often its origin has changed it through this proxy, or a person has stored or removed it: an answer
    /// that was requested before that is not kept.
    var changes: Int { state.withLock { $0.changes } }

    /// A person has stored or removed it.
    func noteChange() {
        change { state in
            state.changes &+= 1
            if state.succession != nil { state.forgetGeneration() }
        }
    }

    /// Forgets a generation that is to replace another if nobody uses it: there is no room, or the other one is wanted.
    /// - Parameter isOfPresentation: whether only a part or playlist of one.
    func leaveSuccession(isOfPresentation: Bool = false) {
        change { state in
            guard !isOfPresentation || state.generation.map({ $0.whole != nil || $0.head.isListing }) == true,
                state.succession != nil, state.resource.isIdle, state.generation?.isInUse != true
            else { return }
            state.forgetGeneration()
        }
    }

    /// Forgets a generation that the origin no longer has.
    /// - Returns: whether the store has another one, which it was to replace.
    @discardableResult
    func invalidate(_ generation: Generation) -> Bool {
        change { state in
            guard state.generation === generation else { return false }
            defer { state.forgetGeneration() }
            return state.succession != nil
        }
    }

    /// Whether the generation is the current one.
    func has(_ generation: Generation) -> Bool { state.withLock { $0.isCurrent(generation) } }

    /// The generation has taken the place of the one before (nil), or a fetch of it has ended: if that has failed, the
    /// one before plays as soon as nobody uses this one.
    func noteSuccession(of generation: Generation, _ succession: Succession?) {
        state.withLock { state in
            if state.generation === generation, state.succession != nil { state.succession = succession }
        }
    }

    /// Forgets what is known because the store has another generation, or none, unless the known one is newer.
    func lookAgain(after former: Generation?) {
        change { state in
            guard state.generation == nil || state.generation === former else { return }
            if state.generation != nil { state.forgetGeneration() }
            state.forgetLookup()
        }
    }

    /// Whether a fetch runs, or did a moment ago. Takes no lock.
    var mayBeFetched: Bool { isFetched.load(ordering: .acquiring) }

    /// Whether a fetch delivers bytes that a reader needs soon.
    var isBeingRead: Bool { state.withLock { $0.resource.fetches.contains { $0.state.isBeingRead } } }

    /// The memory that its generation takes, approximately.
    var memoryBytes: Int { state.withLock { $0.generation }?.memoryBytes ?? 0 }

    /// When it was last used; nil while it is in use. A response that passes through has no generation here, and counts
    /// through its play.
    var idleSince: UInt64? {
        state.withLock { state in
            guard state.resource.isIdle, state.lookup.waiters.isEmpty, state.generation?.isInUse != true,
                state.play?.transfers ?? 0 == 0
            else { return nil }
            return max(state.lastUse, state.play?.lastUse ?? 0)
        }
    }
}

extension OpenResource.State {
    /// An action to carry out once the lock is released.
    fileprivate enum Effect {
        case wake(@Sendable () -> Void)
        case notify(@Sendable (ResourceState.Notice) -> Void, ResourceState.Notice)

        func run() {
            switch self {
            case .wake(let wake): wake()
            case .notify(let fetch, let notice): fetch(notice)
            }
        }
    }

    fileprivate mutating func takeEffects() -> [Effect] {
        let actions = resource.takeActions()
        guard !actions.isEmpty else { return [] }
        return actions.compactMap { action in
            switch action {
            case .wake(let follower): wakers.removeValue(forKey: follower).map { .wake($0) }
            // A fetch that has not reached its loop yet looks at its followers when it does.
            case .notify(let id, let notice): loops.first { $0.id == id }.map { .notify($0.hear, notice) }
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

/// How the index is looked up for an open resource.
private struct Lookup {
    var phase = Phase.notStarted
    /// Whether the resource has changed since the running look-up began.
    var isOld = false
    /// Whether the last one failed.
    var hasFailed = false
    var waiters: [@Sendable () -> Void] = []

    enum Phase { case notStarted, running, done }
}
