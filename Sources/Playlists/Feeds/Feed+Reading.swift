import CachePolicy
import HTTPModel

extension Feed {
    /// Reads a feed, or a list of files.
    ///
    /// What cannot be used costs the item that it is in. XML that is not well-formed is repaired; where that does not
    /// help, the items before the mistake count, and `cut` says so.
    /// - Parameters:
    ///   - bytes: the text, without a content coding.
    ///   - url: the one that answered, behind any redirects.
    ///   - type: the response's `Content-Type`. How the text begins counts more.
    /// - Throws: for a text that is not a feed, that expands, or that is beyond `FeedLimits`.
    package init(reading bytes: [UInt8], at url: OriginURL, type: String? = nil) throws(FeedError) {
        try FeedError.check(bytes)
        let text = FeedText(bytes, charset: MediaTypeName.charset(type))
        switch try FeedFormat(of: text.bytes, type: type, path: url.pathAndQuery.prefix { $0 != "?" }) {
        case .xml: self = try FeedReader.read(text, at: url)
        case .m3u: self = try FileList.m3u(bytes, at: url)
        case .pls: self = FileList.pls(bytes, at: url)
        }
    }
}

/// Reads a feed in XML, the items while they arrive.
final class FeedReader {
    private let text: FeedText
    private let url: OriginURL
    private var drafts: [FeedDraft] = []
    private var addresses = FeedAddresses()
    private var hasMore = false
    /// Bytes of all addresses that were resolved.
    private var resolved = 0

    private init(_ text: FeedText, at url: OriginURL) {
        self.text = text
        self.url = url
    }

    /// As it is, and with repairs if it is not well-formed. Items that are not closed are deep within each other.
    static func read(_ text: FeedText, at url: OriginURL) throws(FeedError) -> Feed {
        do {
            return try FeedReader(text, at: url).read(isLast: false)
        } catch  where error.kind == .malformed || error.kind == .tooDeep {
            return try FeedReader(try text.repaired(), at: url).read(isLast: true)
        }
    }

    /// - Parameter isLast: mistakes in the XML end the reading, and what was read before them is the result.
    private func read(isLast: Bool) throws(FeedError) -> Feed {
        let tree = FeedTree(text, at: url) { [self] in take($0, isCut: $1) }
        guard let tree else { throw .tooLarge("no memory for it") }
        tree.read()
        if let failure = tree.failure, failure.kind != .malformed || !isLast { throw failure }
        guard let root = tree.outermost else { throw tree.failure ?? .notAFeed("it has no elements") }
        return try feed(root, isCut: tree.failure != nil)
    }

    private func take(_ element: FeedElement, isCut: Bool) {
        addresses.add(element, in: text)
        guard drafts.count < FeedLimits.items, resolved <= FeedLimits.resolved else {
            hasMore = true
            return
        }
        let draft = FeedDraft(element, isCut: isCut)
        resolved += draft.resolved
        drafts.append(draft)
    }

    private func feed(_ root: FeedElement, isCut: Bool) throws(FeedError) -> Feed {
        if root.name == .opml { throw .notAFeed("it is an OPML file, a list of feeds") }
        let kind: Feed.Kind = root.name == .feed ? .atom : root.name == .playlist ? .xspf : .rss
        var feed = Feed(kind: kind, url: url)
        (feed.items, feed.skipped) = FeedIdentities.sorted(drafts)
        feed.cut = text.end != nil ? .endsEarly : isCut ? .malformed : hasMore ? .tooManyItems : nil
        feed.isRepaired = text.isRepaired
        addresses.add(root, in: text)
        feed.addresses = addresses
        for channel in root.children(.channel) + [root] { feed.take(channel) }
        return feed
    }
}

extension Feed {
    /// What a channel, or the root of another vocabulary, states about all of the feed.
    fileprivate mutating func take(_ channel: FeedElement) {
        title = title ?? channel.texts(.title, .itunesTitle).lazy.compactMap(FeedTitle.plain).first
        homePage = homePage ?? channel.homePage
        image = image ?? channel.picture
        nextPage = nextPage ?? channel.link("next", besides: url)
        previousArchive = previousArchive ?? channel.link("prev-archive", besides: url)
        isArchive = isArchive || channel.child(.archive) != nil
        isComplete = isComplete || channel.child(.complete) != nil
        newAddress = newAddress ?? channel.newAddress(besides: url)
        lifetime = lifetime ?? channel.lifetime
    }
}

extension FeedElement {
    /// The text of RSS's `link`, or a link of Atom without another meaning.
    fileprivate var homePage: OriginURL? {
        children(.link).lazy.filter { $0.relations.contains("alternate") }.compactMap {
            FeedReference($0["href"] ?? $0.text)?.url(at: $0.base)
        }.first
    }

    /// One that leads to the feed itself would be a circle.
    fileprivate func link(_ relation: String, besides url: OriginURL) -> OriginURL? {
        children(.link).lazy.filter { $0.relations.contains(relation) }.compactMap {
            FeedReference($0["href"] ?? "")?.url(at: $0.base)
        }.first { $0 != url }
    }

    fileprivate func newAddress(besides url: OriginURL) -> OriginURL? {
        texts(.newAddress).lazy.compactMap { FeedReference(feed: $0)?.url(at: self.base) }.first { $0 != url }
    }

    /// RSS states minutes, the syndication module how often in a period. Of two, the longer one holds.
    fileprivate var lifetime: Duration? {
        let stated = [texts(.ttl).lazy.compactMap(Self.minutes).first, syndicationPeriod].compactMap { $0 }
        guard let seconds = stated.max() else { return nil }
        let limits = FeedLimits.lifetimes
        return .seconds(min(max(seconds, limits.lowerBound), limits.upperBound))
    }

    private static func minutes(_ text: String) -> Int64? {
        let whole = text.utf8.drop(while: ASCII.isXMLSpace).prefix(while: ASCII.isDigit)
        return ASCII.decimal(whole, upTo: PlaylistLimits.seconds).flatMap { $0 > 0 ? $0 *| 60 : nil }
    }

    /// Daily, and once in that time, unless the feed states otherwise.
    private var syndicationPeriod: Int64? {
        let periods: [String: Int64] = [
            "hourly": 3600, "daily": 86400, "weekly": 604_800, "monthly": 2_592_000, "yearly": 31_536_000,
        ]
        let frequency = texts(.updateFrequency).lazy.compactMap(Self.minutes).first.map { $0 / 60 }
        let name = texts(.updatePeriod).first.map { $0.lowercased().filter(\.isLetter) }
        guard name != nil || frequency != nil, let period = periods[name ?? "daily"] else { return nil }
        return period / max(1, frequency ?? 1) // no trap: at least one
    }
}
