import CachePolicy
import DiskCache
import HTTPModel

/// Takes restore points from the store, and returns to them.
package struct StoreRestorePoints: RestorePointKeeper {
    private let store: CacheStore
    private let policy: @Sendable () -> ProxyPolicy

    /// - Parameter policy: the current policy, which gives a URL its cache key.
    package init(_ store: CacheStore, policy: @escaping @Sendable () -> ProxyPolicy) {
        self.store = store
        self.policy = policy
    }

    package func restorePoint(_ url: OriginURL) throws -> RestorePoint {
        let key = policy().resolve(url).key
        let content = try store.restorePoints.content(of: key)
        return RestorePoint(
            key: key.text, wasPinned: content.isPinned,
            former: content.parts.map { part in
                RestorePoint.Former(
                    generation: part.generation, present: part.present.flatMap { [$0.lowerBound, $0.upperBound] },
                    hits: part.hits, isPinned: part.isPinned)
            }, hasMoreParts: content.hasMoreParts)
    }

    package func noteOrder(title: String?, category: String?, isByHand: Bool, of key: String) throws {
        try store.noteOrder(title: title, category: category, isByHand: isByHand, of: CacheKey(text: key))
    }

    package func leastMissed(limit: Int) throws -> [ResourceReport] { try store.leastMissed(limit: limit) }

    package func release(_ restorePoint: RestorePoint) throws -> Int64 {
        let parts = restorePoint.former.map { former in
            FormerContent.Part(
                generation: former.generation, isPinned: former.isPinned, hits: former.hits,
                present: stride(from: 0, to: former.present.count - 1, by: 2).compactMap { place in
                    let (first, end) = (former.present[place], former.present[place + 1])
                    return first < end ? Range(from: first, upTo: end) : nil
                })
        }
        let former = FormerContent(
            isPinned: restorePoint.wasPinned, parts: parts, hasMoreParts: restorePoint.hasMoreParts ?? false)
        return try store.restorePoints.restore(former, of: CacheKey(text: restorePoint.key))
    }
}
