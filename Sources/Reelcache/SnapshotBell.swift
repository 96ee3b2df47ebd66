import Downloads
import Synchronization

/// Wakes the watchers of a cache's downloads: at once, after each change, and when the cache is closed.
final class SnapshotBell: Sendable {
    private let snapshots: DownloadSnapshots
    private let state = Mutex(State())

    private struct State {
        var isOver = false
        var listeners: [UInt64: AsyncStream<Void>.Continuation] = [:]
    }

    init(_ snapshots: DownloadSnapshots) { self.snapshots = snapshots }

    /// Yields an element now and one after each change, but never two at a time: a slow reader looks once. Ends when
    /// the cache is closed.
    func rings() -> AsyncStream<Void> {
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let watcher = snapshots.watch { continuation.yield() }
        continuation.onTermination = { [snapshots, weak self] _ in
            snapshots.unwatch(watcher)
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: watcher) }
        }
        let isOver = state.withLock { state in
            if !state.isOver { state.listeners[watcher] = continuation }
            return state.isOver
        }
        if isOver { continuation.finish() } else { continuation.yield() }
        return rings
    }

    var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Ends all streams, because no more changes will come.
    func end() {
        let listeners = state.withLock { state in
            state.isOver = true
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
