import CachePolicy
import DiskCache
import EventIO

/// Fills all gaps of a stretch of a generation, one after the other, whether or not somebody reads it. Loop-bound.
///
/// It is a follower like a reader, one that is always at the frontier, or as far behind it as its *pace* says: so it
/// shares the fetches of readers, keeps them from pausing, and lets nothing be held for it. A reader that wants bytes
/// far from its frontier has a fetch of its own, which this one goes up to.
///
///     start ─▶ ▓▓▓▓▓▓▓▓▓▓▓░░░░░░░▓▓▓▓░░░░░░░▓▓▓▓▓ end
///                     position ─▶
///
/// How far it is shows in what is present of the generation (`Generation.coverage`).
package final class ResourceFill {
    package enum End: Sendable {
        /// It has gone all the way. What was evicted behind it is not fetched again.
        case completed
        /// `stop` was called, or the generation is no longer the resource's.
        case stopped
        case failed(FillError)
    }

    /// Called once, with the fill, on its loop.
    package var onEnd: ((ResourceFill, End) -> Void)?
    /// Asked when all of a stretch is there: what comes next, if there is more.
    package var whereNext: ((ResourceFill, Range<Int64>) -> Range<Int64>?)?
    /// Called when it has come further.
    package var onAdvance: (() -> Void)?
    /// Everything from the start of this stretch up to here is there, or was when it came by.
    package private(set) var position: Int64 = 0

    private let resource: OpenResource
    private let generation: Generation
    private let demand: Demand
    private let filler: LoopFiller
    private let follower: FollowerID
    private let pace: FillPace?
    /// What is being filled; without an upper end while the length is unknown.
    private var stretch: Range<Int64> = 0..<0
    private var followed: SharedFetch?
    /// How far its fetch has been told that it is: behind `position` where that was quicker than its pace.
    private var told: Int64 = 0
    /// What its transfers may bring beyond that, which its pace has been told of already.
    private var deposit: Int64 = 0
    private var isRunning = false
    /// Fetches of its own in a row that brought nothing.
    private var fruitless = 0
    private static let maxFruitless = 16
    /// What came in faster than it should have, and has yet to be waited for, is no more than this, in bytes.
    private static let longestDebt: Int64 = 4 << 20
    private var pause: LoopTimer?

    /// Whether its gaps can be asked for: only where an answer tells that it is of the same version.
    package static func isPossible(_ generation: Generation) -> Bool {
        generation.isStored && generation.length != nil && generation.head.rangeCondition != nil
            && generation.head.status == 200
    }

    /// - Parameters:
    ///   - generation: one that can be filled (`isPossible`), or one that the fetch brings which it follows from the
    ///     start.
    ///   - pace: how quickly it goes; nil for as fast as bytes come.
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

    /// Fills a stretch. Once; `onEnd` may be called from inside.
    /// - Parameters:
    ///   - stretch: its upper end is `Int64.max` for the end of the resource, wherever that is.
    ///   - status: a fetch that its follower follows already.
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
        goOn()
    }

    /// What is yet to be filled of the stretch.
    package var rest: Range<Int64> { min(position, stretch.upperBound)..<stretch.upperBound }

    /// Ends sooner than it was to.
    /// - Parameter offset: what lies from there on is somebody else's.
    /// - Returns: what is left to them; nil where this has come further already.
    func end(at offset: Int64) -> Range<Int64>? {
        guard isRunning, offset > position, offset < stretch.upperBound else { return nil }
        defer { stretch = stretch.lowerBound..<offset }
        return offset..<stretch.upperBound
    }

    /// Leaves everything as it is by now.
    package func stop() { finish(.stopped) }

    private func begin(_ stretch: Range<Int64>) {
        self.stretch = generation.length.map { stretch.clamped(to: 0..<$0) } ?? stretch
        (position, told) = (stretch.lowerBound, stretch.lowerBound)
    }

    // MARK: Gap by gap

    private func goOn() {
        guard isRunning else { return }
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

    /// Sees to it that a chunk comes.
    /// - Returns: whether there is something to wait for, or this has ended; else it is there by now.
    private func awaitChunk(_ chunk: Range<Int64>) -> Bool {
        let isInTime = followed.map(tell) ?? settleDebt()
        // Its pace keeps the fetch from bringing more; another one would come with its own start.
        guard isInTime, followed?.brings(chunk) == true || payDeposit() else {
            if case .ended(.failed(let error), _)? = followed?.view {
                finish(.failed(error))
            } else {
                waitForTurn(of: chunk)
            }
            return true
        }
        guard fruitless < Self.maxFruitless else {
            finish(.failed(.unusable("it brings nothing of what was asked for")))
            return true
        }
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
            finish(isPossible ? .stopped : .failed(.unusable("nothing tells whether the rest is of the same version")))
        case .unsettled:
            followed = nil
            goOnLater()
        }
        return true
    }

    /// The end of the fetch that it follows is the end of the resource.
    /// - Returns: whether there is something to wait for.
    private func awaitLength() -> Bool {
        guard let followed = followed ?? resource.joinUnresumable(follower, of: generation, at: position) else {
            finish(.failed(.unusable("it has no length, and nothing brings it any more")))
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
        let isInTime = tell(followed)
        switch view {
        case .running(_, let frontier):
            if !isInTime { goOnLater() } else { return followed.wait(follower, at: frontier, wake: wakeUp()) }
            return true
        case .ended(.completed, _):
            if generation.length != nil { return false }
            finish(.failed(.unusable("it ended without a length")))
        case .ended(.stopped, _): finish(.stopped)
        case .ended(.failed(let error), _): finish(.failed(error))
        }
        return true
    }

    /// Why there is nothing to fill any more.
    private var retired: End {
        if followed?.hasSpilled == true { return .failed(.notStored("nothing in the cache can be evicted")) }
        if generation.length == nil, case .running? = followed?.view {
            return .failed(.notStored("it has no length, and is too long or finds no room"))
        }
        if case .ended(.failed(let error), _)? = followed?.view { return .failed(error) }
        return .stopped
    }

    /// Goes past what is there. What its fetch has not brought was there before, and costs no time.
    private func move(to offset: Int64) {
        // What is being written is there before the fetch has said so.
        let brought = followed.map { max(position, min(offset, $0.brought)) } ?? position
        told += offset - brought
        advance(to: offset)
    }

    private func advance(to offset: Int64) {
        guard offset > position else { return }
        position = offset
        fruitless = 0
        onAdvance?()
    }

    // MARK: In time

    /// Tells the fetch how far this is, or as far as its pace lets it be.
    /// - Returns: whether that is all the way.
    private func tell(_ followed: SharedFetch) -> Bool {
        let isInTime = settleDebt()
        followed.advance(follower, to: told)
        return isInTime
    }

    /// Before its first transfer: so much comes before its pace can hold it up.
    /// - Returns: whether one may be begun.
    private func payDeposit() -> Bool {
        guard let pace, deposit == 0, pace.rate != nil else { return true }
        let bytes = ahead(pace)
        guard pace.reserve(bytes) else { return false }
        deposit = bytes
        return true
    }

    private func ahead(_ pace: FillPace) -> Int64 { pace.rate == nil ? 0 : min(pace.window, Int64(rest.count)) }

    /// What has come of this stretch, and nobody waits for any more, others wait for.
    private func oweRest() {
        if let pace, told < position { pace.owe(min(position - told, Self.longestDebt)) }
        told = position
    }

    private func settleDebt() -> Bool {
        guard let pace else {
            told = position
            return true
        }
        told = max(told, position - Self.longestDebt)
        if told < position { told += pace.take(position - told) }
        return told >= position
    }

    /// What it follows brings others something else by now, and is not to go on for this.
    private func waitForTurn(of chunk: Range<Int64>) {
        if followed?.brings(chunk) != true { unfollow() }
        goOnLater()
    }

    /// Others first: where it is too quick.
    private func goOnLater() {
        let timer = pause ?? LoopTimer(on: filler.loop) { [unowned self] in goOn() }
        pause = timer
        timer.schedule(afterSeconds: 0.1)
    }

    private func wakeUp() -> @Sendable () -> Void {
        let bound = LoopBound(self, on: filler.loop)
        return { bound.post { $0.goOn() } }
    }

    private func unfollow() {
        followed?.leave(follower)
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
        let tell = onEnd
        (onEnd, whereNext, onAdvance) = (nil, nil, nil)
        tell?(self, result)
    }
}
