import Administration
import ArgumentParser
import CachePolicy
import Configuration
import ControlAPI
import Downloads
import Foundation
import HTTPModel
import Reelcache

struct FeedsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feeds", abstract: "Subscribe to podcasts and other feeds, so that new episodes are downloaded.",
        discussion: """
            A running proxy checks the feeds by itself. Without one, run reelcache feeds check from time to time.

              reelcache feeds add https://example.org/podcast.xml --latest 2 --keep 10
              reelcache feeds
              reelcache feeds import subscriptions.opml
            """,
        subcommands: [
            FeedsList.self, FeedsAdd.self, FeedsShow.self, FeedsRemove.self, FeedsCheck.self, FeedsImport.self,
            FeedsExport.self,
        ], defaultSubcommand: FeedsList.self)
}

/// Options of a subscription.
struct FeedOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Download this many of the newest episodes at first, and later each new one. (default: 3)",
            valueName: "number"))
    var latest: Int?
    @Option(
        help: ArgumentHelp(
            "Label the downloads, so that other commands find them with --category.", valueName: "name"),
        completion: .known(.categories))
    var category: String?
    @Option(
        help: ArgumentHelp("Check the feed this often, 5m to 30d. (default: 1h)", valueName: "time"),
        transform: FeedArgument.time)
    var every: Int64?
    @Option(
        help: ArgumentHelp(
            "Keep each episode until it was played, or this many of its newest episodes, such as 5, or this much of them, such as 2GB, and remove older ones. (default: until-played)",
            valueName: "until-played|number|size|all"), transform: FeedArgument.keep)
    var keep: SubscriptionChange.Keep?
    @Option(
        help: ArgumentHelp(
            "Download only episodes with this text in their title, or with titles that match a pattern with *; case does not matter.",
            valueName: "pattern"))
    var title: String?
    @Option(
        help: ArgumentHelp(
            "Let its downloads fetch at most this much in a day or month, such as 500MB/day. (default: none)",
            valueName: "size/day|month|none"), transform: FeedArgument.caps)
    var cap: [DownloadCap]?

    /// What the default of `keep` means, for whoever has not chosen it.
    static let defaultKeeping =
        "each episode is kept until it was played, then as long as there is room; --keep all keeps everything"

    func validate() throws {
        if let latest, !SubscriptionOptions.latestRange.contains(latest) {
            throw ValidationError(
                "--latest \(latest) is out of range: write 0 to \(SubscriptionOptions.latestRange.upperBound)")
        }
    }

    var change: SubscriptionChange {
        var change = SubscriptionChange()
        (change.latest, change.category, change.every, change.keep, change.title) = (
            latest, category, every, keep, title
        )
        change.caps = cap
        return change
    }
}

/// Which private origins a command without a running proxy may fetch from.
struct AllowOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Without a running proxy, allow this private origin, such as nas.local. May be repeated.",
            valueName: "host|cidr"))
    var allow: [String] = []

    func validate() throws {
        var sources = SettingSources()
        if !allow.isEmpty { sources.flags["allow"] = allow }
        try sources.validateFlags()
    }

    /// The configuration with these origins allowed as well.
    func applied(to configuration: ProxyConfiguration) -> ProxyConfiguration {
        var configuration = configuration
        configuration.allow += allow
        return configuration
    }
}

/// Values of options; the errors say what to write instead.
enum FeedArgument {
    static func time(_ text: String) throws -> Int64 {
        guard let seconds = SubscriptionText.seconds(text), SubscriptionOptions.everyRange.contains(seconds) else {
            throw ValidationError("write a time from 5m to 30d, like 90m or 12h")
        }
        return seconds
    }

    static func caps(_ text: String) throws -> [DownloadCap] {
        guard let caps = DownloadCap.list(text) else { throw ValidationError("write \(SubscriptionText.capForm)") }
        return caps
    }

    static func keep(_ text: String) throws -> SubscriptionChange.Keep {
        guard let keep = SubscriptionChange.Keep(text) else {
            throw ValidationError("write \(SubscriptionText.keepForm)")
        }
        return keep
    }
}

