import CachePolicy
import HTTPModel
import Playlists

/// Subscribing, unsubscribing, and checks on demand.
extension SubscriptionManager {
    /// Subscribes to a feed once it has been read, and orders its newest episodes. If it is subscribed already, changes
    /// its options, and checks it.
    /// - Parameter end: called with the outcome of the check, inside the actor; with an error if nothing was saved, as
    ///   when a new feed cannot be read. If one is subscribed already and cannot be read, its options are changed
    ///   nevertheless, and the outcome is `failed`.
    package func subscribe(
        _ url: OriginURL, _ change: SubscriptionChange,
        then end: @escaping @Sendable (Result<FeedCheckResult, DownloadError>) -> Void
    ) {
        do throws(DownloadError) {
            try checkOpen()
            if let known = subscriptions.find(url) { return try self.change(known, change, then: end) }
            try subscriptions.checkCount(adding: 1)
            let options = try change.applied(to: SubscriptionOptions())
            let request = FeedRequest(url: url, validators: FeedValidators())
            read(FeedReading(request, wanted: options.latest, pattern: options.title)) { manager, outcome in
                end(Result { () throws(DownloadError) in try manager.add(url, options, change, outcome) })
                manager.commit()
            }
        } catch { end(.failure(error)) }
    }

    /// Whether a URL names a subscription.
    package func isSubscribed(_ url: OriginURL) -> Bool { subscriptions.find(url) != nil }

    private func add(
        _ url: OriginURL, _ options: SubscriptionOptions, _ change: SubscriptionChange, _ outcome: FeedReading.Outcome
    ) throws(DownloadError) -> FeedCheckResult {
        try checkOpen()
        switch outcome {
        case .failed(let failure): throw DownloadError(.unreadable, "\(url.absolute): \(failure.message)")
        case .unchanged: throw DownloadError(.unreadable, "\(url.absolute): the origin answered 304")
        case .read(let finding):
            if let same = subscriptions.find(url) ?? subscriptions.find(finding.address) {
                if same.url == url {
                    // Somebody else subscribed to it meanwhile.
                    try save(change, of: same)
                    return conclude(same.id, outcome)
                }
                throw .invalid(
                    "\(url.absolute) is the same feed as \(same.url.absolute), which is subscribed: name that one")
            }
            let new = Subscription(url, options: options, added: clock.now, due: clock.now)
            guard let saved = try subscriptions.save([new]).first else { throw .closed }
            let check = conclude(saved.id, outcome)
            guard check.outcome != .failed else { throw DownloadError(.disk, check.message ?? "") }
            return check
        }
    }

    private func change(
        _ known: Subscription, _ change: SubscriptionChange,
        then end: @escaping @Sendable (Result<FeedCheckResult, DownloadError>) -> Void
    ) throws(DownloadError) {
        if try save(change, of: known) { repeatCheck(known.id) }
        check(known.id) { end(.success($0)) }
        commit()
    }

    /// - Returns: whether the subscription is another one now.
    @discardableResult
    private func save(_ change: SubscriptionChange, of known: Subscription) throws(DownloadError) -> Bool {
        var changed = known
        changed.options = try change.applied(to: known.options)
        if change.latest != nil { changed.wantsLatest = true }
        guard changed != known else { return false }
        if changed.options.keep == .untilPlayed, known.options.keep != .untilPlayed {
            try episodes.forgetPlayed(of: changed)
        } else {
            try subscriptions.save([changed])
        }
        return true
    }

    /// Unsubscribes, and cancels the feed's unfinished downloads that no other feed has. Cached episodes stay.
    /// - Returns: the subscription as it was.
    package func remove(_ url: OriginURL) throws(DownloadError) -> FeedSubscription {
        try checkOpen()
        guard let subscription = subscriptions.find(url) else { throw .notSubscribed(url) }
        let report = try reporting.report(of: subscription)
        // Later, nobody could name them: if the process ends in between, the feed is still subscribed, and the same
        // command removes it.
        do { try episodes.cancelDownloads(of: subscription) } catch {
            throw DownloadError(
                .disk, "cannot cancel the downloads of \(subscription.url.absolute): \(error); it stays subscribed")
        }
        try subscriptions.remove(subscription)
        return report
    }

    /// Checks a feed, or all.
    /// - Parameter end: called once all are checked, inside the actor, with the outcomes in the order of subscribing.
    package func check(
        _ url: OriginURL?, then end: @escaping @Sendable (Result<[FeedCheckResult], DownloadError>) -> Void
    ) {
        do throws(DownloadError) {
            try checkOpen()
            let chosen: [Subscription]
            if let url {
                guard let found = subscriptions.find(url) else { throw .notSubscribed(url) }
                chosen = [found]
            } else {
                chosen = subscriptions.all
            }
            guard !chosen.isEmpty else { return end(.success([])) }
            let checks = CheckCollection(chosen.map(\.url.absolute), end)
            for (place, subscription) in chosen.enumerated() { check(subscription.id) { checks.put($0, at: place) } }
            commit()
        } catch { end(.failure(error)) }
    }

