import EventIO
import Synchronization

/// Which loop a transfer runs on. Receiving and sending are half of the work each: with one player the other loop would idle. A short transfer
/// stays where it is asked for: it is over before another thread has begun.
final class FetchBalance: Sendable {
    private struct State {
        var fillers: [Int: LoopBound<LoopFiller>] = [:]
        var loads = LoopLoads()
        var lengths = ExpectedLengths()
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
    /// - Parameters:
    ///   - length: what it brings, in bytes; nil where only the answer will tell.
    ///   - host: with its port, who is asked.
    func place(from home: Int, length: Int64?, host: @autoclosure () -> String) -> LoopBound<LoopFiller>? {
        state.withLock { state in
            let isShort = length.map(ExpectedLengths.isShort) ?? state.lengths.areShort(of: host())
            return state.fillers[state.loads.place(from: home, isShort: isShort)]
        }
    }

    /// A host has answered with something of this length; nil where it did not tell.
    func note(_ length: Int64?, from host: String) {
        state.withLock { $0.lengths.note(length, of: host) }
    }

    func ended(on loop: Int, from home: Int) {
        state.withLock { $0.loads.ended(on: loop, from: home) }
    }
}

/// How long what a host sends may be expected to be, before its answer tells: as what it sent last. A host of segments sends segments.
struct ExpectedLengths {
    private var haveBeenShort: [String: Bool] = [:]
    private static let mostHosts = 1024

    static func isShort(_ length: Int64) -> Bool { length <= 1 << 20 }

    func areShort(of host: String) -> Bool { haveBeenShort[host] ?? false }

    /// - Parameter length: in bytes; nil where it is not told.
    mutating func note(_ length: Int64?, of host: String) {
        let isShort = length.map(Self.isShort) ?? false
        guard haveBeenShort[host] != isShort else { return }
        if haveBeenShort.count >= Self.mostHosts { haveBeenShort.removeAll(keepingCapacity: true) }
        haveBeenShort[host] = isShort
    }
}

/// What each loop has to do: transfers that run there, and transfers that were asked for there and are sent on.
struct LoopLoads {
    private(set) var loads: [Int: Int] = [:]

    mutating func add(_ loop: Int) { loads[loop] = 0 }

    /// Home, where it costs no switch of threads, unless it is long and another loop has less than half to do of what home has with the sending
    /// alone.
    mutating func place(from home: Int, isShort: Bool) -> Int {
        loads[home, default: 0] += 1
        let least = loads.min { ($0.value, $0.key) < ($1.value, $1.key) }!
        let chosen = !isShort && 2 * least.value < loads[home]! ? least.key : home
        loads[chosen]! += 1
        return chosen
    }

    mutating func ended(on loop: Int, from home: Int) {
        loads[home]? -= 1
        loads[loop]? -= 1
    }
}
