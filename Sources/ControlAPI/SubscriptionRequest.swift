import CachePolicy
import Downloads

/// A subscription, or its change: `{"url": "https://example.org/feed.xml", "latest": 5, "keep": "2GB"}`
package struct SubscriptionRequest: RequestBody {
    package static let example = "{\"url\": \"https://example.org/feed.xml\"}"

    package let url: OriginURL
    package let change: SubscriptionChange

    package init(_ url: OriginURL, _ change: SubscriptionChange) { (self.url, self.change) = (url, change) }

    private static let urlKey = BodyKey("url")

    /// The other members.
    private static let members: [BodyMember<SubscriptionChange>] = [
        .init("latest", \.latest, .number),
        .init("category", \.category, .string),
        .init("every", \.every, .span),
        .init("keep", \.keep, .init(ReceivedKeep.self, value: { $0.keep }, sent: { $0.text })),
        .init("titlePattern", \.title, .string),
        .init(
            "cap", \.caps, .init(SubscriptionText.capForm, value: { DownloadCap.list($0) }, sent: DownloadCap.text)),
    ]

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members([Self.urlKey] + Self.members.map(\.name))
        guard let text = try members.decodeIfThere(String.self, forKey: Self.urlKey, form: "the URL of a feed") else {
            throw ControlError(422, "it has no url: send the URL of the feed")
        }
        do throws(OriginURLError) { url = try OriginURL(url: text) } catch {
            throw ControlError(422, "url: \(error.reason)")
        }
        var change = SubscriptionChange()
        for member in Self.members { try member.read(members, &change) }
        self.change = change
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: BodyKey.self)
        try members.encode(url.absolute, forKey: Self.urlKey)
        for member in Self.members { try member.write(change, &members) }
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
