import CachePolicy
import DiskCache
import Synchronization

/// The progress of a prefetch. Can be used from any thread.
package final class PrefetchState: Sendable {
    private let state = Mutex(State())
    /// The wanted range; nil for all.
    private let range: Range<Int64>?

    private struct State {
        var generation: Generation?
        var disposition: String?
        var key: CacheKey?
        var lastProgress: Progress?
        /// The last known progress: it is shown while the resource is looked up again.
        var last = Progress()
        var isWanted = true
    }

    package struct Progress: Sendable, Equatable {
        /// Present bytes of the wanted range.
        package var bytes: Int64 = 0
        /// The length of the wanted range; nil while unknown.
        package var total: Int64?
        /// The origin's `Content-Disposition`, if it sent one.
        package var disposition: String?
    }

    /// The key of the resource being filled: the URL's own, or a variant's. Nil before its head is known.
    package var key: CacheKey? { state.withLock { $0.key } }

    init(range: Range<Int64>?) { self.range = range }

    package var progress: Progress {
        let state = state.withLock { $0 }
        if let lastProgress = state.lastProgress { return lastProgress }
        guard let generation = state.generation else { return state.last }
        let everything = 0..<(generation.length.map { max(0, $0) } ?? .max)
        let wanted = range?.clamped(to: everything) ?? everything
        // What was dropped is there neither for a player nor for the next attempt.
        return Progress(
            bytes: generation.isRetired ? 0 : generation.presentBytes(of: wanted),
            total: generation.length.map { _ in Int64(wanted.count) }, disposition: state.disposition)
    }

    /// Whether it still runs.
    var isWanted: Bool { state.withLock { $0.isWanted } }

    func end() { state.withLock { $0.isWanted = false } }

    func follow(_ generation: Generation?) {
        let last = progress
        state.withLock { state in
            state.last = last
            state.generation = generation
            if let generation {
                state.disposition = generation.head.fields["Content-Disposition"]
                state.key = generation.key
            }
        }
    }

    func commit(_ progress: Progress) { state.withLock { $0.lastProgress = progress } }
}

/// Why a prefetch failed.
package enum PrefetchError: Error, Sendable {
    case fill(FillError)
    /// The origin answered with an error.
    /// - retryAfter: the host's back-off in seconds; 0 if it asked for none.
    case status(Int, retryAfter: Double)
    /// The response must not be stored.
    case notStorable(Storing.Reason?)
    case noRoom(String)
    /// The index cannot be read.
    case unreadable
    /// It is cached under another key than the one that was ordered, as its page told.
    case moved
    case store(StoreError)

    /// Whether the origin does not have it.
    package var isAbsence: Bool {
        if case .status(let code, _) = self { Reuse.isGone(status: code) } else { false }
    }
}
