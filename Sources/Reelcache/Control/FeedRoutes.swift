import CachePolicy
import ControlAPI
import Downloads
import HTTPModel
import HTTPTransport
import Playlists

/// Subscriptions.
struct FeedRoutes: Sendable {
    let feeds: OnDemand<SubscriptionManager>

    private static let episodeLimit = 100

    var routes: [ControlRoute] {
        [
            ControlRoute(\.feeds, list),
            ControlRoute(\.feed, show),
            ControlRoute(\.subscribe, subscribe),
            ControlRoute(\.removeFeed, remove),
            ControlRoute(\.checkFeeds, check),
            ControlRoute(\.previewFeed, preview),
            ControlRoute(\.importFeeds, importList),
            ControlRoute(\.exportFeeds, export),
        ]
    }

    private func list(_ request: ControlRequest<Void, FeedList>) throws(ControlError) {
        try request.answerList(urls: { $0.feeds.map(\.urlText) }) { [feeds] _ in
            FeedList(feeds: try feeds.value().perform { try $0.reports() })
        }
    }

    /// A subscription with its newest episodes.
    private func show(_ request: ControlRequest<Void, SubscriptionDetail>) throws(ControlError) {
        let parameters = request.parameters
        let limit = try parameters.number(.limit, in: 1...SubscriptionDetail.mostEpisodes) ?? Self.episodeLimit
        let feed = parameters.feed(try parameters.requiredURL())
        request.answer { [feeds] _ in
            try feeds.value().perform { try $0.detail(of: $0.url(of: feed), limit: limit) }
        }
    }

    /// Subscribes once the feed has been read, or changes a subscription.
    private func subscribe(_ request: ControlRequest<SubscriptionRequest, FeedCheckResult>) {
        request.receive { subscription in
            let reply = request.reply
            request.perform { [feeds, parameters = request.parameters] _ in
                let feed = (written: subscription.url, origin: try parameters.origin(of: subscription.url))
                try feeds.value().perform { manager in
                    let url = manager.url(of: feed)
                    // RFC 9110 §15.3.2: 201 only if the request created a subscription.
                    let status = manager.isSubscribed(url) ? 200 : 201
                    manager.subscribe(url, subscription.change) { reply.send($0, status: status) }
                }
            } then: { _, _ in
            }
        }
    }

    private func remove(_ request: ControlRequest<Void, FeedSubscription>) throws(ControlError) {
        let feed = request.parameters.feed(try request.parameters.requiredURL())
        request.answer { [feeds] _ in try feeds.value().perform { try $0.remove($0.url(of: feed)) } }
    }

    /// Checks feeds, and responds when all have been checked.
    private func check(_ request: ControlRequest<Void, FeedChecks>) throws(ControlError) {
        let feed = try request.parameters.url().map(request.parameters.feed)
        let reply = request.reply
        request.perform { [feeds] _ in
            try feeds.value().perform { manager in
                manager.check(feed.map { manager.url(of: $0) }) { reply.send($0.map(FeedChecks.init)) }
            }
        } then: { _, _ in
        }
    }

    /// Reads a feed without subscribing.
    private func preview(_ request: ControlRequest<Void, FeedPreview>) throws(ControlError) {
        let parameters = request.parameters
        let url = try parameters.requiredURL()
        let latest = try parameters.number(.latest, in: 1...SubscriptionOptions.latestRange.upperBound) ?? 3
        let pattern = try parameters.titlePattern()
        let reply = request.reply
        request.perform { [feeds] _ in
            try feeds.value().perform { $0.preview(url, latest: latest, title: pattern) { reply.send($0) } }
        } then: { _, _ in
        }
    }

    // MARK: Lists

