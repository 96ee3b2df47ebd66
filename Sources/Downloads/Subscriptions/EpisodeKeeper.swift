import CachePolicy
import Foundation
import Logging

/// What became of the episodes of a feed: their downloads, and what is cached of them. Blocks. For use inside the
/// manager only.
struct EpisodeKeeper {
    let subscriptions: SubscriptionTable
    let store: any EpisodeStore
    let downloads: DownloadManager
    let logger: Logger

    /// The downloads of a subscription, by the identity of their episodes.
    func downloads(of subscription: Subscription) -> [String: Download] {
        downloads.perform { $0.downloads(ofFeed: subscription.url.absolute, since: subscription.added) }
    }

    /// The same as a plan needs them.
    /// - Parameter now: seconds since 1970.
    static func plannedDownloads(_ reports: [String: Download], now: Double)
        -> [String: SubscriptionPlan.Download]
    {
        reports.compactMapValues { report in
            guard let url = try? OriginURL(url: report.urlText) else { return nil }
            let state: SubscriptionPlan.Download.State =
                switch FeedSchedule.retry(report, now: now) {
                case .due: .due
                case .later: .open
                case .never: .over
                case nil: report.state.hasEnded ? .over : .open
                }
            return SubscriptionPlan.Download(id: report.id, url: url, state: state)
        }
    }

    /// Orders the downloads of episodes, newest first.
    /// - Returns: the numbers of the downloads. An episode that somebody downloads to keep it gets none of its own, so
    ///   that the options of that download stay. A download that may end or be evicted before becomes the feed's.
    func order(_ episodes: [KnownEpisode], of subscription: Subscription) throws -> [Int64] {
        let orders = episodes.map { episode in
            var order = DownloadOrder(url: episode.url)
            (order.priority, order.category) = (.low, subscription.options.category)
            order.title = episode.title
            order.episode = EpisodeName(feed: subscription.url.absolute, identity: episode.identity)
            return order
        }
        return try downloads.perform { manager in
            let orders = orders.filter { !manager.isKept($0.url) }
            return orders.isEmpty ? [] : try manager.add(orders).map(\.id)
        }
    }

    /// Removes a subscription that was never read if its feed is subscribed under another URL, as when a list has
    /// `http://` before it: what one passes over, the other would download.
    /// - Returns: the outcome of its check; nil if the feed is subscribed once.
    /// - Throws: if it was read before, as a feed that has merged into another: a person chooses which to remove.
    func removeDuplicate(_ subscription: Subscription, at address: OriginURL) throws -> FeedCheckResult? {
        guard let same = subscriptions.find(address), same.id != subscription.id else { return nil }
        let reason = "it is the same feed as \(same.url.absolute), which is subscribed"
        guard subscription.isUnread else { throw FeedFailure("\(reason), too: remove one of them") }
        try cancelDownloads(of: subscription)
        try subscriptions.remove(subscription)
        logger.notice("the subscription to \(subscription.url.absolute) was removed: \(reason)")
        return FeedCheckResult(
            urlText: subscription.url.absolute, title: subscription.title, outcome: .read,
            message: "\(reason): this subscription was removed")
    }

    /// Cancels failed downloads that others have replaced: what they left of their bytes goes.
    func cancel(_ ids: [Int64]) throws {
        try downloads.perform { manager in
            // The history may have forgotten one meanwhile.
            let ids = ids.filter { manager.snapshots[$0] != nil }
            if !ids.isEmpty { _ = try manager.change(.ids(ids), DownloadChange(action: .cancel)) }
        }
    }

    /// Whether somebody downloads this already.
    func isBeingDownloaded(_ url: OriginURL) -> Bool {
        downloads.snapshots.downloads(of: url).contains { !$0.state.hasEnded }
    }

    /// The failed downloads of a subscription.
    private func failedDownloads(of subscription: Subscription) -> [Download] {
        downloads(of: subscription).values.filter { $0.state == .failed }
    }

    /// Retries failed downloads that are due, and orders those that others have failed: the feed could be read, so that
    /// the network is there.
    /// - Parameter now: seconds since 1970.
    func retryDownloads(of id: Int64, now: Double) {
        guard let subscription = subscriptions[id] else { return }
        do {
            // Not those of episodes that were let go of.
            let ordered = try subscriptions.database.episodes(of: id, in: [.ordered])
            let (wanted, own) = (Set(ordered.map(\.url.absolute)), downloads(of: subscription))
            let due = own.values.filter { FeedSchedule.retry($0, now: now) == .due }
            let ids = due.filter { wanted.contains($0.urlText) }.map(\.id)
            if !ids.isEmpty {
                _ = try downloads.perform { try $0.change(.possible(ids), DownloadChange(action: .retry)) }
            }
            _ = try order(ordered.filter { isLost($0, of: subscription, own) }, of: subscription)
        } catch { logger.error("\(error)") }
    }

