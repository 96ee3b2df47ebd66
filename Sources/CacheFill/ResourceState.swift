import CachePolicy
import DiskCache

/// Identifies a fetch among those of its resource.
struct FetchID: Hashable, Sendable {
    fileprivate let value: UInt64
}

/// The fetches of a resource, and the one answer to where its bytes are: there, on their way, or for the one who asks
/// to fetch.
///
///     a byte is absent ──┬── the fetch that is followed ──┬── brings it soon ──────────── wait
///                        │                                ├── has failed ──────────────── failed
///                        │                                └── goes on in a buffer ─────── passing
///                        ├── another one brings it soon ───── follow that ────────────── wait
///                        └── nobody does ──┬── it can be asked for ── enter a new fetch ─ wait, once it is started
///                                          └── it cannot, or is out of date ──────────── lost
///
/// A value, without lock, clock and thread: events go in, and what has to be done about them comes out, as actions.
/// What is present changes under a lock of its own, so that it is given as a parameter, and looked at while this is.
struct ResourceState {
    enum Action: Equatable {
        /// There is news for one who waits.
        case wake(FollowerID)
        /// A fetch is told something.
        case tell(FetchID, Notice)
    }

    enum Notice: Equatable {
        /// Who it paused for has come further.
        case goOn
        /// Somebody waits for what was asked for by downloads alone.
        case hurry
        /// The last follower has left.
        case considerStopping
        /// Another one has begun, or was left behind, while this one lingers.
        case endLinger
    }

    private(set) var fetches: [FetchID: FetchState] = [:]
    /// The fetch that will tell what this resource is.
    private(set) var opening: FetchID?
    /// The last one that nobody followed any more.
    private(set) var lingering: FetchID?
    private var actions: [Action] = []
    private var gone: [FetchState] = []
    private var nextID: UInt64 = 0

    /// What has to be done since the last time.
    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    /// What is left of fetches that are over since the last time: it may hold much memory, which is given back outside
    /// of the lock.
    mutating func takeGone() -> [FetchState] {
        guard !gone.isEmpty else { return [] }
        defer { gone = [] }
        return gone
    }

    /// Whether no fetch runs, and none has followers.
    var isIdle: Bool { fetches.isEmpty }

    /// Looks at a fetch where it stands, or changes it without telling anybody; nil where it is over and nobody follows
    /// it.
    @discardableResult
    mutating func with<Value>(_ id: FetchID, _ body: (inout FetchState) -> Value) -> Value? {
        fetches.index(forKey: id).map { body(&fetches.values[$0]) }
    }

    /// Fetches that others may follow.
    private var shared: some Sequence<(key: FetchID, value: FetchState)> {
        fetches.lazy.filter { $0.value.isShared && $0.value.isRunning }
    }

    // MARK: Where bytes are

    /// Who asks for bytes, and what for.
    struct Request {
        let follower: FollowerID
        /// The byte that is needed first.
        let offset: Int64
        /// The chunk that it is in.
        let chunk: Range<Int64>
        /// All that is wanted ends here.
        let end: Int64
        /// Where it began to read; nil for one that is always where its fetch is.
        var start: Int64?
        /// The fetch that it follows.
        var followed: FetchID?

        var wanted: Range<Int64> { offset..<max(offset, end) }
    }

    /// What is there of a generation, looked at while the state is.
    struct Presence {
        let geometry: ChunkGeometry
        /// The first absent run that begins in a range rounded out to chunks, in whole chunks.
        let gap: (Range<Int64>) -> Range<Int64>?
    }

    /// How far a fetch goes.
    struct Reach {
        /// Past who follows it.
        let window: ReadAheadWindow
        /// The same at most, in bytes.
        let furthest: Int64
    }

    enum Whereabouts {
        case present
        /// A fetch brings it, and is followed; who has asked is woken when there is news of it.
        /// - new: the stretch of a fetch that is a new one, and has to be started.
        case coming(FetchID, new: Range<Int64>?)
        /// From here on it stands in another place than what was asked about.
        case passing(Generation)
        /// The fetch that was followed has ended so.
        case failed(FillError)
        /// Nobody brings it, and nobody can; or it is of a version that is no longer the resource's.
        case lost
        /// What is there has changed while it was looked at.
        case unsettled
    }