struct FeedsList: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the subscribed feeds, and what is wrong with them.")

    @Flag(name: .shortAndLong, help: "On a terminal, list URLs besides titles.")
    var long = false
    @OptionGroup var printing: PrintingOptions

    func run() throws {
        let configuration = try printing.cache.configuration
        let feeds = try configuration.withProxy(orElse: []) { try $0.feeds() }
        guard !printing.json else { return print(try printing.secret.json(feeds, configuration)) }
        let table = FeedTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, now: Int64(time(nil)),
            mask: try printing.secret.mask(configuration))
        for line in table.list(feeds, isLong: long) { print(line) }
        let broken = feeds.count { $0.message != nil }
        print(
            feeds.isEmpty
                ? "no feeds: subscribe with reelcache feeds add URL"
                : feeds.count.of("feed") + (broken > 0 ? ", \(broken.grouped) broken" : ""))
    }
}

struct FeedsShow: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a subscription and its newest episodes.")

    @Argument(help: "The feed: its number in the list, a part of its title, or its URL.", completion: .known(.feeds))
    var url: String
    @Option(help: ArgumentHelp("Limit the list to this many episodes.", valueName: "number"))
    var limit = 20
    @Flag(name: .shortAndLong, help: "On a terminal, list URLs besides titles.")
    var long = false
    @OptionGroup var printing: PrintingOptions

    private static let labelWidth = 12

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit \(limit) shows nothing: write 1 or more") }
    }

    func run() throws {
        let configuration = try printing.cache.configuration
        let detail = try configuration.withProxy { try $0.feed($0.feedURL(url), limit: limit) }
        guard !printing.json else { return print(try printing.secret.json(detail, configuration)) }
        let now = Int64(time(nil))
        for (label, value) in Self.rows(detail.feed, now: now) {
            print(try printing.secret.shown(label.padded(to: Self.labelWidth) + value, configuration))
        }
        let table = FeedTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, now: now,
            mask: try printing.secret.mask(configuration))
        for line in table.episodes(detail.episodes, isLong: long) { print(line) }
        for item in detail.skippedItems ?? [] {
            print(try printing.secret.shown("\("skipped".padded(to: Self.labelWidth))\(item.printable)", configuration))
        }
    }

    private static func rows(_ feed: FeedSubscription, now: Int64) -> [(String, String)] {
        let rows: [(String, String?)] = [
            ("title", feed.title), ("url", Terminal.shown(feed.urlText)),
            ("moved to", feed.movedTo.map(Terminal.shown)),
            ("latest", "\(feed.latest)"), ("category", feed.category),
            ("every", TimeSpan(seconds: feed.every).exactText), ("keep", feed.keep ?? "all"),
            ("only titles", feed.titlePattern), ("cap", feed.cap),
            ("checked", feed.checked.map { TimeSpan.ago($0.seconds, now: now) } ?? "not yet"),
            (
                "next check",
                feed.nextCheck.seconds > now ? "in \(TimeSpan(seconds: feed.nextCheck.seconds -| now))" : "due"
            ),
            ("fault", FeedTable.fault(feed, now: now)),
            ("episodes", "\(feed.episodes.grouped), \(feed.ordered.grouped) of them downloaded or queued"),
        ]
        return rows.compactMap { label, value in value.map { (label, $0.printable) } }
    }
}

struct FeedsRemove: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Unsubscribe from feeds.",
        discussion: """
            Their downloads that have not ended are cancelled. Episodes that are cached stay, pinned as they are.

              reelcache feeds remove https://example.org/podcast.xml
            """)

    @Argument(
        help: "The feeds: by their number in the list, a part of their title, or their URL.", completion: .known(.feeds)
    )
    var urls: [String]
    @OptionGroup var printing: PrintingOptions

    func run() throws {
        let configuration = try printing.cache.configuration
        let batch = try configuration.withProxy { proxy in
            // Numbers are those of the list before the first is removed.
            let feeds = urls.allSatisfy { $0.contains("/") } ? [] : try proxy.feeds()
            return try Batch(urls) { try proxy.removeFeed(proxy.feedURL($0, in: feeds)) }
        }
        try batch.end(printing, configuration) { "unsubscribed from \(($0.title ?? $0.urlText).printable)" }
    }
}