    /// Whether an episode was left to other people's or feeds' downloads of it, which have failed or were cancelled.
    private func isLost(_ episode: KnownEpisode, of subscription: Subscription, _ own: [String: Download]) -> Bool {
        let all = downloads.snapshots.downloads(of: episode.url)
        return own[episode.identity] == nil && !all.isEmpty
            && all.allSatisfy {
                $0.feed != subscription.url.absolute && ($0.state == .failed || $0.state == .cancelled)
            }
    }

    /// Lets go of the episodes that a person has removed since their downloads failed.
    func noteRemoved(of subscription: Subscription) throws {
        let failed = failedDownloads(of: subscription)
        guard failed.contains(where: { $0.bytes > 0 }) else { return }
        let ordered = try subscriptions.database.episodes(of: subscription.id, in: [.ordered])
        try letGo(of: try removed(ordered, failed: failed), in: subscription)
    }

    private func letGo(of removed: [KnownEpisode], in subscription: Subscription) throws {
        guard !removed.isEmpty else { return }
        try subscriptions.save(subscription, removed)
        try cancelFailed(of: removed, in: subscription)
    }

    /// Removes episodes beyond what the subscriber keeps.
    func retain(_ id: Int64) {
        defer { subscriptions.repairLoss() }
        guard let subscription = subscriptions[id], subscription.options.keep != nil else { return }
        do {
            let database = subscriptions.database
            let ordered = try database.episodes(of: id, in: [.ordered])
            let removed = retain(ordered, of: subscription) { try database.ordered(among: $0, except: id) }
            try letGo(of: removed, in: subscription)
        } catch { logger.error("\(error)") }
    }

    /// Notes which episodes were played, and unpins those that are kept until then. One that is still being played
    /// stays as it is until a later call.
    /// - Parameter now: seconds since 1970. It looks every ten minutes.
    func notePlayed(now: Double) {
        guard abs(now - subscriptions.lookedAtPlayed) >= Self.playedWait else { return }
        subscriptions.lookedAtPlayed = now
        defer { subscriptions.repairLoss() }
        do {
            let unplayed = try subscriptions.all.map { subscription in
                try (
                    subscription,
                    subscriptions.database.episodes(of: subscription.id, in: [.ordered]).filter {
                        $0.played == nil
                    }
                )
            }
            let urls: [OriginURL] = unplayed.flatMap { $1.flatMap(\.urls) }
            let times = try urls.isEmpty ? [:] : store.played(among: urls)
            for (subscription, episodes) in unplayed {
                let played = try episodes.compactMap { episode -> KnownEpisode? in
                    guard let time = episode.urls.lazy.compactMap({ times[$0] }).first,
                        try release(episode, of: subscription)
                    else { return nil }
                    var episode = episode
                    episode.played = time
                    return episode
                }
                if !played.isEmpty { try subscriptions.save(subscription, played) }
            }
        } catch { logger.error("cannot note which episodes were played: \(error); tried again soon") }
    }

    /// Saves a subscription that keeps its episodes until they are played from now on: what was played before is noted
    /// anew, and unpinned.
    func forgetPlayed(of subscription: Subscription) throws(DownloadError) {
        let played = try subscriptions.database.episodes(of: subscription.id, in: [.ordered]).filter {
            $0.played != nil
        }
        try subscriptions.save(
            subscription,
            played.map { episode in
                var episode = episode
                episode.played = nil
                return episode
            })
        subscriptions.lookedAtPlayed = -.infinity
    }

    private static let playedWait = 600.0

    /// Seconds until there is something to do: a check, or the next look at what was played; nil for never.
    /// - Parameter check: seconds until the next check; nil for none.
    func wait(upTo check: Double?, now: Double) -> Double? {
        guard !subscriptions.all.isEmpty else { return check }
        return min(check ?? .infinity, max(0, subscriptions.lookedAtPlayed + Self.playedWait - now))
    }

    /// Unpins an episode that was played, unless its feed keeps more, or a person or another feed keeps it.
    /// - Returns: false if it is being played or downloaded.
    private func release(_ episode: KnownEpisode, of subscription: Subscription) throws -> Bool {
        guard subscription.options.keep == .untilPlayed else { return true }
        let orders = downloads.snapshots.downloads(of: episode.url)
        guard orders.allSatisfy(\.state.hasEnded) else { return false }
        let isKept =
            try orders.contains { $0.feed == nil && $0.isPinned && $0.state == .completed }
            || subscriptions.database.episodes(at: episode.url).contains {
                $0.state == .ordered && subscriptions[$0.subscription]?.options.keep != .untilPlayed
            }
        return try isKept || store.unpin(episode.url)
    }

    /// The episodes that a person has removed since their downloads failed: bytes had arrived, and none is cached.
    private func removed(_ ordered: [KnownEpisode], failed: [Download]) throws -> [KnownEpisode] {
        let begun = Set(failed.filter { $0.bytes > 0 }.map(\.urlText))
        let lost = try ordered.filter { episode in
            guard begun.contains(episode.url.absolute), !isBeingDownloaded(episode.url) else { return false }
            return try store.cached(episode.url) == nil
        }
        return lost.map(\.letGo)
    }

