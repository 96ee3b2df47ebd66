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
        /// The cached bytes of what is wanted. Falls when the content changes meanwhile.
        package var bytes: Int64 = 0
        /// The size of what is wanted; nil while unknown: for a presentation, until it is complete.
        package var total: Int64?
        /// The origin's name for the first resource, as it sent it; nil if it sent none.
        package var fileName: String?
        /// The title that the first playlist states; nil if it states none.
        package var title: String?
        /// For a presentation, the number of cached segments; nil for a file.
        package var segments: Int64?
        /// The number of segments; nil while unknown.
        package var totalSegments: Int64?
        /// A remark on a complete download, in one line.
        package var note: String?

        package init() {}
    }

    package var progress: Progress {
        let state = state.withLock { $0 }
        let first = state.first?.progress
        var progress = state.arrived
        progress.fileName = first?.disposition.flatMap { ContentDisposition(parsing: $0)?.fileName }
        guard progress.segments != nil else {
            var file = Progress()
            (file.bytes, file.total, file.fileName) = (first?.bytes ?? 0, first?.total, progress.fileName)
            return file
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

    /// Drops a part that does not exist.
    func lacks(_ part: PrefetchState, segments: Int64) {
        state.withLock { state in
            state.running[ObjectIdentifier(part)] = nil
            state.arrived.totalSegments = state.arrived.totalSegments.map { max(0, $0 -| segments) }
        }
    }

    /// Subtracts segments that had arrived and are no longer cached.
    func lost(segments: Int64) {
        state.withLock { $0.arrived.segments = $0.arrived.segments.map { max(0, $0 -| segments) } }
    }

    func complete() { state.withLock { $0.isComplete = true } }
}
