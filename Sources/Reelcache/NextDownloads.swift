import CachePolicy
import DiskCache
import Downloads
import EventIO
import HTTPModel
import Logging
import Synchronization

/// Orders the downloads of next items: with low priority, and not pinned, so that they are evicted like anything that
/// was played.
///
/// Each is ordered once. If it is missing later, somebody may have removed it, and it is not ordered again.
final class NextDownloads: Sendable {
    /// The most next items that are queued at once. What asks for them need not be a person.
    static let mostWaiting = 16
    /// How long after its failure a download is retried when its item is next again, in seconds.
    private static let retriesAfter: Int64 = 3600

    /// What is done about an item, by its downloads.
    private enum Step {
        case order
        case retry(Int64)
        /// - Parameter reason: nil if it is no news.
        case nothing(reason: String?)
    }

    private let store: CacheStore
    private let policy: Current<ProxyPolicy>
    private let manager: DownloadManager
    private let logger: Logger
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64
    private let seen = Mutex(RecentKeys())

    init(_ engine: CacheEngine, _ manager: DownloadManager, now: @escaping @Sendable () -> Int64) {
        (store, policy, logger) = (engine.store, engine.policy, engine.logger)
        (self.manager, self.now) = (manager, now)
    }

    /// Orders an item, unless it is cached or has had a download. If that failed an hour ago or earlier, retries it.
    /// Blocks.
    func order(_ url: OriginURL) {
        let policy = policy.value, key = policy.resolve(url).key
        do {
            guard try !store.isComplete(key) else { return }
            let step = try manager.perform { manager in
                let step = self.step(key, manager.snapshots, policy)
                switch step {
                case .order:
                    let options = DownloadOptions { ($0.priority, $0.isPinned) = (.low, false) }
                    _ = try manager.add([DownloadOrder(url: url, options: options)])
                    seen.withLock { $0.add(key) }
                case .retry(let id): _ = try manager.change(.possible([id]), DownloadChange(action: .retry))
                case .nothing: break
                }
                return step
            }
            log(step, url)
        } catch {
            logger.error("could not order the next item \(url.absolute): \(error)")
        }
    }

    private func step(_ key: CacheKey, _ snapshots: DownloadSnapshots, _ policy: ProxyPolicy) -> Step {
        // Another spelling of the URL, or another URL with the same key, is the same item.
        let known = snapshots.all { policy.resolve($0).key == key }
        guard known.allSatisfy({ $0.state == .failed }) else {
            seen.withLock { $0.add(key) }
            return .nothing(reason: nil)
        }
        let waiting = snapshots.listing { !$0.state.hasEnded && !$0.isPinned && $0.priority == .low }.downloads.count
        guard waiting < Self.mostWaiting else { return .nothing(reason: "\(waiting) next items are waiting already") }
        if let last = known.max(by: { $0.id < $1.id }) {
            guard (last.finished ?? last.added).seconds +| Self.retriesAfter <= now() else {
                return .nothing(reason: "its download has failed: \(last.message ?? "for an unknown reason")")
            }
            return .retry(last.id)
        }
        // The history of downloads may have forgotten it.
        return seen.withLock { $0.keys.contains(key) } ? .nothing(reason: "it was ordered before") : .order
    }

    private func log(_ step: Step, _ url: OriginURL) {
        let resource: Logger.Metadata = ["resource": "\(url.absolute)"]
        switch step {
        case .order: logger.info("downloading the next item", metadata: resource)
        case .retry: logger.info("downloading the next item, which failed before", metadata: resource)
        case .nothing(let reason?): logger.info("not downloading the next item: \(reason)", metadata: resource)
        case .nothing(nil): break
        }
    }
}

/// The last thousand keys.
private struct RecentKeys {
    private static let most = 1000
    private(set) var keys: Set<CacheKey> = []
    private var order: [CacheKey] = []

    mutating func add(_ key: CacheKey) {
        guard keys.insert(key).inserted else { return }
        order.append(key)
        if order.count > Self.most { keys.remove(order.removeFirst()) }
    }
}
