import CachePolicy
import DiskCache

extension FetchState {
    /// Identifies a fetch among those of its resource.
    struct ID: Hashable, Sendable {
        fileprivate let value: UInt64
    }
}

/// The fetches of a resource. Tells where each byte is: present, on its way, or for the caller to fetch.
///
///     a byte is absent ──┬── the fetch that is followed ──┬── brings it soon ──────────── wait
///                        │                                ├── has failed ──────────────── failed
///                        │                                └── goes on in a buffer ─────── passing
///                        ├── another one brings it soon ───── follow that ────────────── wait
///                        └── nobody does ──┬── it can be asked for ── enter a new fetch ─ wait, once it is started
///                                          └── it cannot, or is out of date ──────────── lost
///
/// A value without lock, clock or thread: it takes events and returns actions. Presence is guarded by another lock, so
/// it is passed in as a parameter and read while this state is held.
struct ResourceState {
    enum Action: Equatable {
        /// Wake a follower: there is news.
        case wake(FollowerID)
        /// Tell a fetch something.
        case notify(FetchState.ID, Notice)
    }

    enum Notice: Equatable {
        /// A follower that it paused for has advanced.
        case proceed
        /// A player now waits for what only downloads had wanted.
        case hurry
        /// The last follower has left.
        case considerStopping
        /// Another fetch has begun or lingers, so this one should not.
        case endLinger
    }

    /// In the order of their identifiers. Most resources have one, some one for each client. They are changed in place:
    /// a dictionary would move a fetch's state out and in again for each change.
    private(set) var fetches: [(id: FetchState.ID, state: FetchState)] = []
    /// The running fetch that opens the resource.
    private(set) var opening: FetchState.ID?
    /// The fetch that was left last and still runs.
    private(set) var lingering: FetchState.ID?
    private var actions: [Action] = []
    private var gone: [FetchState] = []
    private var nextID: UInt64 = 0

    /// Returns the actions since the last call.
    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    /// Returns the fetches that ended since the last call: they may hold much memory, which the caller frees outside
    /// the lock.
    mutating func takeGone() -> [FetchState] {
        guard !gone.isEmpty else { return [] }
        defer { gone = [] }
        return gone
    }

    /// Whether there are no fetches, neither running nor followed.
    var isIdle: Bool { fetches.isEmpty }

    /// Reads a fetch in place, or changes it without waking anybody; nil if it is over and nobody follows it.
    @discardableResult
    mutating func with<Value>(_ id: FetchState.ID, _ body: (inout FetchState) -> Value) -> Value? {
        place(of: id).map { body(&fetches[$0].state) }
    }

    private func place(of id: FetchState.ID) -> Int? {
        var (low, high) = (0, fetches.count)
        while low < high {
            let middle = (low + high) / 2 // no trap: below the count
            if fetches[middle].id.value < id.value { low = middle + 1 } else { high = middle } // no trap: as above
        }
        return low < fetches.count && fetches[low].id == id ? low : nil
    }

    // MARK: Where bytes are

    /// A follower's request for bytes.
    struct Request {
        let follower: FollowerID
        /// The first byte needed.
        let offset: Int64
        /// The chunk that contains it.
        let chunk: Range<Int64>
        /// The end of everything wanted.
        let end: Int64
        /// Where the follower began to read; nil for one that is always at the frontier.
        var start: Int64?
        /// The fetch that it follows.
        var followed: FetchState.ID?

        var wanted: Range<Int64> { offset..<max(offset, end) }
    }

    /// The present chunks of a generation, read while the state is held.
    struct Presence {
        let geometry: ChunkGeometry
        /// The first absent run in a range rounded out to chunks, in whole chunks.
        let gap: (Range<Int64>) -> Range<Int64>?
    }

    /// How far a fetch goes.
    struct Reach {
        /// Past its furthest follower.
        let window: ReadAheadWindow
        /// A limit on the window, in bytes.
        let furthest: Int64
    }

