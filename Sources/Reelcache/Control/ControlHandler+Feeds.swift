import CachePolicy
import ControlAPI
import Downloads
import EventIO
import HTTPTransport
import Playlists

extension ControlHandler {
    private static let episodeLimit = 100
    private static let maxEpisodes = 50_000

    /// All subscriptions, or one with its newest episodes.
    func listFeeds(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let limit = try parameters.number("limit", in: 1...Self.maxEpisodes) ?? Self.episodeLimit
        if let url = try parameters.url() {
            guard !parameters.has("urls") else { throw ControlError(400, "urls cannot be combined with url") }
            return answer(exchange) { [feeds] _ in try feeds.perform { try $0.detail(of: url, limit: limit) } }
        }
        guard !parameters.has("limit") else { throw ControlError(400, "limit cannot be used without url") }
        try answerList(exchange, parameters, urls: { (list: FeedList) in list.feeds.map(\.urlText) }) { [feeds] _ in
            FeedList(feeds: try feeds.perform { try $0.reports() })
        }
    }

    /// Subscribes once the feed has been read, or changes a subscription.
    func subscribe(_ exchange: Exchange) {
        receiveJSON(FeedRequest.self, exchange) { [self] received in
            let mask = mask(for: exchange)
            let reply = Reply(to: exchange, masked: mask)
            perform(exchange) { [feeds] _ in
                feeds.perform { manager in
                    // RFC 9110 §15.3.2: 201 only if the request created a subscription.
                    let status = manager.isSubscribed(received.url) ? 200 : 201
                    manager.subscribe(received.url, received.change) { reply.send($0, status: status) }
                }
            } then: { _, _ in
            }
        }
    }

    func removeFeed(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        answer(exchange) { [feeds] _ in try feeds.perform { try $0.remove(url) } }
    }

    /// Checks feeds, and responds when all have been checked.
    func checkFeeds(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.url()
        let reply = Reply(to: exchange, masked: mask(for: exchange))
        perform(exchange) { [feeds] _ in
            feeds.perform { $0.check(url) { reply.send($0.map(FeedChecks.init)) } }
        } then: { _, _ in
        }
    }

    /// Reads a feed without subscribing.
    func previewFeed(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        let latest = try parameters.number("latest", in: 1...SubscriptionOptions.latestRange.upperBound) ?? 3
        let pattern = try parameters.titlePattern()
        let reply = Reply(to: exchange, masked: mask(for: exchange))
        perform(exchange) { [feeds] _ in
            feeds.perform { $0.preview(url, latest: latest, title: pattern) { reply.send($0) } }
        } then: { _, _ in
        }
    }

    // MARK: Lists

    func importFeeds(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        var change = SubscriptionChange()
        change.latest = try parameters.number("latest", in: SubscriptionOptions.latestRange)
        change.every = try parameters.span("every")
        change.keep = try parameters.keep()
        change.caps = try parameters.caps()
        (change.category, change.title) = (parameters["category"], parameters["title"])
        receiveBody(exchange, upTo: FeedLimits.bytes) { [self, change] body in
            answer(exchange) { [feeds] _ in
                let list: OPML
                do throws(FeedError) { list = try OPML(reading: body, within: WorkBudget(bytes: body.count)) } catch {
                    throw ControlError(422, "the body cannot be imported: \(error)")
                }
                return try feeds.perform { try $0.importList(list, change) }
            }
        }
    }

    /// The subscriptions as OPML, with the secrets in their URLs: without these, the list is of no use.
    func exportFeeds(_ exchange: Exchange) {
        perform(exchange) { [feeds] _ in
            Array(try feeds.perform { try $0.exportList() }.text.utf8)
        } then: { exchange, text in
            var response = Response(200, length: Int64(text.count))
            response.field("Content-Type", "text/x-opml; charset=utf-8")
            response.field("Cache-Control", "no-store")
            exchange.respond(response, bytes: text)
        }
    }
}

/// Responds to a request from another thread, once the outcome is known.
private struct Reply: Sendable {
    private let exchange: LoopBound<Exchange>
    private let mask: URLMask?

    init(to exchange: Exchange, masked mask: URLMask?) {
        (self.exchange, self.mask) = (LoopBound(exchange, on: exchange.loop), mask)
    }

    func send(_ result: Result<some Encodable, DownloadError>, status: Int = 200) {
        let line = Result { try ControlJSON.line(result.get(), masked: mask) }
        exchange.post { exchange in
            switch line {
            case .success(let line): exchange.respond(status, json: line)
            case .failure(let error): exchange.respond(ControlError(error))
            }
        }
    }
}

extension ControlParameters {
    /// Seconds; nil if the parameter is missing.
    fileprivate func span(_ name: String) throws(ControlError) -> Int64? {
        guard let text = self[name] else { return nil }
        guard let seconds = SubscriptionText.seconds(text) else {
            throw ControlError(400, "\(name) is a time such as 30m or 2h, not \(text.prefix(100))")
        }
        return seconds
    }

    fileprivate func keep() throws(ControlError) -> SubscriptionChange.Keep? {
        guard let text = self["keep"] else { return nil }
        guard let keep = SubscriptionChange.Keep(text) else {
            throw ControlError(400, "keep is \(SubscriptionText.keepForm), not \(text.prefix(100))")
        }
        return keep
    }

    fileprivate func caps() throws(ControlError) -> [DownloadCap]? {
        guard let text = self["cap"] else { return nil }
        guard let caps = DownloadCap.list(text) else {
            throw ControlError(400, "cap is \(SubscriptionText.capForm), not \(text.prefix(100))")
        }
        return caps
    }

    fileprivate func titlePattern() throws(ControlError) -> TitlePattern? {
        guard let text = self["title"], !text.isEmpty else { return nil }
        guard let pattern = TitlePattern(text) else {
            throw ControlError(400, "title is a part of the titles, or a pattern with *, of 200 characters at most")
        }
        return pattern
    }
}
