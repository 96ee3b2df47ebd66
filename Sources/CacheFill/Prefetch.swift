import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Units

/// Brings a resource, or a range of one, into the cache without anybody reading it: a download, a part of a
/// presentation that is downloaded, or what a player is about to ask for. Loop-bound.
///
///     look up ── all of it there ────────────────────────────────▶ completed, once saved where it is kept
///        ├────── a part of it ── fill its gaps ─────────────────────────┤
///        └────── unknown ── open ── stored ── follow, fill the rest ────┘
///                             └── not to be stored: failed
package final class Prefetch {
    package struct Order: Sendable {
        package let url: OriginURL
        /// What a player has asked for, where this is for it: it is asked for as that would do. Nil where nobody plays.
        package let former: Demand?
        /// Its bytes, half-open, as far as it has so many; nil for all.
        package let range: Range<Int64>?
        /// How many transfers at once, where the origin sends ranges.
        package let connections: Int
        /// Whether it is pinned though no rule says so. Only what is kept is.
        package let isPinned: Bool
        /// The presentation that it is a part of; nil for what stands alone.
        package let whole: CacheKey?
        /// Whether it counts as downloaded: it ends when the index knows, and is pinned. Otherwise it ends when all is
        /// there, and may be evicted like what somebody has read.
        package let keeps: Bool
        /// Whether its origin is asked first if what is there still holds, fresh or not.
        package let isFresh: Bool

        package init(
            url: OriginURL, after former: Demand? = nil, range: Range<Int64>? = nil, connections: Int = 1,
            isPinned: Bool = true, whole: CacheKey? = nil, keeps: Bool = true, isFresh: Bool = false
        ) {
            (self.url, self.former, self.connections, self.whole) = (url, former, connections, whole)
            self.range = range?.clamped(to: 0..<Int64.max)
            (self.isPinned, self.keeps, self.isFresh) = (isPinned && keeps, keeps, isFresh)
        }

        /// A download.
        /// - Parameter first: how many bytes of its beginning; nil for all.
        package init(url: OriginURL, first: Int64?, connections: Int = 1, isPinned: Bool = true) {
            self.init(url: url, range: first.map { 0..<max(0, $0) }, connections: connections, isPinned: isPinned)
        }
    }

    package enum End: Sendable {
        /// All that is wanted is in the cache; the index knows, where it is to be kept.
        case completed
        case failed(PrefetchError)
    }

    /// How far it is, for any thread.
    package let state: PrefetchState
    private let order: Order
    private let pace: FillPace?
    private let loop: LoopFiller
    private let follower: FollowerID
    private var onEnd: ((End) -> Void)?
    /// Called once where it goes on to its end, when the rest takes no longer than its origin took to answer: what is
    /// asked for then comes when this is there.
    package var onNearEnd: (() -> Void)?
    /// When it was begun, and when its first bytes had come: nanoseconds.
    private var beganAt: UInt64?
    private var firstAt: UInt64?

    private let resolvedRule: ResolvedRule
    private let pins: Bool
    private var resource: OpenResource
    private var resolver: ResourceResolver
    /// Whether a part was asked for where nothing was known.
    private var asksForPart = false
    private var mayAskForPart = true
    /// How often it has begun anew.
    private var restarts = 0
    private static let maxRestarts = 4
    private var opening: SharedFetch?
    /// What that asks about.
    private var validated: Generation?
    /// Nil while nothing is being filled.
    private var shares: PrefetchShares?
    private var generation: Generation?
    private var isSettling = false
    private var pinning = Pinning.notYet
    private enum Pinning { case notYet, running, done }
    /// What is asked for of an unknown resource, where several connections then share the rest, in bytes.
    private static let openingBytes: Int64 = 4 << 20

    /// - Parameters:
    ///   - pace: nil for as fast as bytes come.
    ///   - end: called once, on the loop, unless `stop` was called before.
    package init(_ order: Order, pace: FillPace?, on loop: LoopFiller, onEnd end: @escaping (End) -> Void) {
        self.order = order
        follower = FollowerID(order.kind)
        self.pace = pace
        self.loop = loop
        onEnd = end
        var (key, resolvedRule) = loop.filler.policy.value.resolve(order.url)
        // It follows its fetch closely, so that its pace is the fetch's: what comes at once, over and above, is less
        // than a second's worth.
        if let pace { resolvedRule.fill = .ahead(pace.window) }
        self.resolvedRule = resolvedRule
        pins = order.keeps && (resolvedRule.pins || order.isPinned)
        resource = loop.filler.resource(key)
        resolver = ResourceResolver(key)
        state = PrefetchState(range: order.range)
        loop.keep(self)
    }

    package func start() {
        beganAt = now
        guard !resolvedRule.bypasses else { return fail(.notStorable(.rule)) }
        proceed()
    }

    /// Leaves what has come.
    package func stop() {
        (onEnd, onNearEnd) = (nil, nil)
        release()
    }

    // MARK: What is there

    private func proceed() {
        guard onEnd != nil else { return }
        let view = loop.filler.look(at: resource, wake: wake { $0.proceed() })
        act(on: resolver.resolve(view, for: purpose, now: loop.filler.now(), instant: now, selection: selection))
    }

    private var purpose: ResourceResolver.Purpose {
        guard order.isFresh else { return .presence }
        var directives = RequestDirectives()
        directives.control.noCache = true
        return .answer(directives, ttl: resolvedRule.ttl, isOffline: loop.isOffline)
    }

    private func act(on resolution: Resolution) {
        switch resolution {
        case .wait: break
        case .use(let generation, _, _): consider(generation)
        case .validate(let generation, _, _): open(validating: generation)
        case .turn(let key):
            resource = loop.filler.resource(key)
            proceed()
        case .open: open()
        case .bypass(.unreadable): fail(.unreadable)
        case .bypass(.vary): fail(.notStorable(.varyAny))
        case .bypass(.rule), .refuse: fail(.notStorable(.rule))
        }
    }

    /// The fields by which a variant was chosen, as this has them.
    private func selection(of variant: Variant) -> Variant {
        variant.of(demand(nil).sentFields, fingerprint: loop.filler.store.fingerprint)
    }

    /// What it was about has changed meanwhile.
    private func restart(after error: PrefetchError) {
        endFills()
        restarts += 1
        guard restarts <= Self.maxRestarts else { return fail(error) }
        proceed()
    }

    private func wake(_ body: @escaping @Sendable (Prefetch) -> Void) -> @Sendable () -> Void {
        let bound = LoopBound(self, on: loop.loop)
        return { bound.post { if $0.onEnd != nil { body($0) } } }
    }

    private func demand(_ span: ByteRangeSpec?) -> Demand {
        order.former?.next(order.url, span: span, resolvedRule: resolvedRule, whole: order.whole)
            ?? Demand(url: order.url, span: span, resolvedRule: resolvedRule, whole: order.whole)
    }

    private func consider(_ generation: Generation) {
        let isOnItsWay = generation.length == nil || !ResourceFill.isPossible(generation)
        guard isOnItsWay, generation.length.map({ generation.coverage(of: wanted(of: $0)) != .whole }) ?? true else {
            return fill(generation, following: nil)
        }
        // It comes in one way only: with the transfer that runs, or all over again.
        if let status = resource.joinUnresumable(follower, of: generation, at: 0) {
            return fill(generation, following: status)
        }
        loop.filler.discard(generation, of: resource)
        restart(after: .fill(.changed))
    }

    private func wanted(of length: Int64) -> Range<Int64> {
        order.range?.clamped(to: 0..<max(0, length)) ?? 0..<length
    }

    // MARK: Unknown

    private func open(validating validated: Generation? = nil) {
        let part =
            mayAskForPart ? order.range ?? (order.connections > 1 ? 0..<Self.openingBytes : nil) : nil
        let span = part.map {
            ByteRangeSpec.bounded(first: $0.lowerBound, last: max($0.lowerBound, $0.upperBound -| 1))
        }
        guard
            let (status, _) = loop.open(
                resource, demand(span), validating: validated, follower: follower, alone: false)
        else {
            return restart(after: .fill(.changed))
        }
        (asksForPart, self.validated) = (part != nil, validated)
        opening = status
        awaitOpening()
    }

    private func awaitOpening() {
        guard let status = opening else { return }
        switch status.opening {
        case .stored(let generation):
            if let turn = resolver.resolve(opened: generation, for: .presence, selection: selection) {
                leaveOpening()
                return act(on: turn)
            }
            opening = nil
            return fill(generation, following: status)
        case .validated:
            leaveOpening()
            if let validated {
                resolver.accepted = validated
                return proceed()
            }
            return restart(after: .fill(.changed))
        case .passing(let generation, let owner, _, _):
            let (lacksRoom, reason) = (status.lacksRoom, status.passingReason)
            leaveOpening()
            let code = generation.head.status
            // Of what is empty no part can be had, and a part of an unknown whole is not kept.
            let mayBeEmpty = code == 416 && order.range?.lowerBound ?? 0 == 0
            if asksForPart, mayBeEmpty || code == 200 && reason == nil && !lacksRoom {
                (asksForPart, mayAskForPart) = (false, false)
                return proceed()
            }
            if code != 200 { return fail(.status(code, retryAfter: wait(for: generation))) }
            if lacksRoom { return fail(.noRoom("the disk takes no more")) }
            // What came for another request may be no more than that request's. A player asks once more by itself.
            let isOwn = owner == follower || !order.keeps
            return isOwn ? fail(.notStorable(reason)) : restart(after: .notStorable(reason))
        case nil: break
        }
        if case .ended(let end, _) = status.view {
            leaveOpening()
            if case .failed(let error) = end { return fail(.fill(error)) }
            return restart(after: .fill(.unusable("it ended before its head")))
        }
        if !status.wait(follower, at: nil, wake: wake { $0.awaitOpening() }) { awaitOpening() }
    }

    private func leaveOpening() {
        opening?.leave(follower)
        opening = nil
    }

    // MARK: Gaps

    private func fill(_ generation: Generation, following status: SharedFetch?) {
        use(generation)
        if let length = generation.length, generation.coverage(of: wanted(of: length)) == .whole {
            status?.leave(follower)
            return completed(generation)
        }
        checkRoom(generation)
        // What cannot be gone on with is not kept before it is whole.
        let canStop = ResourceFill.isPossible(generation)
        let stretch = generation.length.map { canStop ? wanted(of: $0) : 0..<$0 } ?? 0..<Int64.max
        // The first one follows the fetch that has opened it, if there is one, for as far as that goes.
        var opened: Int64?
        if case .running(let range, _)? = status?.view { opened = range.upperBound }
        var shares = PrefetchShares(of: stretch, for: canStop ? order.connections : 1)
        let first = shares.first(upTo: opened)
        self.shares = shares
        guard let first else {
            status?.leave(follower)
            return completed(generation)
        }
        begin(first, of: generation, following: status)
        beginOthers(generation)
    }

    /// Tells that the rest comes in about the time that its origin has taken to answer.
    private func lookForTheEnd() {
        guard onNearEnd != nil, let beganAt else { return }
        let (progress, now) = (state.progress, now)
        guard let firstAt else {
            firstAt = now
            return
        }
        guard let total = progress.total, progress.bytes > 0 else { return }
        let (latency, spent) = (Double(firstAt -| beganAt), Double(now -| firstAt))
        let rest = spent * Double(max(0, total -| progress.bytes)) / Double(progress.bytes)
        guard rest <= min(latency * Self.latenciesAhead, Self.longestAhead) else { return }
        let tell = onNearEnd
        onNearEnd = nil
        tell?()
    }

    /// Bytes are seen a chunk at a time.
    private static let latenciesAhead = 1.5
    /// In nanoseconds.
    private static let longestAhead = 1e9

    private var now: UInt64 { loop.filler.settings.clock() }

    /// Whether another connection may be begun.
    private var hasFreeConnection: Bool { shares.map { $0.count < connections(of: $0.most) } ?? false }

    private func connections(of count: Int) -> Int { pace?.connections(of: count) ?? count }

    /// As many connections as may be, while there is something left to be handed out.
    private func beginOthers(_ generation: Generation) {
        while self.generation === generation, hasFreeConnection, let block = shares?.next(for: nil, at: now) {
            begin(block, of: generation, following: nil)
        }
    }

    private func begin(_ block: Range<Int64>, of generation: Generation, following status: SharedFetch?) {
        let fill = ResourceFill(
            resource, generation, demand(nil), loop, follower: status == nil ? FollowerID(order.kind) : follower,
            pace: pace)
        fill.whereNext = { [unowned self] fill, _ in next(after: fill, generation) }
        fill.onAdvance = { [unowned self] in
            pinWhenThere(generation)
            lookForTheEnd()
        }
        fill.onEnd = { [unowned self] fill, end in ended(fill, end, generation) }
        shares?.begin(block, by: fill, at: now)
        fill.start(block, following: status)
    }

    /// A connection is done with its block.
    private func next(after fill: ResourceFill, _ generation: Generation) -> Range<Int64>? {
        // Where the rate allows fewer by now, it is one of those that go.
        guard let shares, shares.count <= connections(of: shares.most),
            let block = self.shares?.next(for: fill, at: now)
        else { return nil }
        self.shares?.begin(block, by: fill, at: now)
        if hasFreeConnection, self.shares?.hasMore == true {
            // Not from inside of a fill.
            loop.loop.afterCallback { [self] in if onEnd != nil { beginOthers(generation) } }
        }
        return block
    }

    private func ended(_ fill: ResourceFill, _ end: ResourceFill.End, _ generation: Generation) {
        // Those that `endFills` ends are none of its any more.
        guard shares?.remove(fill) == true, onEnd != nil else { return }
        let rest = fill.rest
        // Not from inside of its own `start`.
        loop.loop.afterCallback { [self] in
            guard onEnd != nil, self.generation === generation, let shares else { return }
            switch end {
            // The last one may have ended as another gave something back.
            case .completed:
                if shares.count == 0 { shares.hasMore ? beginOthers(generation) : completed(generation) }
            case .stopped, .failed(.changed): restart(after: .fill(.changed))
            case .failed where shares.count > 0: self.shares?.refuseOne(leaving: rest)
            case .failed(.originStatus(let code)): fail(.status(code, retryAfter: wait(for: generation)))
            case .failed(.notStored(let why)): fail(.noRoom(why))
            case .failed(let error): fail(.fill(error))
            }
        }
    }

    /// For how long the origin wants to be left alone: the one that was asked, or the one that it has sent us to.
    private func wait(for generation: Generation) -> Double {
        max(
            loop.filler.backoff.wait(before: order.url.absolute),
            loop.filler.backoff.wait(before: generation.head.finalURL))
    }

    private func endFills() {
        let running = shares?.fills ?? []
        shares = nil
        for fill in running { fill.stop() }
        use(nil)
    }

    private func use(_ generation: Generation?) {
        guard self.generation !== generation else { return }
        if let former = self.generation, order.keeps { loop.filler.store.savesSoon(former, false) }
        self.generation = generation
        if let generation, order.keeps { loop.filler.store.savesSoon(generation, true) }
        state.follow(generation)
        if pinning == .done { pinning = .notYet }
    }

    // MARK: Room

    /// Before everything else is evicted for what cannot be kept in the end.
    private func checkRoom(_ generation: Generation) {
        guard order.keeps, let length = generation.length else { return }
        let needed = wanted(of: length)
        let (filler, key, bound) = (loop.filler, generation.key, LoopBound(self, on: loop.loop))
        filler.promises.note(ObjectIdentifier(state), needed, generation)
        filler.store.perform { [state] in
            let room = Result { () throws(StoreError) in try filler.store.room(for: key) }
            let (missing, promised) = filler.promises.missing(for: ObjectIdentifier(state))
            bound.post { prefetch in
                guard prefetch.onEnd != nil else { return }
                switch room {
                case .success((missing + promised)...): break
                case .success(let room):
                    let others =
                        promised > 0 ? ", beside \(ByteSize(bytes: promised)) for what is being downloaded" : ""
                    prefetch.fail(
                        .noRoom(
                            "\(ByteSize(bytes: missing)) of it are missing, and no more than \(ByteSize(bytes: max(0, room))) can be had\(others)"
                        ))
                case .failure(let error): prefetch.fail(.store(error))
                }
            }
        }
    }

    /// What is pinned is not evicted while the rest comes in. The index has to know of it first.
    private func pinWhenThere(_ generation: Generation) {
        guard pins, pinning == .notYet, generation.length != nil, state.progress.bytes > 0 else { return }
        pinning = .running
        let (store, logger, bound) = (loop.filler.store, loop.filler.logger, LoopBound(self, on: loop.loop))
        store.perform { [state] in
            var isPinned = false
            // It may have been stopped on the way, and what it has brought removed.
            do throws(StoreError) {
                isPinned = state.isWanted ? try store.setPinned(true, generation.key) : false
            } catch {
                logger.error("could not pin \(generation.key.text): \(error)")
            }
            let result = isPinned ? Pinning.done : .notYet
            bound.post { if $0.generation === generation { $0.pinning = result } }
        }
    }

    // MARK: The end

    private func completed(_ generation: Generation) {
        guard !isSettling else { return }
        guard let length = generation.length else { return restart(after: .fill(.changed)) }
        if order.keeps { settle(wanted(of: length), of: generation) } else { check(wanted(of: length), of: generation) }
    }

    /// It is complete when it is so after a kill as well.
    private func settle(_ wanted: Range<Int64>, of generation: Generation) {
        isSettling = true
        let (store, pins, bound) = (loop.filler.store, pins, LoopBound(self, on: loop.loop))
        store.perform { [state] in
            let outcome = Result { () throws(StoreError) in
                try store.settle(wanted, of: generation, isPinned: pins) { state.isWanted }
            }
            bound.post { prefetch in
                prefetch.isSettling = false
                guard prefetch.onEnd != nil else { return }
                if case .failure(let error) = outcome { return prefetch.fail(.store(error)) }
                prefetch.check(wanted, of: generation)
            }
        }
    }

    /// Something may have been evicted meanwhile, or the disk did not take it.
    private func check(_ wanted: Range<Int64>, of generation: Generation) {
        guard !generation.isRetired, generation.coverage(of: wanted) == .whole else {
            return restart(after: .noRoom("a part of it was evicted before the rest had come"))
        }
        end(.completed)
    }

    private func fail(_ error: PrefetchError) { end(.failed(error)) }

    private func end(_ end: End) {
        guard let tell = onEnd else { return }
        onEnd = nil
        let progress = state.progress
        release()
        state.settle(progress)
        tell(end)
    }

    private func release() {
        state.end()
        loop.filler.promises.drop(ObjectIdentifier(state))
        leaveOpening()
        endFills()
        loop.letGo(self)
    }
}

extension Prefetch.Order {
    /// Downloads make way for what a player is about to ask for.
    fileprivate var kind: FollowerID.Kind { former == nil ? .download : .ahead }
}
