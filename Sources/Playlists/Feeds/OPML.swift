import CachePolicy
import HTTPModel

/// A feed in a list of subscriptions.
package struct OPMLFeed: Sendable, Equatable {
    /// The title in one line; the URL, as a title, if the list has none.
    package let title: String
    package let url: OriginURL
    /// The folders that contain it, outermost first.
    package let categories: [String]

    /// - Parameters:
    ///   - title: becomes one line of plain text; the URL if nothing remains of it.
    ///   - categories: become one line each; empty ones and those beyond `FeedLimits.categories` are left out.
    package init(title: String?, url: OriginURL, categories: [String] = []) {
        self.title = title.flatMap(FeedTitle.line) ?? Self.title(of: url)
        self.url = url
        self.categories = Array(categories.lazy.compactMap(FeedTitle.line).prefix(FeedLimits.categories))
    }

    /// - Parameter folders: shared by all that is in them.
    fileprivate init(title: String?, url: OriginURL, folders: [String]) {
        (self.title, self.url, categories) = (title ?? Self.title(of: url), url, folders)
    }

    /// As long as titles may be: a written list is read back as the same.
    private static func title(of url: OriginURL) -> String { FeedTitle.line(url.absolute) ?? url.absolute }
}

/// A list of subscriptions, as podcast apps export and import it (OPML 2.0).
package struct OPML: Sendable, Equatable {
    package var title: String?
    /// The feeds in document order, each URL once.
    package var feeds: [OPMLFeed] = []
    /// Entries of feeds that cannot be fetched, and duplicates.
    package var skipped: [SkippedItem] = []

    package init(title: String? = nil, feeds: [OPMLFeed]) {
        self.title = title.flatMap(FeedTitle.line)
        self.feeds = feeds
    }
}

extension OPML {
    /// Reads a list.
    ///
    /// An entry is a feed if it has a feed's address, whatever its `type`. Other entries are folders with their name.
    /// - Throws: if the text is not OPML, or exceeds `FeedLimits` or its budget.
    package init(reading bytes: [UInt8], within budget: WorkBudget) throws(FeedError) {
        try FeedError.check(bytes)
        try budget.take(ofFeed: bytes.count)
        let text = FeedText(bytes, charset: nil)
        guard case .xml = try FeedFormat(of: text.bytes, type: nil, path: "") else {
            throw .notAFeed("it is not an OPML file")
        }
        let root: FeedElement
        do {
            root = try Self.root(of: text, isLast: false, budget)
        } catch  where error.kind == .malformed {
            root = try Self.root(of: text.repaired(within: budget), isLast: true, budget)
        }
        guard root.name == .opml else { throw .notAFeed("it is not an OPML file") }
        title = root.child(.head)?.child(.title).flatMap { FeedTitle.line($0.text) }
        var reading = Reading(budget: budget)
        do throws(PlaylistError) {
            for element in root.children(.body) + [root] { try reading.take(element.children(.outline), in: []) }
        } catch { throw FeedError(error) }
        (feeds, skipped) = (reading.feeds, reading.skipped)
    }

    private static func root(of text: FeedText, isLast: Bool, _ budget: WorkBudget) throws(FeedError) -> FeedElement {
        guard let nowhere,
            let tree = FeedTree(
                text, at: FeedElement.Base(nowhere, within: budget), within: budget, onItem: { _, _ in })
        else { throw .tooLarge("no memory for it") }
        tree.read()
        if let failure = tree.failure, failure.kind != .malformed || !isLast { throw failure }
        guard let root = tree.outermost else { throw tree.failure ?? .notAFeed("it has no elements") }
        return root
    }

    /// A placeholder: a list has no URL against which references could be resolved.
    private static let nowhere = try? OriginURL(url: "http://opml.invalid/")
}

extension OPML {
    /// Reads the entries of a list.
    private struct Reading {
        private(set) var feeds: [OPMLFeed] = []
        private(set) var skipped: [SkippedItem] = []
        private var seen: Set<OriginURL> = []
        private var position = 0
        private let budget: WorkBudget

        init(budget: WorkBudget) { self.budget = budget }

        mutating func take(_ outlines: [FeedElement], in folders: [String]) throws(PlaylistError) {
            for outline in outlines {
                try budget.take(folders.count &+ outline.children.count)
                let title = [outline["text"], outline["title"]].lazy.compactMap { $0.flatMap(FeedTitle.line) }.first
                if let address = outline.feedAddress { take(address, title, in: folders) }
                let inner = folders + (title.map { [$0] } ?? [])
                try take(outline.children(.outline), in: Array(inner.prefix(FeedLimits.categories)))
            }
        }

        private mutating func take(_ address: String, _ title: String?, in folders: [String]) {
            position += 1
            let read = FeedReference(feed: address)
            guard let reference = read, !reference.isDamaged, let url = Self.url(address) ?? Self.url(reference.text)
            else {
                return skip(title ?? address, read.map(Self.fault) ?? .noAddress)
            }
            guard seen.insert(url).inserted else { return skip(title ?? address, .duplicate) }
            feeds.append(OPMLFeed(title: title, url: url, folders: folders))
        }

        /// Why it cannot be fetched. For credentials, that names the rule which sends them.
        private static func fault(_ reference: FeedReference) -> SkippedItem.Reason {
            guard case .address = reference.fault, reference.text.contains("@") else { return reference.fault }
            do throws(OriginURLError) { _ = try OriginURL(url: reference.text) } catch { return .address(error.reason) }
            return reference.fault
        }

        /// The URL as it is written, or with its ampersands decoded if they are escaped twice.
        private static func url(_ text: String) -> OriginURL? {
            try? OriginURL(url: String(ASCII.trimmed(text.replacing("&amp;", with: "&"))))
        }

        private mutating func skip(_ name: String, _ reason: SkippedItem.Reason) {
            skipped.append(
                SkippedItem(name: FeedTitle.line(name) ?? "entry \(position)", position: position, reason: reason))
        }
    }
}

extension FeedElement {
    /// The value of `xmlUrl` in any case, or of `url`, which some programs write. A link to a page is not a feed.
    fileprivate var feedAddress: String? {
        self["xmlurl"] ?? (["link", "include"].contains(self["type"]) ? nil : self["url"])
    }
}
