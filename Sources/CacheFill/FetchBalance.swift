import CachePolicy
import EventIO
import HTTPModel
import Synchronization

/// Which loop a transfer runs on. Receiving and sending are half of the work each: with one player the other loop would
/// idle. A short transfer stays where it is asked for: it is over before another thread has begun.
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
    ///   - url: who is asked for what.
    func place(from home: Int, length: Int64?, _ url: OriginURL) -> LoopBound<LoopFiller>? {
        state.withLock { state in
            let isShort = length.map(ExpectedLengths.isShort) ?? state.lengths.isShort(url)
            return state.fillers[state.loads.place(from: home, isShort: isShort)]
        }
    }

    /// What was asked for has this length; nil where that is not told.
    func note(_ length: Int64?, of url: OriginURL) {
        state.withLock { $0.lengths.note(length, of: url) }
    }

    func ended(on loop: Int, from home: Int) {
        state.withLock { $0.loads.ended(on: loop, from: home) }
    }
}

/// Whether something may be expected to be short, before its answer tells: as what its host sent last by a name that
/// ends alike. A host of segments sends segments, and its subtitles say nothing of its films.
struct ExpectedLengths {
    /// By host, port and extension.
    private var haveBeenShort: [String: Bool] = [:]
    /// What is forgotten costs a switch of threads, and no more.
    private static let mostKinds = 1024
    private static let longestExtension = 8

    /// Up to 1 MiB: a few buffers, which the loop that asks has received sooner than another has begun.
    static func isShort(_ length: Int64) -> Bool { length <= 1 << 20 }

    func isShort(_ url: OriginURL) -> Bool { haveBeenShort[Self.kind(of: url)] ?? false }

    /// - Parameter length: in bytes; nil where it is not told.
    mutating func note(_ length: Int64?, of url: OriginURL) {
        let kind = Self.kind(of: url), isShort = length.map(Self.isShort) ?? false
        guard haveBeenShort[kind] != isShort else { return }
        if haveBeenShort[kind] == nil, haveBeenShort.count >= Self.mostKinds {
            haveBeenShort.removeAll(keepingCapacity: true)
        }
        haveBeenShort[kind] = isShort
    }

    private static func kind(of url: OriginURL) -> String {
        let path = url.pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }
        let tail = path.suffix(longestExtension + 1)
        guard let dot = tail.lastIndex(of: UInt8(ascii: ".")), !tail[dot...].contains(UInt8(ascii: "/")) else {
            return url.authority
        }
        return url.authority + String(Substring(tail[dot...]))
    }
}

/// What each loop has to do: transfers that run there, and transfers that were asked for there and are sent on.
struct LoopLoads {
    private(set) var loads: [Int: Int] = [:]

    mutating func add(_ loop: Int) { loads[loop] = 0 }

    /// Home, where a transfer costs no switch of threads, unless the transfer is long and another loop has less than
    /// half to do of what home has with the sending alone.
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
