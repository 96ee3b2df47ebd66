import Activity
import CacheFill
import EventIO
import MediaProxy
import Synchronization

/// Collects samples of what all loops do: each loop takes its own when it gets round to it, and none waits for another.
final class ActivityCollector: Sendable {
    private let fillers: [LoopBound<LoopFiller>]
    private let plays: [LoopBound<LoopPlays>]
    private let state = Mutex(State())

    private struct State {
        /// Collections that are running, by number.
        var running: [UInt64: Collection] = [:]
        var last: UInt64 = 0
        var hasEnded = false
    }

    private struct Collection {
        var samples = ActivitySamples()
        /// The loops that have yet to answer.
        var remaining: Int
        let then: @Sendable (ActivitySamples?) -> Void
    }

    /// - Parameter plays: those of the loops, in the order of `fillers`.
    init(_ fillers: [LoopBound<LoopFiller>], _ plays: [LoopBound<LoopPlays>]) {
        (self.fillers, self.plays) = (fillers, plays)
    }

    /// Takes a sample on each loop.
    /// - Parameter then: called once, from any thread; with nil if the loops end before.
    func collect(_ then: @escaping @Sendable (ActivitySamples?) -> Void) {
        let number: UInt64? = state.withLock { state in
            guard !state.hasEnded else { return nil }
            state.last &+= 1
            state.running[state.last] = Collection(remaining: fillers.count, then: then)
            return state.last
        }
        guard let number else { return then(nil) }
        for (filler, plays) in zip(fillers, plays) {
            filler.post { [self] in
                var samples = ActivitySamples()
                plays.value.addSamples(to: &samples)
                $0.addSamples(to: &samples)
                take(samples, number)
            }
        }
    }

    /// Ends the collections that are running: posted work does not run once the loops have stopped.
    func end() {
        let running = state.withLock { state in
            defer { state.running = [:] }
            state.hasEnded = true
            return Array(state.running.values)
        }
        for collection in running { collection.then(nil) }
    }

    private func take(_ samples: ActivitySamples, _ number: UInt64) {
        let complete = state.withLock { state -> Collection? in
            guard var collection = state.running.removeValue(forKey: number) else { return nil }
            collection.samples += samples
            collection.remaining -= 1
            guard collection.remaining > 0 else { return collection }
            state.running[number] = collection
            return nil
        }
        if let complete { complete.then(complete.samples) }
    }
}
