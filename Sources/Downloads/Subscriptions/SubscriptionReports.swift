import CachePolicy
import Foundation

/// Reports subscriptions and their episodes, with the states of their downloads.
struct SubscriptionReports {
    let database: SubscriptionDatabase
    let episodes: EpisodeKeeper

    /// In the given order.
    func reports(of subscriptions: [Subscription]) throws(DownloadError) -> [FeedSubscription] {
        let counts = try database.counts()
        let downloads = Dictionary(grouping: open { $0.feed != nil }) { $0.feed ?? "" }
        return subscriptions.map {
            FeedSubscription($0, counts[$0.id] ?? [:], downloads[$0.url.absolute] ?? [])
        }
    }

    func report(of subscription: Subscription) throws(DownloadError) -> FeedSubscription {
        let counts = try database.counts()
        return FeedSubscription(
            subscription, counts[subscription.id] ?? [:], open { $0.feed == subscription.url.absolute })
    }

    /// The downloads that have not ended, and those that failed.
    private func open(where isWanted: (Download) -> Bool) -> [Download] {
        episodes.downloads.snapshots.listing {
            isWanted($0) && (!$0.state.hasEnded || $0.state == .failed)
        }.downloads
    }

    /// With the newest episodes.
    /// - Parameter limit: the most episodes; nil for all.
    func detail(of subscription: Subscription, limit: Int?) throws(DownloadError) -> SubscriptionDetail {
        let known = try database.episodes(of: subscription.id)
        let downloads = episodes.downloads(of: subscription)
        let newest = known.sorted { $0.isNewer(than: $1) }.prefix(limit ?? .max)
        do {
            return SubscriptionDetail(
                feed: try report(of: subscription), episodes: try newest.map { try episodes.report($0, downloads) },
                skippedItems: subscription.skipped.isEmpty ? nil : subscription.skipped)
        } catch {
            throw error as? DownloadError ?? DownloadError(.disk, "\(error)")
        }
    }
}

extension FeedSubscription {
    fileprivate init(
        _ subscription: Subscription, _ counts: [KnownEpisode.State: Int], _ downloads: [Download]
    ) {
        let options = subscription.options
        self.init(
            urlText: subscription.url.absolute,
            movedTo: subscription.address == subscription.url ? nil : subscription.address.absolute,
            title: subscription.title, category: options.category, latest: options.latest, every: options.every,
            keep: options.keep?.text, titlePattern: options.title?.text,
            cap: options.caps.isEmpty ? nil : DownloadCap.text(options.caps),
            added: Date(second: subscription.added), checked: subscription.checked.map(Date.init(second:)),
            nextCheck: Date(second: subscription.due), failures: subscription.failures,
            brokenSince: subscription.brokenSince.map(Date.init(second:)),
            message: subscription.message, episodes: counts.values.reduce(0, +),
            ordered: (counts[.ordered] ?? 0) + (counts[.removed] ?? 0),
            unfinished: downloads.count { !$0.state.hasEnded }, failed: downloads.count { $0.state == .failed })
    }
}
