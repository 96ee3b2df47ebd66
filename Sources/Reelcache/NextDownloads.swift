import CachePolicy
import DiskCache
import Downloads
import EventIO
import Logging

/// Orders the downloads of next items: with low priority, and not pinned, so that they are evicted like anything that
/// was played.
struct NextDownloads: Sendable {
    private let store: CacheStore
    private let policy: Current<ProxyPolicy>
    private let manager: DownloadManager
    private let logger: Logger

    init(_ engine: CacheEngine, _ manager: DownloadManager) {
        (store, policy, logger) = (engine.store, engine.policy, engine.logger)
        self.manager = manager
    }

    /// Orders an item, unless it is cached, is being downloaded, or was cancelled or has failed before. Blocks.
    func order(_ url: OriginURL) {
        do {
            guard try !store.isComplete(policy.value.resolve(url).key) else { return }
            let isNew = try manager.perform { manager in
                // Another order would change the options of the first. One that was completed has been evicted since.
                guard manager.snapshots.downloads(of: url).allSatisfy({ $0.state == .completed }) else { return false }
                _ = try manager.add([DownloadOrder(url: url, priority: .low, isPinned: false)])
                return true
            }
            if isNew { logger.info("downloading the next item", metadata: ["resource": "\(url.absolute)"]) }
        } catch {
            logger.error("could not order the next item \(url.absolute): \(error)")
        }
    }
}
