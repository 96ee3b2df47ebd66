import CachePolicy
import DiskCache
import EventIO

/// Fills all gaps of a stretch of a generation, one after the other, with or without readers. Loop-bound.
///
/// It is a follower like a reader, but one that is always at the frontier, or as far behind it as its *pace* demands.
/// So it shares the fetches of readers, keeps them from pausing, and holds no extents. A reader that wants bytes far
/// from the frontier has a fetch of its own, and this fill goes up to that.
///
///     start ─▶ ▓▓▓▓▓▓▓▓▓▓▓░░░░░░░▓▓▓▓░░░░░░░▓▓▓▓▓ end
///                     position ─▶
///
/// Its progress shows in the generation's present chunks (`Generation.coverage`).
package final class ResourceFill {
    package enum End: Sendable {
        /// It has reached the end. Chunks evicted behind it are not fetched again.
        case completed
        /// `stop` was called, or the generation is no longer the resource's.
        case stopped
        case failed(FillError)
    }

    /// Called once on the loop.
    package var onEnd: ((ResourceFill, End) -> Void)?
    /// Called when a stretch is filled; returns the next one, if there is more to fill.
    package var whereNext: ((ResourceFill, Range<Int64>) -> Range<Int64>?)?
    /// Called on progress.
    package var onAdvance: (() -> Void)?
    /// Everything in the stretch before this offset is present, or was when the fill passed it.
    package private(set) var position: Int64 = 0

    private let resource: OpenResource
    private let generation: Generation
    private let demand: Demand
    private let filler: LoopFiller
    private let follower: FollowerID
    private let pace: FillPace?
    /// The stretch being filled; without an upper end while the length is unknown.
    private var stretch: Range<Int64> = 0..<0
    private var followed: SharedFetch?
    /// The offset that the fetch was told: behind `position` if bytes come faster than the pace.
    private var reported: Int64 = 0
    /// Bytes that its transfers may deliver ahead of the pace; the pace has been charged for them.
    private var deposit: Int64 = 0
    private var isRunning = false
    /// Consecutive fetches of its own that delivered nothing.
    private var fruitless = 0
    private static let maxFruitless = 16
    /// The most bytes ahead of the pace that are still waited for.
    private static let longestDebt: Int64 = 4 << 20
    private var pause: LoopTimer?

    /// Whether gaps can be requested: an answer must show that it is of the same version.
    package static func isPossible(_ generation: Generation) -> Bool {
        generation.isStored && generation.length != nil && generation.head.rangeCondition != nil
            && generation.head.status == 200
    }

    /// - Parameters:
    ///   - generation: one that can be filled (`isPossible`), or the one that the followed fetch delivers.
    ///   - pace: nil for no limit.
    package init(
        _ resource: OpenResource, _ generation: Generation, _ demand: Demand, _ filler: LoopFiller,
        follower: FollowerID = FollowerID(.fill),
        pace: FillPace? = nil
    ) {
        self.resource = resource
        self.generation = generation
        self.demand = demand
        self.filler = filler
        self.follower = follower
        self.pace = pace
    }

    /// Starts filling a stretch. Call once; `onEnd` may be called before this returns.
    /// - Parameters:
    ///   - stretch: its upper end is `Int64.max` for the end of the resource, wherever that is.
    ///   - status: a fetch that the follower already follows.
    package func start(_ stretch: Range<Int64>, following status: SharedFetch? = nil) {
        precondition(!isRunning, "a fill is started once")
        isRunning = true
        generation.beginUse()
        followed = status
        begin(stretch)
        if status != nil, let pace {
            deposit = ahead(pace)
            pace.owe(deposit)
        }
        proceed()
    }

    /// The part of the stretch still to be filled.
    package var rest: Range<Int64> { min(position, stretch.upperBound)..<stretch.upperBound }

    /// Shortens the stretch.
    /// - Parameter offset: the stretch's new end.
    /// - Returns: the part cut off; nil if the fill has already passed the offset.
    func end(at offset: Int64) -> Range<Int64>? {
        guard isRunning, offset > position, offset < stretch.upperBound else { return nil }
        defer { stretch = stretch.lowerBound..<offset }
        return offset..<stretch.upperBound
    }

    /// Stops and keeps the bytes that have arrived.
    package func stop() { finish(.stopped) }

    private func begin(_ stretch: Range<Int64>) {
        self.stretch = generation.length.map { stretch.clamped(to: 0..<$0) } ?? stretch
        (position, reported) = (stretch.lowerBound, stretch.lowerBound)
    }

    // MARK: Gap by gap

    private func proceed() {
        guard isRunning else { return }
        followed?.count(pace)
        while true {
            guard !generation.isRetired else { return finish(retired) }
            guard let length = generation.length else {
                if awaitLength() { return } else { continue }
            }
            stretch = stretch.clamped(to: 0..<length)
            guard let gap = nextGap else {
                move(to: stretch.upperBound)
                oweRest()
                fruitless = 0
                guard let next = whereNext?(self, stretch) else { return finish(.completed) }
                // What the fetch has delivered further on is not what is missing here.
                if next.lowerBound < position { unfollow() }
                begin(next)
                continue
            }
            move(to: gap)
            if awaitChunk(generation.geometry.chunkBytes(generation.geometry.chunk(at: gap), length: length)) { return }
        }
    }

    private var nextGap: Int64? {
        position < stretch.upperBound ? generation.gap(in: position..<stretch.upperBound)?.lowerBound : nil
    }

    /// Waits for a chunk, or has it fetched.
    /// - Returns: false if the chunk is present by now; true if the fill waits or has ended.
    private func awaitChunk(_ chunk: Range<Int64>) -> Bool {
        let isInTime = followed.map(report) ?? payDebt()
        // If the pace holds the current fetch back, another one would only run ahead of it too.
        guard isInTime, followed?.delivers(chunk) == true || payDeposit() else {
            if case .ended(.failed(let error), _)? = followed?.view {
                finish(.failed(error))
            } else {
                waitForTurn(of: chunk)
            }
            return true
        }
        guard fruitless < Self.maxFruitless else {
            finish(.failed(.unusable("it contains none of the requested bytes")))
            return true
        }
        followed?.count(pace)
        let isPossible = Self.isPossible(generation)
        let found = filler.locate(
            position, in: chunk, upTo: isPossible ? stretch.upperBound : nil, of: generation, resource, demand,
            follower, from: nil, following: followed, isMidway: true,
            isThere: { nextGap.map { $0 >= chunk.upperBound } ?? true }, wake: wakeUp())
        switch found {
        case .present:
            return false
        case .coming(let id, let gap):
            followed = SharedFetch(resource: resource, id: id)
            if gap != nil { fruitless += 1 }
        case .passing:
            finish(retired)
        case .failed(let error):
            followed = nil
            finish(.failed(error))
        case .lost:
            followed = nil
            finish(
                isPossible
                    ? .stopped : .failed(.unusable("it has no validator, so a broken transfer cannot be resumed")))
        case .unsettled:
            followed = nil
            proceedLater()
        }
        return true
    }

    /// Waits for the end of the followed fetch, which is the end of the resource.
    /// - Returns: whether the fill waits or has ended.
    private func awaitLength() -> Bool {
        guard let followed = followed ?? resource.joinUnresumable(follower, of: generation, at: position) else {
            finish(.failed(.unusable("it has no length, and its transfer has ended")))
            return true
        }
        self.followed = followed
        let view = followed.view
        switch view {
        case .running(_, let frontier), .ended(_, let frontier):
            advance(to: min(max(position, frontier), stretch.upperBound))
        }
        if position >= stretch.upperBound {
            oweRest()
            finish(.completed)
            return true
        }
        let isInTime = report(followed)
        switch view {
        case .running(_, let frontier):
            if !isInTime { proceedLater() } else { return followed.wait(follower, at: frontier, wake: wakeUp()) }
            return true
        case .ended(.completed, _):
            if generation.length != nil { return false }
            finish(.failed(.unusable("it ended before its length was known")))
        case .ended(.stopped, _): finish(.stopped)
        case .ended(.failed(let error), _): finish(.failed(error))
        }
        return true
    }

    /// Why a retired generation cannot be filled any further.
    private var retired: End {
        if followed?.read({ $0.spill != nil }) == true {
            return .failed(.noRoom(in: filler.filler.store))
        }
        if generation.length == nil, case .running? = followed?.view {
            return .failed(.notStored("its length is unknown, and it is too long or the cache has no room"))
        }
        if case .ended(.failed(let error), _)? = followed?.view { return .failed(error) }
        return .stopped
    }

    /// Moves past present bytes. Those that the fetch did not deliver were present before, and do not count for the
    /// pace.
    private func move(to offset: Int64) {
        // Bytes can be present before the fetch's frontier has moved.
        let delivered = followed.map { max(position, min(offset, $0.delivered)) } ?? position
        reported += offset - delivered
        advance(to: offset)
    }

    private func advance(to offset: Int64) {
        guard offset > position else { return }
        position = offset
        fruitless = 0
        onAdvance?()
    }

    // MARK: Pace

    /// Tells the fetch how far this fill is, or how far its pace lets it be.
    /// - Returns: whether the pace lets it be where it is.
    private func report(_ followed: SharedFetch) -> Bool {
        let isInTime = payDebt()
        followed.advance(follower, to: reported)
        return isInTime
    }

    /// Reserves the bytes that the first transfer will deliver before the pace can hold it back.
    /// - Returns: whether the transfer may begin.
    private func payDeposit() -> Bool {
        guard let pace, deposit == 0, pace.rate != nil else { return true }
        let bytes = ahead(pace)
        guard pace.reserve(bytes) else { return false }
        deposit = bytes
        return true
    }

    private func ahead(_ pace: FillPace) -> Int64 { pace.rate == nil ? 0 : min(pace.window, Int64(rest.count)) }

    /// Charges the pace for bytes that have arrived but that nobody waited for.
    private func oweRest() {
        if let pace, reported < position { pace.owe(min(position - reported, Self.longestDebt)) }
        reported = position
    }

    private func payDebt() -> Bool {
        guard let pace else {
            reported = position
            return true
        }
        reported = max(reported, position - Self.longestDebt)
        if reported < position { reported += pace.take(position - reported) }
        return reported >= position
    }

    /// Leaves a fetch that is elsewhere: it should not continue for this fill. One that has just delivered the chunk is
    /// not left: without followers it would end, and another would request the rest.
    private func waitForTurn(of chunk: Range<Int64>) {
        if followed?.reaches(chunk) != true { unfollow() }
        proceedLater()
    }

    /// Tries again a little later, and lets others go first.
    private func proceedLater() {
        let timer = pause ?? LoopTimer(on: filler.loop) { [unowned self] in proceed() }
        pause = timer
        timer.schedule(afterSeconds: 0.1)
    }

    private func wakeUp() -> @Sendable () -> Void {
        let bound = LoopBound(self, on: filler.loop)
        return { bound.post { $0.proceed() } }
    }

    private func unfollow() {
        followed?.leave(follower, counting: pace)
        followed = nil
    }

    private func finish(_ result: End) {
        guard isRunning else { return }
        isRunning = false
        pause?.cancel()
        oweRest()
        pace?.owe(-deposit)
        unfollow()
        generation.endUse()
        let report = onEnd
        (onEnd, whereNext, onAdvance) = (nil, nil, nil)
        report?(self, result)
    }
}

