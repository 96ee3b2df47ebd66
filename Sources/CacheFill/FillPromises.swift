import DiskCache
import Synchronization

/// Bytes that running prefetches have yet to deliver: that room is not available to others.
final class FillPromises: Sendable {
    private let state = Mutex(State())

    private struct State {
        var promises: [ObjectIdentifier: Promise] = [:]
        var turn: UInt64 = 0
    }

    private struct Promise {
        let wanted: Range<Int64>
        let generation: Generation
        /// Earlier prefetches have the first claim to room.
        let turn: UInt64

        var missing: Int64 { Int64(wanted.count) - generation.presentBytes(of: wanted) }
    }

    /// - Parameter wanted: the range of the generation that the prefetch delivers.
    func note(_ id: ObjectIdentifier, _ wanted: Range<Int64>, _ generation: Generation) {
        state.withLock { state in
            state.turn += 1
            state.promises[id] = Promise(
                wanted: wanted, generation: generation, turn: state.promises[id]?.turn ?? state.turn)
        }
    }

    func drop(_ id: ObjectIdentifier) { state.withLock { $0.promises[id] = nil } }

    /// - Returns: the missing bytes of this prefetch, and those of all earlier ones. Several prefetches of one resource
    ///   count once.
    func missing(for id: ObjectIdentifier) -> (own: Int64, others: Int64) {
        let all = state.withLock { $0.promises }
        guard let own = all[id] else { return (0, 0) }
        var others: [ObjectIdentifier: Int64] = [:]
        for promise in all.values where promise.turn < own.turn && promise.generation !== own.generation {
            let missing = promise.missing
            others[ObjectIdentifier(promise.generation)] = max(
                others[ObjectIdentifier(promise.generation)] ?? 0, missing)
        }
        return (own.missing, others.values.reduce(0, +))
    }
}
