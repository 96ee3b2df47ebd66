import CachePolicy
import DiskCache
import HTTPModel

/// Finds the cached files of episodes in the store.
package struct StoreEpisodes: EpisodeStore {
    /// Seconds. A player that has read everything ahead may have closed its connection.
    private static let playingTime: Int64 = 1800

    private let store: CacheStore
    private let snapshots: DownloadSnapshots
    private let policy: @Sendable () -> ProxyPolicy
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - policy: the current policy, which gives a URL its cache key.
    ///   - now: the time in seconds since 1970.
    package init(
        _ store: CacheStore, snapshots: DownloadSnapshots, policy: @escaping @Sendable () -> ProxyPolicy,
        now: @escaping @Sendable () -> Int64
    ) {
        (self.store, self.snapshots, self.policy, self.now) = (store, snapshots, policy, now)
    }

    package func cached(_ url: OriginURL) throws -> CachedEpisode? {
        try policy().find(url) { key throws(StoreError) in
            guard let resource = try store.resource(key)?.resource, resource.cachedBytes > 0 else { return nil }
            return CachedEpisode(
                bytes: resource.cachedBytes, isComplete: resource.isComplete || resource.parts != nil,
                isByHand: try store.restorePoints.isByHand(key), played: resource.played)
        }
    }

    package func remove(_ url: OriginURL) throws -> Bool {
        let policy = policy()
        guard snapshots.unfinished(of: url, under: policy) == nil else { return false }
        return try policy.find(url) { key throws(StoreError) in
            guard try !isBeingPlayed(key) else { return false }
            return try store.remove(key, isDryRun: false).map { _ in true }
        } ?? true
    }

    package func played(among urls: [OriginURL]) throws -> [OriginURL: Int64] {
        let (policy, played) = (policy(), try store.played())
        guard !played.isEmpty else { return [:] }
        return urls.reduce(into: [:]) { $0[$1] = played[policy.resolve($1).key] }
    }

    package func unpin(_ url: OriginURL) throws -> Bool {
        try policy().find(url) { key throws(StoreError) in
            guard try !isBeingPlayed(key) else { return false }
            return try store.unpinPlayed(key) ? true : nil
        } ?? true
    }

    private func isBeingPlayed(_ key: CacheKey) throws(StoreError) -> Bool {
        if try store.parts.isBeingRead(key) { return true }
        guard let resource = try store.resource(key)?.resource else { return false }
        return resource.hits > 0 && resource.lastAccess > now() -| Self.playingTime
    }
}