    /// Finds the byte that is needed. Afterwards its follower follows what is `coming`; what it followed before where
    /// the byte is `present` or `passing`; and else nothing.
    /// - Parameters:
    ///   - isCurrent: whether the generation is the resource's; of another one nothing is fetched.
    ///   - isThere: whether the byte is there by now.
    ///   - reach: how far a new fetch would go; nil where nothing may be asked for.
    mutating func locate(
        _ request: Request, isCurrent: Bool, in generation: Generation, _ presence: Presence, isThere: () -> Bool,
        reach: () -> Reach?
    ) -> Whereabouts {
        if isThere() { return .present }
        if let id = request.followed, let answer = followed(id, request, generation) { return answer }
        guard isCurrent else { return .lost }
        if let id = shared.first(where: { $0.value.brings(request.chunk) })?.key {
            let place = max(request.offset, fetches[id]?.frontier ?? 0)
            follow(request.follower, id, at: FetchState.Place(start: request.start ?? place, offset: place))
            return wait(request.follower, for: id)
        }
        guard let reach = reach() else { return .lost }
        guard let gap = gap(for: request.wanted, presence) else { return .unsettled }
        return .coming(demand(gap, request, reach), new: gap)
    }

    /// What the fetch that is followed says; nil where it is left, as it has ended, or came by here and what it brought
    /// is gone again.
    private mutating func followed(_ id: FetchID, _ request: Request, _ generation: Generation) -> Whereabouts? {
        let (buffer, brings, failure) =
            with(id) { fetch in
                let spill = fetch.spill.flatMap {
                    $0.buffer !== generation && request.offset >= $0.start ? $0.buffer : nil
                }
                let failure: FillError? = if case .failed(let error)? = fetch.end { error } else { nil }
                return (spill, fetch.brings(request.chunk), failure)
            } ?? (nil, false, nil)
        if let buffer { return .passing(buffer) }
        if brings { return wait(request.follower, for: id) }
        leave(request.follower, id)
        return failure.map { .failed($0) }
    }

    private mutating func wait(_ follower: FollowerID, for id: FetchID) -> Whereabouts {
        with(id) { _ = $0.waiting.insert(follower) }
        return .coming(id, new: nil)
    }

    /// What a new fetch brings: up to what is there, and up to what another one is about to bring, unless that ends
    /// with this one's begin.
    private func gap(for wanted: Range<Int64>, _ presence: Presence) -> Range<Int64>? {
        guard var gap = presence.gap(wanted), gap.contains(wanted.lowerBound) else { return nil }
        for (_, fetch) in shared
        where !fetch.isAbandoned && fetch.frontier > gap.lowerBound && fetch.frontier < gap.upperBound {
            gap = gap.lowerBound..<presence.geometry.chunkStart(presence.geometry.chunk(at: fetch.frontier))
        }
        return gap.contains(wanted.lowerBound) ? gap : nil
    }

    private mutating func add(_ fetch: FetchState) -> FetchID {
        nextID += 1
        let id = FetchID(value: nextID)
        fetches[id] = fetch
        return id
    }

    private mutating func demand(_ gap: Range<Int64>, _ request: Request, _ reach: Reach) -> FetchID {
        // Of seeks in a row only the last leaves one behind.
        for (id, fetch) in shared where fetch.isAbandoned { actions.append(.tell(id, .endLinger)) }
        lingering = nil
        var fetch = FetchState(range: gap, reach, isShared: true)
        fetch.enter(
            request.follower, at: FetchState.Place(start: request.start ?? request.offset, offset: request.offset))
        fetch.waiting = [request.follower]
        return add(fetch)
    }

    // MARK: Following

    /// Enters a fetch that is not for gaps: for one request alone, or an opening (`isOpening`).
    mutating func enter(
        _ range: Range<Int64>, _ reach: Reach, _ follower: FollowerID, at offset: Int64, isOpening: Bool
    ) -> FetchID {
        var fetch = FetchState(range: range, reach, isShared: false)
        fetch.enter(follower, at: FetchState.Place(start: offset, offset: offset))
        let id = add(fetch)
        if isOpening { opening = id }
        return id
    }

    /// Follows the opening fetch that is running, if there is one.
    mutating func followOpening(_ follower: FollowerID) -> FetchID? {
        guard let id = opening, let fetch = fetches[id], fetch.isRunning, fetch.opening == nil else { return nil }
        follow(follower, id, at: FetchState.Place(start: fetch.range.lowerBound, offset: fetch.range.lowerBound))
        return id
    }

    /// Follows the running fetch by which alone the rest can come, so that it does not end before that is needed.
    mutating func followUnresumable(_ follower: FollowerID, at offset: Int64) -> FetchID? {
        guard let id = shared.first(where: { $0.value.isUnresumable })?.key else { return nil }
        follow(follower, id, at: FetchState.Place(start: offset, offset: offset))
        return id
    }

