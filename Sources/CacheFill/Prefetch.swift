import CachePolicy
import DiskCache
import EventIO
import HTTPModel

/// Brings a resource, or a range of it, into the cache without a reader: a download, a part of a presentation that is
/// downloaded, or what a player is about to request. Loop-bound.
///
///     look up ── all of it there ────────────────────────────────▶ completed, once saved where it is kept
///        ├────── a part of it ── fill its gaps ─────────────────────────┤
///        └────── unknown ── open ── stored ── follow, fill the rest ────┘
///                             └── not to be stored: failed
package final class Prefetch: LoopFiller.Work, ResourceResolver.User {
    package enum End: Sendable {
        /// Everything wanted is cached, and saved in the index if it is to be kept.
        case completed
        case failed(PrefetchError)
    }

    /// The progress, for any thread.
    package let state: PrefetchState
    private let order: Order
    private let pace: FillPace?
    private let loop: LoopFiller
    private let follower: FollowerID
    private var onEnd: ((End) -> Void)?
    /// Called once, when the rest should take no longer than the origin took to answer: a request sent now is answered
    /// when this prefetch ends.
    package var onNearEnd: (() -> Void)?
    /// Called when everything wanted is there and is being saved; again if some of it is lost meanwhile.
    package var onPresent: ((Generation) -> Void)?
    /// When it began, and when its first bytes had arrived, in nanoseconds.
    private var times: (began: UInt64?, first: UInt64?) = (nil, nil)

    package let resolvedRule: ResolvedRule
    private let pins: Bool
    private var opening: Opening
    private var mayRequestPart = true
    /// Whether the opening requests a part.
    private var requestsPart = false
    /// nil while nothing is being filled.
    private var shares: PrefetchShares?
    private var generation: Generation?
    private var isCommitting = false
    private var pinning = Pinning.notYet
    private enum Pinning { case notYet, running, done }
    /// The size of an opening's request if several connections are to share the rest, in bytes.
    private static let openingBytes: Int64 = 4 << 20

    /// - Parameters:
    ///   - pace: nil for no limit.
    ///   - end: called once, on the loop, unless `stop` was called before.
    package init(_ order: Order, pace: FillPace?, on loop: LoopFiller, onEnd end: @escaping (End) -> Void) {
        self.order = order
        follower = FollowerID(order.kind)
        self.pace = pace
        self.loop = loop
        onEnd = end
        var (key, resolvedRule) = loop.filler.policy.value.resolve(order.url)
        // Follow the fetch closely so that the pace applies to it: what runs ahead of the pace is less than a second's
        // worth.
        if let pace { resolvedRule.fill = .ahead(bytes: pace.window) }
        self.resolvedRule = resolvedRule
        pins = order.keeps && (resolvedRule.pins || order.isPinned)
        opening = Opening(key, follower, pace: pace, on: loop)
        state = PrefetchState(range: order.range)
        loop.keep(self)
    }

    package func start() {
        times.began = now
        guard !resolvedRule.bypasses else { return fail(.notStorable(.rule)) }
        // What is there need not be of the newest version, but all of it of one.
        if order.kind == .download, !order.isFresh { opening.resource.leaveSuccession(isOfPresentation: true) }
        proceedUnlessMoved()
    }

    /// Stops and keeps the bytes that have arrived.
    package func stop() {
        (onEnd, onNearEnd, onPresent) = (nil, nil, nil)
        release()
    }

    // MARK: Looking up

    private func proceed() {
        guard onEnd != nil else { return }
        act(on: opening.look(for: self, wake: wake { $0.proceed() }))
    }

    package var purpose: ResourceResolver.Purpose {
        guard order.isFresh else { return .presence }
        return .answer(
            RequestDirectives(cacheControl: "no-cache", pragma: nil), ttl: resolvedRule.ttl,
            isOffline: loop.origins.isOffline)
    }

    private func act(on resolution: Resolution) {
        switch resolution {
        case .wait: break
        case .use(let generation, _, _): consider(generation)
        case .validate(let generation, _, _): open(validating: generation)
        case .turn(let key, _):
            opening.turn(to: key)
            proceed()
        case .open: open()
        case .bypass(.unreadable): fail(.unreadable)
        case .bypass(.unfit): fail(.notStorable(.forOneUser))
        case .replace(let generation):
            loop.filler.discard(generation, of: opening.resource)
            proceed()
        case .bypass(.vary): fail(.notStorable(.varyAny))
        case .bypass(.rule), .refuse: fail(.notStorable(.rule))
        }
    }

    package var isAuthorized: Bool { demand(nil).isAuthorized }

    package func selection(of variant: Variant) -> Variant {
        variant.of(demand(nil).sentFields, fingerprint: loop.filler.store.fingerprint)
    }

    /// Starts over because the resource has changed meanwhile.
    private func restart(after error: PrefetchError) {
        endFills()
        opening.restart(order.url, resolvedRule) ? proceedUnlessMoved() : fail(error)
    }

    private func proceedUnlessMoved() {
        let isInPlace = order.key.map(opening.resource.key.isOf) ?? true
        isInPlace ? proceed() : fail(.moved)
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
        guard isOnItsWay,
            generation.length.map({ generation.coverage(of: wanted(of: generation, $0)) != .whole }) ?? true
        else {
            return fill(generation, following: nil)
        }
        // The rest comes only with the running transfer; without one, everything has to be fetched again.
        if let status = opening.resource.joinUnresumable(follower, of: generation, at: 0) {
            return fill(generation, following: status)
        }
        loop.filler.discard(generation, of: opening.resource)
        restart(after: .fill(.changed))
    }

    /// A download wants all of a version that is to replace one that is kept: it takes its place as a whole.
    private func wanted(of generation: Generation, _ length: Int64) -> Range<Int64> {
        guard let range = order.range, order.kind != .download || !generation.isHidden else { return 0..<length }
        return range.clamped(to: 0..<max(0, length))
    }

    // MARK: Opening

    private func open(validating validated: Generation? = nil) {
        let part = mayRequestPart ? order.range ?? order.ends?.opening ?? openingOfSeveral : nil
        let span = part.map {
            ByteRangeSpec.bounded(first: $0.lowerBound, last: max($0.lowerBound, $0.upperBound -| 1))
        }
        guard opening.open(demand(span), validating: validated) != nil else { return restart(after: .fill(.changed)) }
        requestsPart = part != nil
        awaitOpening()
    }

    private var openingOfSeveral: Range<Int64>? { order.connections > 1 ? 0..<Self.openingBytes : nil }

    private func awaitOpening() {
        guard opening.fetch != nil else { return }
        switch opening.outcome(orWake: wake { $0.awaitOpening() }) {
        case .found(.stored(let generation), let status):
            if let alternative = opening.alternative(to: generation, for: self) {
                opening.leave()
                return act(on: alternative)
            }
            opening.handOver()
            fill(generation, following: status)
        case .found(.validated(let generation, _), _):
            opening.leave()
            opening.resolver.accepted = generation
            proceed()
        case .found(.passing(let generation, let owner, _, _), let status):
            let (obstacle, reason, code) = (status.obstacle, status.passingReason, generation.head.status)
            opening.leave()
            // An empty resource has no parts, and a part of a resource of unknown length, or of an encoded form, is not
            // stored: ask for the whole.
            let mayBeEmpty = code == 416 && order.range?.lowerBound ?? 0 == 0
            if requestsPart, mayBeEmpty || code == 200 && (reason == nil || reason == .encoded) && obstacle == nil {
                mayRequestPart = false
                return proceed()
            }
            if code != 200 { return fail(.status(code, retryAfter: wait(for: generation))) }
            if let obstacle { return fail(.fill(obstacle)) }
            // A response to another request may pass through for reasons of that request alone. For a player, one
            // attempt is enough: the player will ask by itself.
            let isOwn = owner == follower || !order.keeps
            isOwn ? fail(.notStorable(reason)) : restart(after: .notStorable(reason))
        case .failed(let error):
            opening.leave()
            fail(.fill(error))
        case .stopped(let error):
            opening.leave()
            restart(after: .fill(error))
        case nil: break
        }
    }

    // MARK: Filling

    private func fill(_ generation: Generation, following status: SharedFetch?) {
        use(generation)
        if let length = generation.length, generation.coverage(of: wanted(of: generation, length)) == .whole {
            status?.leave(follower, counting: pace)
            return completed(generation)
        }
        checkRoom(generation)
        // A fetch that cannot be resumed has to deliver the whole.
        let canStop = ResourceFill.isPossible(generation)
        let stretch = generation.length.map { canStop ? wanted(of: generation, $0) : 0..<$0 } ?? 0..<Int64.max
        // The first connection follows the fetch that opened the resource, if it still runs, as far as that goes.
        var opened: Int64?
        if case .running(let range, _)? = status?.view { opened = range.upperBound }
        let stretches = canStop ? order.ends?.stretches(of: stretch) : nil
        var shares = PrefetchShares(of: stretches ?? [stretch], for: canStop ? order.connections : 1)
        let first = shares.first(upTo: opened)
        self.shares = shares
        guard let first else {
            status?.leave(follower, counting: pace)
            return completed(generation)
        }
        begin(first, of: generation, following: status)
        beginOthers(generation)
    }

    /// Tells that the rest will take about as long as the origin took to answer.
    private func lookForTheEnd() {
        guard onNearEnd != nil, let beganAt = times.began else { return }
        let (progress, now) = (state.progress, now)
        guard let firstAt = times.first else {
            times.first = now
            return
        }
        guard let total = progress.total, progress.bytes > 0 else { return }
        let (latency, spent) = (Double(firstAt -| beganAt), Double(now -| firstAt))
        let rest = spent * Double(max(0, total -| progress.bytes)) / Double(progress.bytes)
        guard rest <= min(latency * Self.latenciesAhead, Self.longestAhead) else { return }
        let report = onNearEnd
        onNearEnd = nil
        report?()
    }

    /// More than one latency, because progress is seen a chunk at a time.
    private static let latenciesAhead = 1.5
    /// In nanoseconds.
    private static let longestAhead = 1e9

    private var now: UInt64 { loop.filler.settings.clock() }

    /// Whether another connection may start.
    private var hasFreeConnection: Bool { shares.map { $0.running.count < connections(of: $0.most) } ?? false }

    private func connections(of count: Int) -> Int { pace?.connections(of: count) ?? count }

    /// Starts as many connections as allowed, while there are blocks to hand out.
    private func beginOthers(_ generation: Generation) {
        while self.generation === generation, hasFreeConnection, let block = shares?.next(for: nil, at: now) {
            begin(block, of: generation, following: nil)
        }
    }

    private func begin(_ block: Range<Int64>, of generation: Generation, following status: SharedFetch?) {
        let fill = ResourceFill(
            opening.resource, generation, demand(nil), loop,
            follower: status == nil ? FollowerID(order.kind) : follower,
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

    /// Hands out the next block to a connection that has finished one.
    private func next(after fill: ResourceFill, _ generation: Generation) -> Range<Int64>? {
        // If the rate limit now allows fewer connections, this one ends.
        guard let shares, shares.running.count <= connections(of: shares.most),
            let block = self.shares?.next(for: fill, at: now)
        else { return nil }
        self.shares?.begin(block, by: fill, at: now)
        if hasFreeConnection, self.shares?.hasMore == true {
            // Not from within a fill's callback.
            loop.loop.afterCallback { [self] in if onEnd != nil { beginOthers(generation) } }
        }
        return block
    }

    private func ended(_ fill: ResourceFill, _ end: ResourceFill.End, _ generation: Generation) {
        // Ignores fills that `endFills` has ended.
        guard shares?.remove(fill) == true, onEnd != nil else { return }
        let rest = fill.rest
        // Not from within the fill's own `start`.
        loop.loop.afterCallback { [self] in
            guard onEnd != nil, self.generation === generation, let shares else { return }
            switch end {
            // Another connection may have returned a block just when the last one ended.
            case .completed:
                if shares.running.count == 0 { shares.hasMore ? beginOthers(generation) : completed(generation) }
            case .stopped, .failed(.changed): restart(after: .fill(.changed))
            case .failed where shares.running.count > 0: self.shares?.refuseOne(leaving: rest)
            case .failed(.originStatus(let code)): fail(.status(code, retryAfter: wait(for: generation)))
            case .failed(let error): fail(.fill(error))
            }
        }
    }

    /// The remaining back-off: of the requested host, or of the one that it redirected to.
    private func wait(for generation: Generation) -> Double {
        let backoff = loop.filler.backoff
        return max(backoff.wait(before: order.url.absolute), backoff.wait(before: generation.head.finalURL))
    }

    private func endFills() {
        let running = shares?.fills ?? []
        shares = nil
        for fill in running { fill.stop() }
        use(nil)
    }

    private func use(_ generation: Generation?) {
        guard self.generation !== generation else { return }
        if order.keeps { self.generation?.savesSoon(false) }
        self.generation = generation
        if order.keeps { generation?.savesSoon(true) }
        state.follow(generation)
        if pinning == .done { pinning = .notYet }
    }

    // MARK: Room

    /// Checks for room first, so that a resource that cannot fit does not evict everything else.
    private func checkRoom(_ generation: Generation) {
        guard order.keeps, let length = generation.length else { return }
        let needed = wanted(of: generation, length)
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
                        promised > 0 ? ", besides \(ByteSize(bytes: promised)) for other downloads" : ""
                    prefetch.fail(
                        .noRoom(
                            "\(ByteSize(bytes: missing)) are missing, and the cache can free only \(ByteSize(bytes: max(0, room)))\(others)"
                        ))
                case .failure(let error): prefetch.fail(.store(error))
                }
            }
        }
    }

    /// Pins the resource early, so that it is not evicted while the rest comes. It has to be in the index before.
    private func pinWhenThere(_ generation: Generation) {
        guard pins, pinning == .notYet, generation.length != nil, state.progress.bytes > 0 else { return }
        pinning = .running
        let (store, logger, bound) = (loop.filler.store, loop.filler.logger, LoopBound(self, on: loop.loop))
        store.perform { [state] in
            var isPinned = false
            // The prefetch may have been stopped meanwhile, and its bytes removed.
            do throws(StoreError) {
                isPinned = try store.setPinned(true, generation.key) { state.isWanted }
            } catch {
                logger.error("could not pin \(generation.key.text): \(error)")
            }
            let result = isPinned ? Pinning.done : .notYet
            bound.post { if $0.generation === generation { $0.pinning = result } }
        }
    }

    // MARK: The end

    private func completed(_ generation: Generation) {
        guard !isCommitting else { return }
        guard let length = generation.length else { return restart(after: .fill(.changed)) }
        guard order.keeps else {
            if order.kind == .download { loop.filler.succeed(generation, in: opening.resource) }
            return check(wanted(of: generation, length), of: generation)
        }
        onPresent?(generation)
        commit(wanted(of: generation, length), of: generation)
    }

    /// Makes the bytes durable: the prefetch is complete only if it would be so after a crash.
    private func commit(_ wanted: Range<Int64>, of generation: Generation) {
        isCommitting = true
        let (store, pins, bound) = (loop.filler.store, pins, LoopBound(self, on: loop.loop))
        store.perform { [state] in
            let outcome = Result { () throws(StoreError) in
                try store.commit(wanted, of: generation, isPinned: pins) { state.isWanted }
            }
            bound.post { prefetch in
                prefetch.isCommitting = false
                guard prefetch.onEnd != nil else { return }
                if case .failure(let error) = outcome { return prefetch.fail(.store(error)) }
                prefetch.check(wanted, of: generation)
            }
        }
    }

    /// Part of it may have been evicted meanwhile, or the disk may have failed.
    private func check(_ wanted: Range<Int64>, of generation: Generation) {
        guard !generation.isRetired, generation.coverage(of: wanted) == .whole else {
            return restart(after: .noRoom("part of it was evicted before the rest arrived"))
        }
        end(.completed)
    }

    private func fail(_ error: PrefetchError) {
        if case .noRoom = error { loop.filler.metrics.errors.add(FailureKind.noRoom.rawValue) }
        end(.failed(error))
    }

    private func end(_ end: End) {
        guard let report = onEnd else { return }
        onEnd = nil
        let progress = state.progress
        release()
        state.commit(progress)
        report(end)
    }

    private func release() {
        state.end()
        loop.filler.promises.drop(ObjectIdentifier(state))
        opening.leave()
        endFills()
        loop.letGo(self)
    }
}
