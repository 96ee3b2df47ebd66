import DiskCache
import Downloads
import Foundation
import Reelcache

/// The downloads of a cache that no proxy owns, opened by this process. Nothing is fetched: orders and changes are kept
/// for the next process that does.
package final class OpenedDownloads: DownloadAccess {
    private let store: CacheStore
    private let manager: DownloadManager
    private let directory: String

    /// - Parameter makesCache: whether the cache is made where there is none.
    package init(_ configuration: ProxyConfiguration, makesCache: Bool) throws {
        let policy = try configuration.policy()
        try configuration.checkDownloads()
        directory = configuration.cacheDirectory
        let store = try OpenedCache.openStore(directory, isMade: makesCache)
        self.store = store
        do { manager = try OpenedCache.openDownloads(store, directory, policy, DownloadSettings(configuration)) } catch
        {
            try? store.close()
            throw error
        }
    }

    /// Saves what is to be saved and gives the cache back.
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

    /// What would hold until this process ends would hold for nothing.
    package func set(_ settings: DownloadSettings) throws -> DownloadSummary {
        throw CacheAccessError(
            "no proxy runs for the cache \(directory): say max_downloads and download_rate in the configuration file, or start reelcache serve first"
        )
    }

    package func history(limit: Int?, category: String?) throws -> [DownloadReport] {
        manager.perform { $0.history(limit: limit, category: category) }
    }

    package func clearHistory() throws -> Int {
        try OpenedCache.translated { try manager.perform { try $0.clearHistory() } }
    }
}