    /// Follows the fetch that lingers, before its bytes are needed, if what lies between it and what is wanted is
    /// there.
    mutating func followLingering(_ follower: FollowerID, _ wanted: Range<Int64>, _ presence: Presence) -> FetchID? {
        guard let id = lingering, let fetch = fetches[id], fetch.isRunning, fetch.isAbandoned,
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

    private mutating func follow(_ follower: FollowerID, _ id: FetchID, at place: FetchState.Place) {
        // It no longer waits as downloads do.
        if follower.kind != .download, fetches[id]?.hasOnlyDownloads == true { actions.append(.tell(id, .hurry)) }
        fetches[id]?.enter(follower, at: place)
        goOn(id)
    }

    /// A follower has come further; a fetch that paused for it goes on.
    /// - Parameter start: where it began, if the fetch does not know yet.
    mutating func advance(_ follower: FollowerID, _ id: FetchID, to offset: Int64, from start: Int64? = nil) {
        if fetches[id]?.move(follower, to: offset, from: start) == true { goOn(id) }
    }

    /// Waits for the next news of a fetch.
    /// - Returns: whether there will be some: it runs, and its frontier is no further than `offset`, or, without one,
    ///   it has not opened yet.
    mutating func wait(_ follower: FollowerID, _ id: FetchID, at offset: Int64?) -> Bool {
        with(id) { fetch in
            guard fetch.isRunning, offset.map({ fetch.frontier <= $0 }) ?? (fetch.opening == nil) else { return false }
            fetch.waiting.insert(follower)
            return true
        } ?? false
    }

    /// Follows no longer. A fetch without followers comes to an end, when it has lingered.
    mutating func leave(_ follower: FollowerID, _ id: FetchID) {
        guard
            let (isAbandoned, isRunning) = with(id, { $0.leave(follower) ? ($0.isAbandoned, $0.isRunning) : nil })
                ?? nil
        else { return }
        if !isAbandoned { return goOn(id) }
        if isRunning { actions.append(.tell(id, .considerStopping)) } else { remove(id) }
    }

    private mutating func remove(_ id: FetchID) {
        if let fetch = fetches.removeValue(forKey: id) { gone.append(fetch) }
    }

    private mutating func goOn(_ id: FetchID) {
        if with(id, { $0.resumes() }) == true { actions.append(.tell(id, .goOn)) }
    }

    // MARK: What fetches tell

    /// Changes what is known of a fetch, and wakes who waits for news.
    mutating func ring(_ id: FetchID, _ change: (inout FetchState) -> Void) {
        guard let index = fetches.index(forKey: id) else { return }
        change(&fetches.values[index])
        guard !fetches.values[index].waiting.isEmpty else { return }
        for follower in fetches.values[index].waiting { actions.append(.wake(follower)) }
        fetches.values[index].waiting = []
    }

    /// How far a fetch is.
    /// - Returns: whether it pauses now.
    mutating func pauses(_ id: FetchID, received: Int64, writtenTo frontier: Int64) -> Bool {
        fetches[id]?.pauses(received: received, writtenTo: frontier) ?? false
    }

    /// What an opening fetch found is the current generation: the fetch is the first one of those that fill it.
    /// - Returns: whether it is. It is not where what it was asked about has changed meanwhile.
    mutating func becomesCurrent(_ id: FetchID) -> Bool {
        guard opening == id else { return false }
        forgetGeneration()
        fetches[id]?.isShared = true
        return true
    }

    /// What an opening fetch found passes by.
    mutating func passes(_ id: FetchID) {
        if opening == id { opening = nil }
        fetches[id]?.isShared = false
    }

    /// A fetch that nobody follows goes on for a while. Only one of them does.
    mutating func lingers(_ id: FetchID) {
        if let former = lingering, former != id { actions.append(.tell(former, .endLinger)) }
        lingering = fetches[id]?.isShared == true ? id : nil
    }

    mutating func ended(_ id: FetchID, _ end: FetchEnd) {
        if lingering == id { lingering = nil }
        if opening == id { opening = nil }
        ring(id) { $0.end = end }
        if fetches[id]?.isAbandoned == true { remove(id) }
    }

    /// Ends a fetch if nobody follows it; nobody can follow it once this has answered true.
    mutating func endsIfAbandoned(_ id: FetchID) -> Bool {
        guard let fetch = fetches[id], fetch.isAbandoned, fetch.isRunning else { return false }
        ended(id, .stopped)
        return true
    }

    /// What an opening fetch is about to find was made before the origin changed: it is for those who wait for it
    /// already, and not kept.
    mutating func outdateOpening() { opening = nil }

    /// The current generation goes. What a running opening finds out about it is for those who wait for it already.
    mutating func forgetGeneration() {
        if let lingering { actions.append(.tell(lingering, .endLinger)) }
        (opening, lingering) = (nil, nil)
        for id in Array(fetches.keys) { with(id) { $0.isShared = false } }
    }
}
