import CachePolicy
import Downloads
import Logging

/// What became of the episodes of a feed: their downloads, and what is cached of them. Blocks.
struct EpisodeKeeper: Sendable {
    let store: any EpisodeStore
    let downloads: DownloadManager
    let logger: Logger

    /// The downloads of a subscription, by the identity of their episodes.
    func downloads(of subscription: Subscription) -> [String: DownloadReport] {
        downloads.perform { $0.downloads(ofFeed: subscription.url.absolute, since: subscription.added) }
    }

    /// Orders the downloads of episodes, newest first.
    /// - Returns: the numbers of the downloads. An episode whose URL is being downloaded already gets none of its own,
    ///   so that the options of that download stay.
    func order(_ episodes: [KnownEpisode], of subscription: Subscription) throws -> [Int64] {
        let orders = episodes.filter { episode in
            !downloads.snapshots.downloads(of: episode.url).contains { !$0.state.hasEnded }
        }.map { episode in
            var order = DownloadOrder(url: episode.url, priority: .low, category: subscription.options.category)
            order.episode = EpisodeName(feed: subscription.url.absolute, identity: episode.identity)
            return order
        }
        guard !orders.isEmpty else { return [] }
        return try downloads.perform { try $0.add(orders) }.map(\.id)
    }

    /// Retries the failed downloads of a subscription whose time has come.
    /// - Parameter now: seconds since 1970.
    func retryDownloads(of subscription: Subscription, now: Double) throws {
        let ids = downloads(of: subscription).values.filter { report in
            report.state == .failed
                && FeedSchedule.isRetryDue(added: report.added, failed: report.finished ?? report.added, now: now)
        }.map(\.id)
        guard !ids.isEmpty else { return }
        _ = try downloads.perform { try $0.change(.possible(ids), DownloadChange(action: .retry)) }
    }

    /// Cancels the downloads of a subscription that have not ended.
    func cancelDownloads(of subscription: Subscription) throws {
        let ids = downloads(of: subscription).values.filter { !$0.state.hasEnded }.map(\.id)
        guard !ids.isEmpty else { return }
        _ = try downloads.perform { try $0.change(.possible(ids), DownloadChange(action: .cancel)) }
    }

    /// Removes the episodes that are too many or too large, oldest first, but none that is being played: a later call
    /// removes it.
    /// - Parameter ordered: the episodes that became downloads and were not removed.
    /// - Returns: the episodes that are no longer cached, with that state.
    func retain(_ ordered: [KnownEpisode], of subscription: Subscription) -> [KnownEpisode] {
        guard let limit = subscription.options.keep else { return [] }
        let known = downloads(of: subscription)
        var (cached, removed): ([(episode: KnownEpisode, bytes: Int64)], [KnownEpisode]) = ([], [])
        do {
            for episode in ordered {
                let state = known[episode.identity]?.state
                guard state?.hasEnded ?? true else { continue }
                if let found = try store.cached(episode.url) {
                    cached.append((episode, found.bytes))
                } else if state == .completed || state == nil {
                    // Somebody has removed it.
                    removed.append(episode)
                }
            }
            for episode in EpisodeRetention.surplus(cached, limit: limit) where try store.remove(episode.url) {
                removed.append(episode)
            }
        } catch {
            logger.error(
                "cannot remove old episodes of \(subscription.url.absolute): \(error); the next check tries again")
        }
        return removed.map { episode in
            var episode = episode
            episode.state = .removed
            return episode
        }
    }

    /// An episode with the state of its download, or of what is cached of it.
    func report(_ episode: KnownEpisode, _ downloads: [String: DownloadReport]) throws -> EpisodeReport {
        let download = downloads[episode.identity]
        let cached = try store.cached(episode.url)
        let state: EpisodeReport.State =
            switch (episode.state, download?.state) {
            case (.passedOver, _): cached?.isComplete == true ? .cached : .passedOver
            case (_, .waiting): .waiting
            case (_, .downloading): .downloading
            case (_, .paused): .paused
            case (_, .failed): .failed
            case (_, .cancelled): .cancelled
            case (_, .completed), (_, nil): cached == nil ? .removed : .cached
            }
        return EpisodeReport(
            url: episode.url.absolute, title: episode.title, published: episode.published, state: state,
            bytes: cached?.bytes ?? 0, download: download?.id,
            message: download?.state == .completed ? nil : download?.message)
    }
}