    /// Cancels the failed downloads of episodes that their feed has let go of: nobody is to retry them.
    private func cancelFailed(of episodes: [KnownEpisode], in subscription: Subscription) throws {
        let urls = Set(episodes.map(\.url.absolute))
        try cancel(failedDownloads(of: subscription).filter { urls.contains($0.urlText) }.map(\.id))
    }

    /// Cancels the downloads of a subscription that have failed or not ended, and those that a former one has left to
    /// it, but for those that another one relies on.
    func cancelDownloads(of subscription: Subscription) throws {
        let ordered = try subscriptions.database.episodes(of: subscription.id, in: [.ordered])
        let left = ordered.flatMap { downloads.snapshots.downloads(of: $0.url) }.filter { download in
            download.feed.map { feed in !subscriptions.all.contains { $0.url.absolute == feed } } ?? false
        }
        let all = (downloads(of: subscription).values + left).filter { !$0.state.hasEnded || $0.state == .failed }
        let urls = all.compactMap { try? OriginURL(url: $0.urlText) }
        let shared = Set(try subscriptions.database.ordered(among: urls, except: subscription.id).map(\.absolute))
        let own = all.filter { !shared.contains($0.urlText) }
        let running = own.filter { !$0.state.hasEnded }.map(\.id)
        if !running.isEmpty {
            _ = try downloads.perform { try $0.change(.possible(running), DownloadChange(action: .cancel)) }
        }
        try cancel(own.filter { $0.state == .failed }.map(\.id))
    }

    /// Removes the episodes that are too many or too large, oldest first, but none that is being played: a later call
    /// removes it. What a person pinned or ordered is not the feed's to count or to remove, nor what is another feed's.
    /// - Parameters:
    ///   - ordered: the episodes that became downloads and that the feed has not let go of.
    ///   - shared: returns which of some URLs are also those of other subscriptions' ordered episodes.
    /// - Returns: the episodes that the feed lets go of, with that state.
    private func retain(
        _ ordered: [KnownEpisode], of subscription: Subscription, shared: ([OriginURL]) throws -> Set<OriginURL>
    ) -> [KnownEpisode] {
        guard let limit = subscription.options.keep else { return [] }
        let known = downloads(of: subscription)
        // A rerun may have the same file, which belongs to the newest of its episodes.
        let owners = Dictionary(ordered.map { ($0.url, $0) }) { $1.isNewer(than: $0) ? $1 : $0 }
        var (cached, removed): ([(episode: KnownEpisode, bytes: Int64)], [KnownEpisode]) = ([], [])
        do {
            for episode in ordered where owners[episode.url]?.id == episode.id {
                // Perhaps under the identity that the episode had before, or because a person ordered it.
                let others = downloads.snapshots.downloads(of: episode.url)
                let own = known[episode.identity] ?? others.first { $0.feed == subscription.url.absolute }
                let state = own?.state
                guard state?.hasEnded ?? true, others.allSatisfy(\.state.hasEnded) else { continue }
                let found = try store.cached(episode.url)
                if found?.isByHand == true
                    || others.contains(where: { $0.feed == nil && $0.isPinned && $0.state == .completed })
                {
                    // One that failed is retried: letting go of it would remove the bytes that a person has pinned.
                    if state != .failed { removed.append(episode) }
                } else if let found {
                    cached.append((episode, found.bytes))
                } else if state == .completed || state == nil && !isLost(episode, of: subscription, known) {
                    // Somebody has removed it.
                    removed.append(episode)
                }
            }
            let surplus = EpisodeRetention.surplus(cached, limit: limit)
            let shared = try surplus.isEmpty ? [] : shared(surplus.map(\.url))
            for episode in surplus where try shared.contains(episode.url) || store.remove(episode.url) {
                removed.append(episode)
            }
        } catch {
            logger.error(
                "cannot remove old episodes of \(subscription.url.absolute): \(error); the next check tries again")
        }
        return removed.map(\.letGo)
    }

    /// An episode with the state of its download, or of what is cached of it.
    func report(_ episode: KnownEpisode, _ downloads: [String: Download]) throws -> FeedEpisode {
        let download =
            downloads[episode.identity]
            ?? self.downloads.snapshots.downloads(of: episode.url).first { !$0.state.hasEnded }
        let cached = try store.cached(episode.url)
        let state: FeedEpisode.State =
            switch (episode.state, download?.state) {
            case (.passedOver, _): cached?.isComplete == true ? .cached : .passedOver
            case (_, .waiting): .waiting
            case (_, .downloading): .downloading
            case (_, .paused): .paused
            case (_, .failed): .failed
            case (_, .cancelled): .cancelled
            // What is left of it is fetched no more.
            case (_, .completed), (_, nil): cached?.isComplete == true ? .cached : .removed
            }
        return FeedEpisode(
            urlText: episode.url.absolute, title: episode.title,
            published: episode.published.map(Date.init(seconds:)), state: state,
            bytes: cached?.bytes ?? 0,
            played: (cached?.played ?? episode.played).map(Date.init(seconds:)), download: download?.id,
            message: download?.state == .completed ? nil : download?.message)
    }
}