    private func importList(_ request: ControlRequest<[UInt8], FeedImport>) throws(ControlError) {
        let parameters = request.parameters
        var change = SubscriptionChange()
        change.latest = try parameters.number(.latest, in: SubscriptionOptions.latestRange)
        change.every = try parameters.span(.every)
        change.keep = try parameters.keep()
        change.caps = try parameters.caps()
        (change.category, change.title) = (parameters[.category], parameters[.title])
        request.receiveBytes(upTo: FeedLimits.bytes) { [feeds, change] body in
            request.answer { _ in
                var list = try OPML(importing: body)
                let skipped = list.translate(at: parameters.place)
                var result = try feeds.value().perform { [list] in try $0.importList(list, change) }
                result.skipped += skipped
                return result
            }
        }
    }

    /// The subscriptions as OPML, with the secrets in their URLs: without these, the list is of no use.
    private func export(_ request: ControlRequest<Void, [UInt8]>) {
        request.perform { [feeds] _ in
            Array(try feeds.value().perform { try $0.exportList() }.text.utf8)
        } then: { exchange, text in
            var response = Response(200, length: Int64(text.count))
            response.field("Content-Type", "text/x-opml; charset=utf-8")
            response.field("Cache-Control", "no-store")
            exchange.respond(response, bytes: text)
        }
    }
}

/// A URL by which a request names a subscription: as it is written, and as the origin has it.
private typealias FeedName = (written: OriginURL, origin: OriginURL)

extension SubscriptionManager {
    /// The URL of the subscription that a request names. Earlier versions imported the proxy's URLs as they were.
    fileprivate func url(of feed: FeedName) -> OriginURL { isSubscribed(feed.written) ? feed.written : feed.origin }
}

extension OPML {
    /// Gives feeds the URLs of their origins: programs that read them through the proxy export the proxy's.
    /// - Returns: the entries for which that is impossible, and those that are duplicates then, each with the reason.
    fileprivate mutating func translate(at place: ProxyPlace) -> [String] {
        var (seen, skipped): (Set<OriginURL>, [String]) = ([], [])
        feeds = feeds.compactMap { feed -> OPMLFeed? in
            do throws(OriginURLError) {
                let url = try feed.url.origin(at: place), title = feed.title == feed.url.absolute ? nil : feed.title
                if seen.insert(url).inserted { return OPMLFeed(title: title, url: url, categories: feed.categories) }
                skipped.append("\(feed.title.printable): \(SkippedItem.Reason.duplicate)")
            } catch { skipped.append("\(feed.title.printable): \(error.reason)") }
            return nil
        }
        return skipped
    }
}

extension ControlParameters {
    /// The feed that the parameter `url` names.
    fileprivate func feed(_ origin: OriginURL) -> FeedName {
        (self[.url].flatMap { try? OriginURL(url: $0) } ?? origin, origin)
    }

    /// Seconds; nil if the parameter is missing.
    fileprivate func span(_ name: EndpointTraits.Parameter) throws(ControlError) -> Int64? {
        guard let text = self[name] else { return nil }
        guard let seconds = SubscriptionText.seconds(text) else {
            throw ControlError(400, "\(name.rawValue) is a time such as 30m or 2h, not \(text.prefix(100))")
        }
        return seconds
    }

    fileprivate func keep() throws(ControlError) -> SubscriptionChange.Keep? {
        guard let text = self[.keep] else { return nil }
        guard let keep = SubscriptionChange.Keep(text) else {
            throw ControlError(400, "keep is \(SubscriptionText.keepForm), not \(text.prefix(100))")
        }
        return keep
    }

    fileprivate func caps() throws(ControlError) -> [DownloadCap]? {
        guard let text = self[.cap] else { return nil }
        guard let caps = DownloadCap.list(text) else {
            throw ControlError(400, "cap is \(SubscriptionText.capForm), not \(text.prefix(100))")
        }
        return caps
    }

    fileprivate func titlePattern() throws(ControlError) -> TitlePattern? {
        guard let text = self[.title], !text.isEmpty else { return nil }
        guard let pattern = TitlePattern(text) else {
            throw ControlError(400, "title is a part of the titles, or a pattern with *, of 200 characters at most")
        }
        return pattern
    }
}
