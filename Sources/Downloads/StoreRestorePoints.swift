import CachePolicy
import DiskCache
import Logging

/// Takes restore points from the store, and returns to them.
package struct StoreRestorePoints: RestorePointKeeper {
    private let points: RestorePoints
    private let policy: @Sendable () -> ProxyPolicy

    /// - Parameter policy: the current policy, which gives a URL its cache key.
    package init(_ store: CacheStore, policy: @escaping @Sendable () -> ProxyPolicy) {
        (points, self.policy) = (store.restorePoints, policy)
    }

    package func restorePoint(_ url: OriginURL) throws -> RestorePoint {
        try points.point(of: policy().resolve(url).key)
    }

    package func key(of url: OriginURL) -> String { policy().resolve(url).key.text }

    package func noteOrder(title: String?, category: String?, isByHand: Bool, of key: String) throws {
        try points.noteOrder(title: title, category: category, isByHand: isByHand, of: CacheKey(text: key))
    }

    package func leastMissed(limit: Int) throws -> [CachedResource] { try points.leastMissed(limit: limit) }

    package func release(_ restorePoint: RestorePoint) throws -> Int64 { try points.restore(restorePoint) }
}

extension RestorePointKeeper {
    /// What a completed download has fetched is, for others that had begun before it ended and may be released later,
    /// what was there before: later ones know of it.
    /// - Returns: false if that could not be recorded.
    func keep(_ job: DownloadJob, in queue: inout DownloadQueue, _ logger: Logger) -> Bool {
        guard job.order.isPinned else { return true }
        let others = queue.jobs(sharing: job.key ?? job.url).filter { other in
            other.id != job.id
                && other.restorePoint.map { job.wants($0, of: other.url, since: other.started ?? 0) } == true
        }
        guard !others.isEmpty else { return true }
        do {
            let point = try restorePoint(job.dated.subject)
            for other in others where other.restorePoint?.key == point.key { queue.setRestorePoint(other.id, point) }
            return true
        } catch {
            logger.error("download \(job.id) of \(job.url) stays in the history: \(error)")
            return false
        }
    }
}
