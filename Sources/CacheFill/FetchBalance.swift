import CachePolicy
import HTTPModel
import Synchronization

/// Chooses the loop that a transfer runs on. Receiving and sending are about equal work, and with one player the other
/// loops would be idle. A short transfer stays on the loop that needs it: it would be over before another thread had
/// started.
final class FetchBalance: Sendable {
    private struct State {
        var loops: [Int: @Sendable (FetchOrder) -> Void] = [:]
        var loads = Loads()
        var lengths = ExpectedLengths()
    }

    private let state = Mutex(State())

    /// - Parameter start: starts a fetch on the loop with this index; from any thread.
    func register(_ loop: Int, start: @escaping @Sendable (FetchOrder) -> Void) {
        state.withLock { state in
            state.loops[loop] = start
            state.loads.add(loop)
        }
    }

    /// Releases the loops' fillers, which also hold this object.
    func clear() {
        state.withLock { $0 = State() }
    }

    /// Chooses the loop for a transfer. The caller must call `ended` afterwards.
    /// - Returns: starts it on another loop than its home; nil to start it there.
    func place(_ order: FetchOrder) -> (@Sendable (FetchOrder) -> Void)? {
        // Without an end, until the answer states its length, that is guessed from the URL.
        let length = order.range.upperBound < .max ? order.range.upperBound -| order.range.lowerBound : nil
        return state.withLock { state in
            let isShort = length.map(ExpectedLengths.isShort) ?? state.lengths.isShort(order.demand.url)
            let chosen = state.loads.place(from: order.home, isShort: isShort)
            return chosen == order.home ? nil : state.loops[chosen]
        }
    }

    /// Records a response's length; nil if the origin did not state one.
    func note(_ length: Int64?, of url: OriginURL) {
        state.withLock { $0.lengths.note(length, of: url) }
    }

    func ended(on loop: Int, from home: Int) {
        state.withLock { $0.loads.ended(on: loop, from: home) }
    }
}

extension FetchBalance {
    /// Guesses whether a response will be short before it arrives, from the last response of the same host with the
    /// same file extension. A host's segments predict its next segments; its subtitles do not predict its films.
    struct ExpectedLengths {
        private struct Kind: Hashable {
            let host: String
            let port: Int?
            let fileExtension: String?
        }

        private var haveBeenShort: [Kind: Bool] = [:]
        /// A forgotten host costs one switch of threads at most.
        private static let mostKinds = 1024
        private static let longestExtension = 8

        /// Up to 1 MiB is short: the loop that needs it has received those few buffers before another has started.
        static func isShort(_ length: Int64) -> Bool { length <= 1 << 20 }

        func isShort(_ url: OriginURL) -> Bool { haveBeenShort[Self.kind(of: url)] ?? false }

        /// - Parameter length: in bytes; nil if the origin did not state it.
        mutating func note(_ length: Int64?, of url: OriginURL) {
            let kind = Self.kind(of: url), isShort = length.map(Self.isShort) ?? false
            guard haveBeenShort[kind] != isShort else { return }
            if haveBeenShort[kind] == nil, haveBeenShort.count >= Self.mostKinds {
                haveBeenShort.removeAll(keepingCapacity: true)
            }
            haveBeenShort[kind] = isShort
        }

        private static func kind(of url: OriginURL) -> Kind {
            let name = url.fileExtension.flatMap { $0.utf8.count <= longestExtension ? $0 : nil }
            return Kind(host: url.host, port: url.port, fileExtension: name)
        }
    }

    /// The load of each loop: transfers that run on it, and transfers that it sends on to clients.
    struct Loads {
        private(set) var loads: [Int: Int] = [:]

        mutating func add(_ loop: Int) { loads[loop] = 0 }

        /// Returns home, which needs no switch of threads, unless the transfer is long and another loop has less than
        /// half of home's load.
        mutating func place(from home: Int, isShort: Bool) -> Int {
            loads[home, default: 0] += 1
            let least = loads.min { ($0.value, $0.key) < ($1.value, $1.key) }!
            let chosen = !isShort && 2 * least.value < loads[home]! ? least.key : home
            loads[chosen]! += 1
            return chosen
        }

        mutating func ended(on loop: Int, from home: Int) {
            for loop in [home, loop] { if let place = loads.index(forKey: loop) { loads.values[place] -= 1 } }
        }
    }
}
