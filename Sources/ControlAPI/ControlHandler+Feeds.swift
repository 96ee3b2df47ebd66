import CachePolicy
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
        receiveJSON(ReceivedFeed.self, exchange) { [self] received in
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

/// All subscriptions.
package struct FeedList: Codable, Sendable {
    package let feeds: [FeedSubscription]
}

/// The outcomes of checks.
package struct FeedChecks: Codable, Sendable {
    package let checks: [FeedCheckResult]

    init(_ checks: [FeedCheckResult]) { self.checks = checks }
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

/// `{"url": "https://example.org/feed.xml", "latest": 5, "keep": "2GB"}`
private struct ReceivedFeed: ReceivedValue {
    static let example = "{\"url\": \"https://example.org/feed.xml\"}"

    let url: OriginURL
    let change: SubscriptionChange

    enum CodingKeys: String, CodingKey, CaseIterable {
        case url, latest, category, every, keep, titlePattern, cap
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        guard let text = try members.decodeIfThere(String.self, forKey: .url, form: "the URL of a feed") else {
            throw ControlError(422, "it has no url: send the URL of the feed")
        }
        do throws(OriginURLError) { url = try OriginURL(url: text) } catch {
            throw ControlError(422, "url: \(error.reason)")
        }
        var change = SubscriptionChange()
        change.latest = try members.decodeIfThere(Int.self, forKey: .latest, form: "a whole number")
        change.category = try members.decodeIfThere(String.self, forKey: .category, form: "a string")
        change.every = try members.decodeIfThere(ReceivedSpan.self, forKey: .every)?.seconds
        change.keep = try members.decodeIfThere(ReceivedKeep.self, forKey: .keep)?.keep
        change.title = try members.decodeIfThere(String.self, forKey: .titlePattern, form: "a string")
        change.caps = try members.decodeIfThere(String.self, forKey: .cap, form: SubscriptionText.capForm) {
            DownloadCap.list($0) != nil
        }.flatMap(DownloadCap.list)
        self.change = change
    }
}

/// A number of episodes, a size, or `all`.
private struct ReceivedKeep: Decodable {
    let keep: SubscriptionChange.Keep

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let text = (try? value.decode(Int.self)).map(String.init) ?? (try? value.decode(String.self)) ?? ""
        guard let keep = SubscriptionChange.Keep(text) else {
            throw ControlError(422, "\(decoder.place ?? "keep") is \(SubscriptionText.keepForm)")
        }
        self.keep = keep
    }
}

/// A subscription, or its change, as it is sent to a proxy.
package struct SentFeed: Encodable {
    private let url: OriginURL
    private let change: SubscriptionChange

    package init(_ url: OriginURL, _ change: SubscriptionChange) { (self.url, self.change) = (url, change) }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: ReceivedFeed.CodingKeys.self)
        try members.encode(url.absolute, forKey: .url)
        try members.encodeIfPresent(change.latest, forKey: .latest)
        try members.encodeIfPresent(change.category, forKey: .category)
        try members.encodeIfPresent(change.every, forKey: .every)
        try members.encodeIfPresent(change.keep?.text, forKey: .keep)
        try members.encodeIfPresent(change.title, forKey: .titlePattern)
        try members.encodeIfPresent(change.caps.map(DownloadCap.text), forKey: .cap)
    }
}

extension SubscriptionChange {
    /// The same as parameters of a request.
    package var parameters: [(String, String)] {
        [
            latest.map { ("latest", "\($0)") }, category.map { ("category", $0) }, every.map { ("every", "\($0)s") },
            keep.map { ("keep", $0.text) }, title.map { ("title", $0) },
            caps.map { ("cap", DownloadCap.text($0)) },
        ].compactMap { $0 }
    }
}
