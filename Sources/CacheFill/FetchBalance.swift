import EventIO
import Synchronization

/// Which loop a transfer runs on. Receiving and sending are half of the work each: with one player the other loop would idle.
final class FetchBalance: Sendable {
    private struct State {
        var fillers: [Int: LoopBound<LoopFiller>] = [:]
        var loads = LoopLoads()
    }

    private let state = Mutex(State())

    func register(_ filler: LoopFiller) {
        let bound = LoopBound(filler, on: filler.loop)
        let index = filler.loop.index
        state.withLock { state in
            state.fillers[index] = bound
            state.loads.add(index)
        }
    }

    /// The fillers and this let go of each other.
    func clear() {
        state.withLock { $0 = State() }
    }

    /// Chooses the loop for a transfer that is asked for on loop `home`. `ended` has to follow.
    func place(from home: Int) -> LoopBound<LoopFiller>? {
        state.withLock { state in state.fillers[state.loads.place(from: home)] }
    }

    func ended(on loop: Int, from home: Int) {
        state.withLock { $0.loads.ended(on: loop, from: home) }
    }
}

/// What each loop has to do: transfers that run there, and transfers that were asked for there and are sent on.
struct LoopLoads {
    private(set) var loads: [Int: Int] = [:]

    mutating func add(_ loop: Int) { loads[loop] = 0 }

    /// Home, where it costs no switch of threads, unless another loop has less than half to do of what home has with the sending alone.
    mutating func place(from home: Int) -> Int {
        loads[home, default: 0] += 1
        let least = loads.min { ($0.value, $0.key) < ($1.value, $1.key) }!
        let chosen = 2 * least.value < loads[home]! ? least.key : home
        loads[chosen]! += 1
        return chosen
    }

    mutating func ended(on loop: Int, from home: Int) {
        loads[home]? -= 1
        loads[loop]? -= 1
    }
}
