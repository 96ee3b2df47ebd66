import CachePolicy
import DiskCache

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
