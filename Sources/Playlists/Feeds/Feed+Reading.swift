import CachePolicy
import HTTPModel

extension Feed {
    /// Reads a feed, or a list of files.
    ///
    /// Skips items that cannot be used. Repairs XML that is not well-formed; if that fails, keeps the items before the
    /// mistake and sets `cut`.
    /// - Parameters:
    ///   - bytes: the text, without a content coding.
    ///   - url: the URL that answered, after any redirects.
    ///   - type: the response's `Content-Type`. The beginning of the text takes precedence.
    ///   - isPage: whether media can be found behind the page at a URL. Then an item without media that links to it has
    ///     that page in its place.
    ///   - budget: earned by the text.
    /// - Throws: if the text is not a feed, defines entities that expand, or exceeds `FeedLimits`.
    package init(
        reading bytes: [UInt8], at url: OriginURL, type: String? = nil,
        isPage: @escaping (OriginURL) -> Bool = { _ in false }, within budget: WorkBudget
    ) throws(FeedError) {
        try FeedError.check(bytes)
        // To find its encoding, and to read it as that.
        try budget.take(ofFeed: bytes.count)
        let base = FeedElement.Base(url, within: budget)
        let text = FeedText(bytes, charset: MediaTypeName.charset(type))
        switch try FeedFormat(of: text.bytes, type: type, path: url.pathAndQuery.prefix { $0 != "?" }) {
        case .xml: self = try Reader.read(text, at: base, isPage, budget)
        case .m3u: self = try FileList.m3u(bytes, at: base, within: budget)
        case .pls: self = try FileList.pls(bytes, at: base, within: budget)
        }
        try budget.take(ofFeed: 0)
    }
}

extension Feed {
    /// Reads a feed in XML, one item at a time.
    final class Reader {
        private let text: FeedText
        private let base: FeedElement.Base
        private let isPage: (OriginURL) -> Bool
        private let budget: WorkBudget
        private var drafts: [FeedDraft] = []
        private var addresses = FeedAddresses()
        private var hasMore = false

        private init(
            _ text: FeedText, at base: FeedElement.Base, _ isPage: @escaping (OriginURL) -> Bool, _ budget: WorkBudget
        ) {
            (self.text, self.base, self.isPage, self.budget) = (text, base, isPage, budget)
        }

        /// Reads the text unchanged, then with repairs if it is not well-formed or too deep: unclosed items nest in
        /// each other.
        static func read(
            _ text: FeedText, at base: FeedElement.Base, _ isPage: @escaping (OriginURL) -> Bool, _ budget: WorkBudget
        ) throws(FeedError) -> Feed {
            do {
                return try Reader(text, at: base, isPage, budget).read(upTo: [])
            } catch  where error.kind == .malformed || error.kind == .tooDeep {
                return try repaired(text, at: base, isPage, budget)
            }
        }

        /// Reads the text with repairs. If it has too many mistakes for them, the items before the first mistake count.
        private static func repaired(
            _ text: FeedText, at base: FeedElement.Base, _ isPage: @escaping (OriginURL) -> Bool, _ budget: WorkBudget
        ) throws(FeedError) -> Feed {
            do {
                return try Reader(try text.repaired(within: budget), at: base, isPage, budget).read(upTo: [.malformed])
            } catch {
                let feed = try? Reader(text, at: base, isPage, budget).read(upTo: [.malformed, .tooDeep])
                guard let feed, !feed.items.isEmpty else { throw error }
                return feed
            }
        }

        /// - Parameter mistakes: those that end the reading, with the items before them as the result. Others are
        ///   thrown.
        private func read(upTo mistakes: [FeedError.Kind]) throws(FeedError) -> Feed {
            let tree = FeedTree(text, at: base, within: budget) { [self] in take($0, isCut: $1) }
            guard let tree else { throw .tooLarge("no memory for it") }
            tree.read()
            if let failure = tree.failure, !mistakes.contains(failure.kind) { throw failure }
            if tree.failure != nil || tree.hasLeftOut { addresses.leaveOut() }
            guard let root = tree.outermost else { throw tree.failure ?? .notAFeed("it has no elements") }
            return try feed(root, isCut: tree.failure != nil)
        }

        private func take(_ element: FeedElement, isCut: Bool) {
            // Each field looks for its elements among all of the item.
            _ = try? budget.take(element.children.count &* 32)
            addresses.add(element, in: text)
            guard drafts.count < FeedLimits.items, !hasMore else { return hasMore = true }
            let draft = FeedDraft(element, isCut: isCut, isPage: isPage)
            // A long base would otherwise be part of a million short references.
            guard (try? budget.make(draft.resolved)) != nil else { return hasMore = true }
            drafts.append(draft)
        }

        private func feed(_ root: FeedElement, isCut: Bool) throws(FeedError) -> Feed {
            if root.name == .opml { throw .notAFeed("it is an OPML file, a list of feeds") }
            let kind: Feed.Kind = root.name == .feed ? .atom : root.name == .playlist ? .xspf : .rss
            var feed = Feed(kind: kind, url: base.url)
            for channel in root.children(.channel) + [root] { feed.take(channel) }
            // Such a link does not distinguish items.
            for place in drafts.indices where drafts[place].page == feed.homePage { drafts[place].page = nil }
            (feed.items, feed.skipped) = FeedIdentities.sorted(drafts)
            feed.cut = text.end != nil ? .endsEarly : isCut ? .malformed : hasMore ? .tooManyItems : nil
            feed.isRepaired = text.isRepaired
            addresses.add(root, in: text)
            feed.addresses = addresses
            return feed
        }
    }
}

extension Feed {
    /// Takes the fields about the whole feed from a channel, or from the root of another vocabulary.
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
    var homePage: OriginURL? {
        children(.link).lazy.filter { $0.relations.contains("alternate") }.compactMap {
            FeedReference($0["href"] ?? $0.text)?.url(at: $0.base)
        }.first
    }

    /// The target of a link with this relation. Links to the feed itself are ignored, as they would form a circle.
    fileprivate func link(_ relation: String, besides url: OriginURL) -> OriginURL? {
        children(.link).lazy.filter { $0.relations.contains(relation) }.compactMap {
            FeedReference($0["href"] ?? "")?.url(at: $0.base)
        }.first { $0 != url }
    }

    fileprivate func newAddress(besides url: OriginURL) -> OriginURL? {
        texts(.newAddress).lazy.compactMap { FeedReference(feed: $0)?.url(at: self.base) }.first { $0 != url }
    }

    /// RSS states minutes; the syndication module states updates in a period. The longer lifetime counts.
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

    /// The time between two updates; by default, the feed is updated once a day.
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
