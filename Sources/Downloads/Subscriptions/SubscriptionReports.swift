import CachePolicy
import HTTPModel

/// Reports subscriptions and their episodes, with the states of their downloads.
struct SubscriptionReports {
    let database: SubscriptionDatabase
    let episodes: EpisodeKeeper

    /// In the given order.
    func reports(of subscriptions: [Subscription]) throws(SubscriptionError) -> [SubscriptionReport] {
        let counts = try database.counts()
        let downloads = Dictionary(grouping: open { $0.feed != nil }) { $0.feed ?? "" }
        return subscriptions.map {
            SubscriptionReport($0, counts[$0.id] ?? [:], downloads[$0.url.absolute] ?? [])
        }
    }

    func report(of subscription: Subscription) throws(SubscriptionError) -> SubscriptionReport {
        let counts = try database.counts()
        return SubscriptionReport(
            subscription, counts[subscription.id] ?? [:], open { $0.feed == subscription.url.absolute })
    }

    /// The downloads that have not ended, and those that failed.
    private func open(where isWanted: (DownloadReport) -> Bool) -> [DownloadReport] {
        episodes.downloads.snapshots.listing {
            isWanted($0) && (!$0.state.hasEnded || $0.state == .failed)
        }.downloads
    }

    /// With the newest episodes.
    /// - Parameter limit: the most episodes; nil for all.
    func detail(of subscription: Subscription, limit: Int?) throws(SubscriptionError) -> SubscriptionDetail {
        let known = try database.episodes(of: subscription.id)
        let downloads = episodes.downloads(of: subscription)
        let newest = known.sorted { $0.isNewer(than: $1) }.prefix(limit ?? .max)
        do {
            return SubscriptionDetail(
                feed: try report(of: subscription), episodes: try newest.map { try episodes.report($0, downloads) },
                skippedItems: subscription.skipped.isEmpty ? nil : subscription.skipped)
        } catch {
            throw error as? SubscriptionError ?? SubscriptionError(.disk, "\(error)")
        }
    }
}

extension SubscriptionReport {
    fileprivate init(
        _ subscription: Subscription, _ counts: [KnownEpisode.State: Int], _ downloads: [DownloadReport]
    ) {
        let options = subscription.options
        self.init(
            url: subscription.url.absolute,
            address: subscription.address == subscription.url ? nil : subscription.address.absolute,
            title: subscription.title, category: options.category, latest: options.latest, every: options.every,
            keep: options.keep?.text, titlePattern: options.title?.text,
            cap: options.caps.isEmpty ? nil : DownloadCap.text(options.caps),
            added: Int64(saturating: subscription.added),
            checked: subscription.checked.map(Int64.init(saturating:)), nextCheck: Int64(saturating: subscription.due),
            failures: subscription.failures, brokenSince: subscription.brokenSince.map(Int64.init(saturating:)),
            message: subscription.message, episodes: counts.values.reduce(0, +),
            ordered: (counts[.ordered] ?? 0) + (counts[.removed] ?? 0),
            unfinished: downloads.count { !$0.state.hasEnded }, failed: downloads.count { $0.state == .failed })
    }
}
