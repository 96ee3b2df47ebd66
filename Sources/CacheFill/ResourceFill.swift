import CachePolicy
import DiskCache
import EventIO

/// Fills all gaps of a stretch of a generation, one after the other, whether or not somebody reads it. Loop-bound.
///
/// It is a follower like a reader, one that is always at the frontier: so it shares the fetches of readers, keeps them from pausing, and lets
/// nothing be held for it. A reader that wants bytes far from its frontier has a fetch of its own, which this one goes up to.
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
    /// Asked when all from an offset on is there: where to begin with what lies before it, if that is wanted.
    package var whereNext: ((Int64) -> Int64?)?
    /// Everything from the start of this stretch up to here is there, or was when it came by.
    package private(set) var position: Int64 = 0

    private let resource: OpenResource
    private let generation: Generation
    private let demand: Demand
    private let filler: LoopFiller
    private let follower = FollowerID()
    private var start: Int64 = 0
    private var end: Int64
    private var followed: FetchStatus?
    private var isRunning = false
    /// Where it looked once more after its fetch had come by.
    private var lastLook: Int64 = -1
    /// Fetches in a row that brought nothing.
    private var fruitless = 0
    private static let maxFruitless = 16
    private var pause: LoopTimer?

    /// Whether its gaps can be asked for: only where an answer tells that it is of the same version.
    package static func isPossible(_ generation: Generation) -> Bool {
        generation.isStored && generation.length != nil && generation.head.rangeCondition != nil && generation.head.status == 200
    }

    /// - Parameter generation: one that can be filled (`isPossible`).
    package init(_ resource: OpenResource, _ generation: Generation, _ demand: Demand, _ filler: LoopFiller) {
        self.resource = resource
        self.generation = generation
        self.demand = demand
        self.filler = filler
        end = generation.length ?? 0
    }

    /// Fills from an offset to the end of the resource. Once; `onEnd` may be called from inside.
    package func start(from offset: Int64) {
        precondition(!isRunning, "a fill is started once")
        isRunning = true
        generation.beginUse()
        (start, position) = (offset, offset)
        goOn()
    }

    /// Leaves everything as it is by now.
    package func stop() { finish(.stopped) }

    // MARK: Gap by gap

    private func goOn() {
        guard isRunning else { return }
        // Once more after each piece of news: what was found absent may be there by now.
        for _ in 0..<8 {
            guard !generation.isRetired else { return finish(.stopped) }
            guard let gap = generation.gap(in: position..<end) else {
                guard let next = whereNext?(start) else { return finish(.completed) }
                (start, position, end) = (next, next, start)
                continue
            }
            if gap.lowerBound > position {
                position = gap.lowerBound
                fruitless = 0
            }
            let chunk = generation.geometry.chunkBytes(generation.geometry.chunk(at: gap.lowerBound), length: generation.length)
            if let followed {
                followed.advance(follower, to: position)
                switch followed.view {
                case .running(_, let frontier) where followed.fills(chunk):
                    if followed.wait(follower, at: max(frontier, position), wake: wakeUp()) { return }
                    continue
                case .running(_, let frontier) where frontier >= chunk.upperBound && lastLook != position:
                    // It came by between the look at the bytes and here, or its chunk is gone again.
                    lastLook = position
                    continue
                case .running: break
                case .ended(.failed(let error), _): return finish(.failed(error))
                case .ended: fruitless += 1
                }
                unfollow()
            }
            guard fruitless < Self.maxFruitless else { return finish(.failed(.unusable("it brings nothing of what was asked for"))) }
            followed =
                resource.join(follower, of: generation, filling: chunk)
                ?? filler.fill(gap.lowerBound..<end, of: generation, resource, demand, follower: follower, isMidway: true)
        }
        goOnLater()
    }

    /// Evicted as fast as it comes, or claimed by one who does not move: others first.
    private func goOnLater() {
        fruitless += 1
        let timer = LoopTimer(on: filler.loop) { [unowned self] in goOn() }
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
        unfollow()
        generation.endUse()
        let tell = onEnd
        (onEnd, whereNext) = (nil, nil)
        tell?(self, result)
    }
}
