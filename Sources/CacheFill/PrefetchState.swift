import CachePolicy
import DiskCache
import Synchronization

/// How far a prefetch is. From any thread.
package final class PrefetchState: Sendable {
    private let state = Mutex(State())
    /// What is wanted; nil for all.
    private let range: Range<Int64>?

    private struct State {
        var generation: Generation?
        var disposition: String?
        var settled: Progress?
        /// As it was last; what is looked up anew has not come to nothing.
        var last = Progress()
        var isWanted = true
    }

    package struct Progress: Sendable, Equatable {
        /// Of what is wanted, so much is there.
        package var bytes: Int64 = 0
        /// What is wanted; nil while unknown.
        package var total: Int64?
        /// `Content-Disposition`, where the origin has sent one.
        package var disposition: String?
    }

    init(range: Range<Int64>?) { self.range = range }

    package var progress: Progress {
        let state = state.withLock { $0 }
        if let settled = state.settled { return settled }
        guard let generation = state.generation else { return state.last }
        let everything = 0..<(generation.length.map { max(0, $0) } ?? .max)
        let wanted = range?.clamped(to: everything) ?? everything
        return Progress(
            bytes: generation.presentBytes(of: wanted), total: generation.length.map { _ in Int64(wanted.count) },
            disposition: state.disposition)
    }

    /// Whether it still goes on.
    var isWanted: Bool { state.withLock { $0.isWanted } }

    func end() { state.withLock { $0.isWanted = false } }

    func follow(_ generation: Generation?) {
        let last = progress
        state.withLock { state in
            state.last = last
            state.generation = generation
            if let generation { state.disposition = generation.head.fields["Content-Disposition"] }
        }
    }

    func settle(_ progress: Progress) { state.withLock { $0.settled = progress } }
}

/// Why a prefetch does not go on.
package enum PrefetchError: Error, Sendable {
    case fill(FillError)
    /// The origin answers with an error.
    /// - retryAfter: seconds for which it wants to be left alone; 0 where it does not say.
    case status(Int, retryAfter: Double)
    /// What comes is not to be kept.
    case notStorable(Storing.Reason?)
    case noRoom(String)
    /// The index cannot be read.
    case unreadable
    case store(StoreError)
}