    enum Whereabouts {
        case present
        /// A fetch delivers it and is followed; `wake` will be called at its next news.
        /// - new: the range of a new fetch, which the caller has to start.
        case coming(FetchState.ID, new: Range<Int64>?)
        /// From here on the bytes are in this buffer instead of the generation.
        case passing(Generation)
        /// The followed fetch has failed.
        case failed(FillError)
        /// No fetch delivers it and none can, or it is of a version that is no longer the resource's.
        case lost
        /// The presence has changed while it was read: look again.
        case unsettled
    }

    /// Locates the first byte needed. Afterwards the follower follows the fetch that is `coming`; it keeps its fetch if
    /// the byte is `present` or `passing`, and follows none otherwise.
    /// - Parameters:
    ///   - isCurrent: whether the generation is the resource's current one; others are not fetched.
    ///   - isThere: whether the byte is present by now.
    ///   - reach: how far a new fetch would go; nil if none may be started.
    mutating func locate(
        _ request: Request, isCurrent: Bool, in generation: Generation, _ presence: Presence, isThere: () -> Bool,
        reach: () -> Reach?
    ) -> Whereabouts {
        if isThere() { return .present }
        if let id = request.followed, let answer = followed(id, request, generation) { return answer }
        guard isCurrent else { return .lost }
        if let id = fetches.first(where: { $0.state.isJoinable && $0.state.delivers(request.chunk) })?.id {
            let place = max(request.offset, with(id) { $0.frontier } ?? 0)
            follow(request.follower, id, at: FetchState.Place(start: request.start ?? place, offset: place))
            return wait(request.follower, for: id)
        }
        guard let reach = reach() else { return .lost }
        guard let gap = gap(for: request.wanted, presence) else { return .unsettled }
        return .coming(demand(gap, request, reach), new: gap)
    }

    /// What the followed fetch tells; nil if it is left because it has ended or does not deliver the byte.
    private mutating func followed(_ id: FetchState.ID, _ request: Request, _ generation: Generation) -> Whereabouts? {
        let (buffer, delivers, failure) =
            with(id) { fetch in
                let spill = fetch.spill.flatMap {
                    $0.buffer !== generation && request.offset >= $0.start ? $0.buffer : nil
                }
                let failure: FillError? = if case .failed(let error)? = fetch.end { error } else { nil }
                return (spill, fetch.delivers(request.chunk), failure)
            } ?? (nil, false, nil)
        if let buffer { return .passing(buffer) }
        if delivers { return wait(request.follower, for: id) }
        leave(request.follower, id)
        return failure.map { .failed($0) }
    }

    private mutating func wait(_ follower: FollowerID, for id: FetchState.ID) -> Whereabouts {
        with(id) { _ = $0.waiting.insert(follower) }
        return .coming(id, new: nil)
    }

    /// The gap for a new fetch: up to the next present chunk, and up to the frontier of another fetch, unless both
    /// begin in the same chunk.
    private func gap(for wanted: Range<Int64>, _ presence: Presence) -> Range<Int64>? {
        guard var gap = presence.gap(wanted), gap.contains(wanted.lowerBound) else { return nil }
        for (_, fetch) in fetches
        where fetch.isJoinable && !fetch.isAbandoned && fetch.frontier > gap.lowerBound
            && fetch.frontier < gap.upperBound
        {
            gap = gap.lowerBound..<presence.geometry.chunkStart(presence.geometry.chunk(at: fetch.frontier))
        }
        return gap.contains(wanted.lowerBound) ? gap : nil
    }

    private mutating func add(_ fetch: FetchState) -> FetchState.ID {
        nextID += 1
        let id = FetchState.ID(value: nextID)
        fetches.append((id, fetch))
        return id
    }