    /// Reads a feed without subscribing.
    /// - Parameters:
    ///   - latest: how many of the newest episodes to return.
    ///   - end: called inside the actor.
    package func preview(
        _ url: OriginURL, latest: Int, title: TitlePattern?,
        then end: @escaping @Sendable (Result<FeedPreview, DownloadError>) -> Void
    ) {
        do throws(DownloadError) { try checkOpen() } catch { return end(.failure(error)) }
        let request = FeedRequest(url: url, validators: FeedValidators())
        read(FeedReading(request, wanted: latest, pattern: title)) { _, outcome in
            end(Result { () throws(DownloadError) in try FeedPreview(outcome, of: url, latest: latest, title) })
        }
    }

    // MARK: Reports

    /// All subscriptions, in the order of subscribing.
    package func reports() throws(DownloadError) -> [FeedSubscription] {
        try checkOpen()
        defer { subscriptions.repairLoss() }
        return try reporting.reports(of: subscriptions.all)
    }

    /// A subscription with its newest episodes.
    /// - Parameter limit: the most episodes; nil for all.
    package func detail(of url: OriginURL, limit: Int?) throws(DownloadError) -> SubscriptionDetail {
        try checkOpen()
        guard let subscription = subscriptions.find(url) else { throw .notSubscribed(url) }
        defer { subscriptions.repairLoss() }
        return try reporting.detail(of: subscription, limit: limit)
    }

    private var reporting: SubscriptionReports {
        SubscriptionReports(database: subscriptions.database, episodes: episodes)
    }

    // MARK: Lists

    /// Subscribes to the feeds of a list that are not subscribed yet; they are checked when that is due, soon.
    /// - Parameter change: the options of the new subscriptions. A feed without a category there gets its folder's.
    package func importList(_ list: OPML, _ change: SubscriptionChange) throws(DownloadError) -> FeedImport {
        try checkOpen()
        let saved = try subscriptions.add(list, change.applied(to: SubscriptionOptions()), now: clock.now)
        commit()
        return FeedImport(
            added: saved.map(\.url.absolute), known: list.feeds.count - saved.count,
            skipped: list.skipped.map { "\($0.name.printable): \($0.reason)" })
    }

    /// All subscriptions as a list, which `importList` reads.
    package func exportList() throws(DownloadError) -> OPML {
        try checkOpen()
        return OPML(
            title: "Reelcache",
            feeds: subscriptions.all.map {
                OPMLFeed(title: $0.title, url: $0.url, categories: $0.options.category.map { [$0] } ?? [])
            })
    }
}

extension OPML {
    /// Reads the file of an import.
    package init(importing bytes: [UInt8]) throws(DownloadError) {
        do throws(FeedError) { try self.init(reading: bytes, within: WorkBudget(bytes: bytes.count)) } catch {
            throw .invalid("the list cannot be imported: \(error.description.replacing("feed", with: "list"))")
        }
    }
}

/// Collects the outcomes of several checks. Used inside the manager only.
private final class CheckCollection: @unchecked Sendable { // because only the manager's queue uses it
    private let urls: [String]
    private var checks: [Int: FeedCheckResult] = [:]
    private let end: @Sendable (Result<[FeedCheckResult], DownloadError>) -> Void

    init(_ urls: [String], _ end: @escaping @Sendable (Result<[FeedCheckResult], DownloadError>) -> Void) {
        (self.urls, self.end) = (urls, end)
    }

    func put(_ check: FeedCheckResult, at place: Int) {
        var check = check
        check.urlText = urls[place]
        checks[place] = check
        if checks.count == urls.count { end(.success(urls.indices.compactMap { checks[$0] })) }
    }
}

extension FeedPreview {
    fileprivate init(_ outcome: FeedReading.Outcome, of url: OriginURL, latest: Int, _ pattern: TitlePattern?)
        throws(DownloadError)
    {
        switch outcome {
        case .failed(let failure): throw DownloadError(.unreadable, "\(url.absolute): \(failure.message)")
        case .unchanged: throw DownloadError(.unreadable, "\(url.absolute): the origin answered 304")
        case .read(let finding):
            var options = SubscriptionOptions()
            (options.latest, options.title) = (latest, pattern)
            let plan = SubscriptionPlan(
                finding.items, known: [], options: options, isFirst: true, wantsLatest: true, downloads: [:], now: 0)
            self.init(
                title: finding.title,
                episodes: plan.orders.map {
                    Episode(url: $0.url.absolute, title: $0.title, published: $0.published)
                }, skipped: finding.skippedCount)
        }
    }
}
