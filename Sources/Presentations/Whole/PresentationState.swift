import CacheFill
import CachePolicy
import HTTPModel
import Synchronization

/// The progress of a presentation's download. From any thread.
package final class PresentationState: Sendable {
    private let state = Mutex(State())

    private struct State {
        /// The first resource, whatever it turns out to be.
        var first: PrefetchState?
        /// The running prefetches of a presentation.
        var running: [ObjectIdentifier: PrefetchState] = [:]
        /// Without the bytes of those that run; segments are nil for a file.
        var arrived = Progress()
        var isComplete = false
    }

    package struct Progress: Sendable, Equatable {
        /// Bytes that have arrived.
        package var bytes: Int64 = 0
        /// Bytes in all; nil while unknown: for a presentation, until it is complete.
        package var total: Int64?
        /// `Content-Disposition` of the first resource.
        package var disposition: String?
        /// Segments that have arrived, and segments in all; nil for a file.
        package var segments: Int64?
        package var totalSegments: Int64?
        /// A note about the finished download.
        package var note: String?
        /// The title that the first playlist states.
        package var title: String?
    }

    package var progress: Progress {
        let state = state.withLock { $0 }
        let first = state.first?.progress
        var progress = state.arrived
        progress.disposition = first?.disposition
        guard progress.segments != nil else {
            return Progress(bytes: first?.bytes ?? 0, total: first?.total, disposition: first?.disposition)
        }
        progress.bytes = state.running.values.reduce(progress.bytes) { $0 +| $1.progress.bytes }
        progress.total = state.isComplete ? progress.bytes : nil
        return progress
    }

    func begin(_ first: PrefetchState) { state.withLock { $0.first = first } }

    /// Starts counting segments, as it is a presentation. Resets the counts.
    func beginSegments() {
        let bytes = state.withLock { $0.first }?.progress.bytes ?? 0
        state.withLock { ($0.arrived.bytes, $0.arrived.segments, $0.running) = (bytes, 0, [:]) }
    }

    /// - Parameter total: the number of segments; nil if unknown.
    func expect(_ total: Int64?, note: String?) {
        state.withLock { ($0.arrived.totalSegments, $0.arrived.note) = (total, note) }
    }

    func setTitle(_ title: String?) { state.withLock { $0.arrived.title = title } }

    /// Counts segments that were cached before.
    func came(segments: Int64, bytes: Int64 = 0) {
        state.withLock { state in
            state.arrived.segments = (state.arrived.segments ?? 0) +| segments
            state.arrived.bytes +|= bytes
        }
    }

    func note(_ note: String?) { state.withLock { $0.arrived.note = note } }

    func began(_ part: PrefetchState) { state.withLock { $0.running[ObjectIdentifier(part)] = part } }

    /// Counts a part that has arrived.
    /// - Parameter segments: the number of segments in it.
    func came(_ part: PrefetchState, segments: Int64) {
        let bytes = part.progress.bytes
        state.withLock { state in
            state.running[ObjectIdentifier(part)] = nil
            state.arrived.bytes +|= bytes
            state.arrived.segments = (state.arrived.segments ?? 0) +| segments
        }
    }

    /// Drops a part that is no longer being fetched.
    func left(_ part: PrefetchState) { state.withLock { $0.running[ObjectIdentifier(part)] = nil } }

    /// Subtracts segments that had arrived and are no longer cached.
    func lost(segments: Int64) {
        state.withLock { $0.arrived.segments = $0.arrived.segments.map { max(0, $0 -| segments) } }
    }

    func complete() { state.withLock { $0.isComplete = true } }
}