    private mutating func demand(_ gap: Range<Int64>, _ request: Request, _ reach: Reach) -> FetchState.ID {
        // Of several seeks in a row, only the last leaves a fetch behind.
        for (id, fetch) in fetches where fetch.isJoinable && fetch.isAbandoned {
            actions.append(.notify(id, .endLinger))
        }
        lingering = nil
        var fetch = FetchState(range: gap, reach, isShared: true)
        fetch.enter(
            request.follower, at: FetchState.Place(start: request.start ?? request.offset, offset: request.offset))
        fetch.waiting = [request.follower]
        return add(fetch)
    }

    // MARK: Following

    /// Enters a fetch that does not fill a gap: one for a single request, or an opening.
    mutating func enter(
        _ range: Range<Int64>, _ reach: Reach, _ follower: FollowerID, at offset: Int64, isOpening: Bool,
        _ requester: Requester? = nil
    ) -> FetchState.ID {
        var fetch = FetchState(range: range, reach, isShared: false)
        fetch.requester = requester
        fetch.enter(follower, at: FetchState.Place(start: offset, offset: offset))
        let id = add(fetch)
        if isOpening { opening = id }
        return id
    }

    /// Follows the running opening, if there is one.
    mutating func followOpening(_ follower: FollowerID) -> FetchState.ID? {
        guard let id = opening,
            let start = with(id, { $0.isRunning && $0.opening == nil ? $0.range.lowerBound : nil }) ?? nil
        else { return nil }
        follow(follower, id, at: FetchState.Place(start: start, offset: start))
        return id
    }

    /// Follows the fetch that alone can deliver the rest, so that it does not end too early.
    mutating func followUnresumable(_ follower: FollowerID, at offset: Int64) -> FetchState.ID? {
        guard let id = fetches.first(where: { $0.state.isJoinable && $0.state.isUnresumable })?.id else { return nil }
        follow(follower, id, at: FetchState.Place(start: offset, offset: offset))
        return id
    }

    /// Follows the lingering fetch before its bytes are needed, if everything between the wanted range's start and its
    /// frontier is present.
    mutating func followLingering(_ follower: FollowerID, _ wanted: Range<Int64>, _ presence: Presence) -> FetchState
        .ID?
    {
        guard let id = lingering, let fetch = with(id, { $0 }), fetch.isRunning, fetch.isAbandoned,
            wanted.contains(fetch.frontier),
            fetch.frontier - wanted.lowerBound <= min(fetch.furthest, fetch.window.limit)
        else { return nil }
        let chunk = presence.geometry.chunkStart(presence.geometry.chunk(at: fetch.frontier))
        guard chunk <= wanted.lowerBound || presence.gap(wanted.lowerBound..<chunk) == nil else { return nil }
        follow(
            follower, id,
            at: FetchState.Place(start: wanted.lowerBound, offset: wanted.lowerBound, freshFrom: fetch.frontier))
        return id
    }

    private mutating func follow(_ follower: FollowerID, _ id: FetchState.ID, at place: FetchState.Place) {
        // The fetch no longer serves downloads alone.
        let hadOnlyDownloads = with(id) { fetch in
            defer { fetch.enter(follower, at: place) }
            return fetch.hasOnlyDownloads
        }
        if follower.kind != .download, hadOnlyDownloads == true { actions.append(.notify(id, .hurry)) }
        proceed(id)
    }

    /// A follower has advanced; a fetch that paused for it resumes.
    /// - Parameter start: where the follower began, if the fetch does not know yet.
    mutating func advance(_ follower: FollowerID, _ id: FetchState.ID, to offset: Int64, from start: Int64? = nil) {
        if with(id, { $0.move(follower, to: offset, from: start) }) == true { proceed(id) }
    }

    /// Registers a follower for the next news of a fetch.
    /// - Returns: false if there is news already: the fetch has ended, its frontier is past `offset`, or, without an
    ///   offset, it has opened.
    mutating func wait(_ follower: FollowerID, _ id: FetchState.ID, at offset: Int64?) -> Bool {
        with(id) { fetch in
            guard fetch.isRunning, offset.map({ fetch.frontier <= $0 }) ?? (fetch.opening == nil) else { return false }
            fetch.waiting.insert(follower)
            return true
        } ?? false
    }

