import CachePolicy
import Downloads

/// A subscription, or its change: `{"url": "https://example.org/feed.xml", "latest": 5, "keep": "2GB"}`
package struct SubscriptionRequest: RequestBody {
    package static let example = "{\"url\": \"https://example.org/feed.xml\"}"

    package let url: OriginURL
    package let change: SubscriptionChange

    package init(_ url: OriginURL, _ change: SubscriptionChange) { (self.url, self.change) = (url, change) }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case url, latest, category, every, keep, titlePattern, cap
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
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

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(url.absolute, forKey: .url)
        try members.encodeIfPresent(change.latest, forKey: .latest)
        try members.encodeIfPresent(change.category, forKey: .category)
        try members.encodeIfPresent(change.every, forKey: .every)
        try members.encodeIfPresent(change.keep?.text, forKey: .keep)
        try members.encodeIfPresent(change.title, forKey: .titlePattern)
        try members.encodeIfPresent(change.caps.map(DownloadCap.text), forKey: .cap)
    }
}

extension SubscriptionRequest {
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
}

/// All subscriptions.
package struct FeedList: Codable, Sendable {
    package let feeds: [FeedSubscription]

    package init(feeds: [FeedSubscription]) { self.feeds = feeds }
}

/// The outcomes of checks.
package struct FeedChecks: Codable, Sendable {
    package let checks: [FeedCheckResult]

    package init(_ checks: [FeedCheckResult]) { self.checks = checks }
}