extension ResourceFill: LoopFiller.Work {
    /// Fills a resource beyond what is read, as its rule says: from `offset` to its end, and then the part before, if
    /// all of it is wanted. One fill serves all readers, and continues when they have left.
    package static func keepFilling(
        _ resource: OpenResource, _ generation: Generation, _ demand: Demand, from offset: Int64, on loop: LoopFiller
    ) {
        let start: Int64, filler = loop.filler
        switch demand.resolvedRule.fill {
        case .read, .ahead: return
        case .end: start = offset
        case .whole: start = 0
        }
        guard !loop.isShutDown, !loop.origins.isOffline, !demand.resolvedRule.isMetered,
            let length = generation.length, isPossible(generation), length <= filler.largestFilled,
            generation.coverage(of: start..<length) != .whole,
            !filler.backoff.isDown(demand.address, beside: demand.resolvedRule.parents),
            resource.beginFilling(generation, from: start)
        else { return }
        let fill = ResourceFill(resource, generation, demand, loop)
        fill.whereNext = { _, done in resource.filled(generation, from: done.lowerBound).map { $0..<done.lowerBound } }
        fill.onEnd = { [unowned loop] fill, end in
            loop.letGo(fill)
            // A completed fill has ended with its last call of `whereNext`: another may run by now.
            if case .completed = end { return }
            resource.endFilling(generation)
            if case .failed(let error) = end {
                filler.logger.info(
                    "not filled further: \(error)",
                    metadata: ["resource": "\(resource.key.text)", "offset": "\(fill.position)"])
            }
        }
        loop.keep(fill)
        fill.start(offset..<length)
    }
}