    /// Removes a follower. A fetch without followers lingers and then ends.
    mutating func leave(_ follower: FollowerID, _ id: FetchState.ID) {
        guard
            let (isAbandoned, isRunning) = with(id, { $0.leave(follower) ? ($0.isAbandoned, $0.isRunning) : nil })
                ?? nil
        else { return }
        if !isAbandoned { return proceed(id) }
        if isRunning { actions.append(.notify(id, .considerStopping)) } else { remove(id) }
    }

    private mutating func remove(_ id: FetchState.ID) {
        if let place = place(of: id) { gone.append(fetches.remove(at: place).state) }
    }

    private mutating func proceed(_ id: FetchState.ID) {
        if with(id, { $0.resumes() }) == true { actions.append(.notify(id, .proceed)) }
    }

    // MARK: News from fetches

    /// Changes a fetch and wakes the followers that wait for news.
    mutating func ring(_ id: FetchState.ID, _ change: (inout FetchState) -> Void) {
        let waiting = with(id) { fetch in
            change(&fetch)
            defer { if !fetch.waiting.isEmpty { fetch.waiting = [] } }
            return fetch.waiting
        }
        // Whoever came first is woken first.
        for follower in waiting?.sorted() ?? [] { actions.append(.wake(follower)) }
    }

    /// Records a fetch's progress.
    /// - Returns: whether it pauses now.
    mutating func pauses(
        _ id: FetchState.ID, received: Int64, writtenTo frontier: Int64, before count: Int, within: Int64 = .max
    ) -> Bool {
        with(id) { $0.pauses(received: received, writtenTo: frontier, before: count, within: within) } ?? false
    }

    /// Makes an opening the first fetch of the generation that it found.
    /// - Returns: whether the generation becomes current. It does not if the resource has changed since the opening
    ///   began.
    mutating func becomesCurrent(_ id: FetchState.ID) -> Bool {
        guard opening == id else { return false }
        forgetGeneration()
        with(id) { $0.isShared = true }
        return true
    }

    /// The response of a fetch passes through.
    mutating func passes(_ id: FetchState.ID) {
        if opening == id { opening = nil }
        with(id) { $0.isShared = false }
    }

    /// A fetch without followers lingers. Only one per resource does.
    mutating func lingers(_ id: FetchState.ID) {
        if let former = lingering, former != id { actions.append(.notify(former, .endLinger)) }
        lingering = with(id) { $0.isShared } == true ? id : nil
    }

    /// - Parameter frontier: the end of what has been written, if followers have not been told.
    mutating func ended(_ id: FetchState.ID, _ end: FetchEnd, writtenTo frontier: Int64? = nil) {
        if let frontier { with(id) { $0.wrote(upTo: frontier) } }
        if lingering == id { lingering = nil }
        if opening == id { opening = nil }
        ring(id) { $0.end = end }
        if with(id, { $0.isAbandoned }) == true { remove(id) }
    }

    /// Ends a fetch without followers. Once this has returned true, nobody can join it.
    mutating func endsIfAbandoned(_ id: FetchState.ID) -> Bool {
        guard with(id, { $0.isAbandoned && $0.isRunning }) == true else { return false }
        ended(id, .stopped)
        return true
    }

    /// Marks the running opening as outdated because the origin has changed the resource: its result is for those who
    /// wait for it now, and is not kept.
    mutating func outdateOpening() { opening = nil }

    /// Forgets the current generation. The result of a running opening is for those who wait for it now.
    mutating func forgetGeneration() {
        if let lingering { actions.append(.notify(lingering, .endLinger)) }
        (opening, lingering) = (nil, nil)
        for place in fetches.indices { fetches[place].state.isShared = false }
    }
}
