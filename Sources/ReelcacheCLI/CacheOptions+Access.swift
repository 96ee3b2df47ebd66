import Administration
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

extension CacheOptions {
    /// The settings with which the cache is opened if no proxy runs.
    var configuration: ProxyConfiguration {
        get throws { try sources().read().proxy }
    }

    /// The proxy that serves the cache.
    /// - Throws: `ControlError` if none is running; `SettingsError`.
    func runningProxy() throws -> RunningProxy {
        let directory = try path
        guard let proxy = RunningProxy(cacheDirectory: directory) else {
            throw ControlError(
                "no proxy is running for the cache \(directory); start one with reelcache serve, or name its --cache-dir"
            )
        }
        return proxy
    }
}

extension RunningProxy {
    /// The media URL that a user names, as its origin has it or as players open it.
    func url(_ argument: String) throws(ControlError) -> OriginURL {
        do throws(OriginURLError) { return try OriginURL(argument: argument, at: place) } catch {
            throw ControlError(error.naming(argument))
        }
    }
}

extension RunningProxy {
    /// The subscribed feed that a user names: by its URL, its number in the list, or a part of its title.
    /// - Parameter list: the feeds as the user saw them; nil for those that are subscribed now.
    func feedURL(_ name: String, in list: [FeedSubscription]? = nil) throws -> OriginURL {
        guard !name.contains("/") else { return try url(name) }
        let feeds = try list ?? feeds()
        let number = Int(name)
        if let number, feeds.indices.contains(number &- 1) {
            return try OriginURL(url: feeds[number &- 1].urlText)
        }
        // Of titles, a number names only one that is that number.
        let found = feeds.filter { feed in
            number == nil ? (feed.title ?? "").localizedCaseInsensitiveContains(name) : feed.title == name
        }
        guard let only = found.first else {
            let fault = number == nil ? "no feed has '\(name)' in its title" : "there is no feed \(name)"
            throw ControlError("\(fault); reelcache feeds lists their numbers and titles")
        }
        guard found.count == 1 else {
            let titles = found.prefix(3).compactMap(\.title).map { "\"\($0.printable)\"" }.joined(separator: ", ")
            throw ControlError(
                "\(found.count) feeds have '\(name)' in their titles, such as \(titles): write more, or a number"
            )
        }
        return try OriginURL(url: only.urlText)
    }

    /// The newest episode of a feed that is cached, otherwise the newest one that it downloads, if there is any.
    func newestEpisode(ofFeed name: String) throws -> OriginURL {
        let episodes = try feed(feedURL(name), limit: SubscriptionDetail.mostEpisodes).episodes
        let cached = episodes.first { $0.state == .cached }
        guard let episode = cached ?? episodes.first(where: { $0.state != .passedOver }) ?? episodes.first else {
            throw ControlError("this feed has no episodes yet; reelcache feeds check looks for them")
        }
        if cached == nil {
            Terminal.writeError("reelcache: no episode of this feed is downloaded; the newest comes from its origin")
        }
        return try url(episode.urlText)
    }
}

extension ByteSpan {
    /// Empty if the proxy's answer is not a range.
    var range: Range<Int64> { Range(from: first, upTo: last +| 1) ?? 0..<0 }
}

extension [ByteSpan] {
    /// The sum of their lengths.
    var byteCount: Int64 { reduce(0) { $0 +| $1.count } }

    /// The first few, as in a `Range` field, and the number of the others.
    func text(atMost count: Int) -> String {
        let shown = prefix(count).map { "\($0.first)-\($0.last)" }.joined(separator: ", ")
        return self.count > count ? "\(shown) and \((self.count - count).grouped) more" : shown
    }
}

extension BinaryInteger {
    /// With commas between groups of three digits.
    var grouped: String {
        var text = String(magnitude)
        var place = text.count - 3
        while place > 0 {
            text.insert(",", at: text.index(text.startIndex, offsetBy: place))
            place -= 3
        }
        return self < 0 ? "-" + text : text
    }

    /// `1 resource`, `2 resources`.
    func of(_ noun: String) -> String { "\(grouped) \(noun)\(self == 1 ? "" : "s")" }
}

extension Int64 {
    var size: String { ByteSize(bytes: self).description }
}
