import CacheFill
import CachePolicy
import HTTPModel
import Synchronization

/// How far a presentation's download is. From any thread.
package final class PresentationState: Sendable {
    private let state = Mutex(State())

    private struct State {
        /// The first resource, whatever it turns out to be.
        var first: PrefetchState?
        /// Of a presentation: what is under way.
        var running: [ObjectIdentifier: PrefetchState] = [:]
        /// Bytes of what is there, and segments; nil for a file.
        var bytes: Int64 = 0
        var segments: Int64?
        var total: Int64?
        var note: String?
        var isComplete = false
    }

    package struct Progress: Sendable, Equatable {
        /// Of what is wanted, so much is there.
        package var bytes: Int64 = 0
        /// What is wanted; nil while unknown: of a presentation, until all is there.
        package var total: Int64?
        /// `Content-Disposition` of the first resource.
        package var disposition: String?
        /// Segments that are there, and how many there are; nil for a file.
        package var segments: Int64?
        package var totalSegments: Int64?
        /// What is to be said of it when it is there.
        package var note: String?
    }

    package var progress: Progress {
        let state = state.withLock { $0 }
        let first = state.first?.progress
        guard let segments = state.segments else {
            return Progress(bytes: first?.bytes ?? 0, total: first?.total, disposition: first?.disposition)
        }
        let bytes = state.running.values.reduce(state.bytes) { $0 +| $1.progress.bytes }
        return Progress(
            bytes: bytes, total: state.isComplete ? bytes : nil, disposition: first?.disposition, segments: segments,
            totalSegments: state.total, note: state.note)
    }

    func begin(_ first: PrefetchState) { state.withLock { $0.first = first } }

    /// It is a presentation: what is counted from here on is its segments. Begins anew.
    func beginSegments() {
        let bytes = state.withLock { $0.first }?.progress.bytes ?? 0
        state.withLock { ($0.bytes, $0.segments, $0.running) = (bytes, 0, [:]) }
    }

    /// - Parameter total: of segments; nil where nobody knows.
    func expect(_ total: Int64?, note: String?) { state.withLock { ($0.total, $0.note) = (total, note) } }

    /// Segments that were there before.
    func came(segments: Int64, bytes: Int64 = 0) {
        state.withLock { state in
            state.segments = (state.segments ?? 0) +| segments
            state.bytes +|= bytes
        }
    }

    func note(_ note: String?) { state.withLock { $0.note = note } }

    func began(_ part: PrefetchState) { state.withLock { $0.running[ObjectIdentifier(part)] = part } }

    /// A part is there.
    /// - Parameter segments: that it counts for.
    func came(_ part: PrefetchState, segments: Int64) {
        let bytes = part.progress.bytes
        state.withLock { state in
            state.running[ObjectIdentifier(part)] = nil
            state.bytes +|= bytes
            state.segments = (state.segments ?? 0) +| segments
        }
    }

    /// A part is not fetched any more.
    func left(_ part: PrefetchState) { state.withLock { $0.running[ObjectIdentifier(part)] = nil } }

    /// Segments that had come are not there any more.
    func lost(segments: Int64) {
        state.withLock { $0.segments = $0.segments.map { max(0, $0 -| segments) } }
    }

    func complete() { state.withLock { $0.isComplete = true } }
}
