import DiskCache
import Downloads
import Foundation
import Reelcache

/// The downloads of a cache that no proxy owns, opened by this process. Nothing is fetched: orders and changes are
/// kept for the next process that carries them out.
package final class OpenedDownloads: DownloadAccess {
    private let store: CacheStore
    private let manager: DownloadManager
    private let directory: String

    /// - Parameter makesCache: whether to create the cache if it does not exist.
    package init(_ configuration: ProxyConfiguration, makesCache: Bool) throws {
        let policy = try configuration.policy()
        try configuration.checkDownloads()
        directory = configuration.cacheDirectory
        let store = try OpenedCache.openStore(directory, isMade: makesCache)
        self.store = store
        do {
            manager = try OpenedCache.openDownloads(store, directory, policy, try DownloadSettings(configuration))
        } catch {
            try? store.close()
            throw error
        }
    }

    /// Saves everything and releases the cache.
    package func close() throws {
        manager.perform { $0.stop() }
        try OpenedCache.translated { try store.close() }
    }

    // MARK: Access

    package var isFetching: Bool { false }

    package func downloads() throws -> DownloadListing { manager.snapshots.listing() }

    package func add(_ orders: [DownloadOrder]) throws -> [DownloadReport] {
        try OpenedCache.translated { try manager.perform { try $0.add(orders) } }
    }

    package func change(_ selection: DownloadSelection, _ change: DownloadChange) throws -> [DownloadReport] {
        try OpenedCache.translated { try manager.perform { try $0.change(selection, change) } }
    }

    /// Refused, because settings apply until this process ends, and it fetches nothing.
    package func set(_ settings: DownloadSettings) throws -> DownloadSummary {
        throw CacheAccessError(
            "no proxy is running for the cache \(directory): set max_downloads and download_rate in the configuration file, or start reelcache serve first"
        )
    }

    package func history(limit: Int?, category: String?) throws -> [DownloadReport] {
        manager.perform { $0.history(limit: limit, category: category) }
    }

    package func clearHistory() throws -> Int {
        try OpenedCache.translated { try manager.perform { try $0.clearHistory() } }
    }
}
