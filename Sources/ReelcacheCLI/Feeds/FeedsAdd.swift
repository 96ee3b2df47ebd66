import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Reelcache

struct FeedsAdd: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Subscribe to a feed, or change its options.",
        discussion: """
            A new feed is read at once; if that is impossible, nothing is saved. Its newest episodes are queued with low priority, and \
            from then on each new one, once.

              reelcache feeds add https://example.org/podcast.xml
              reelcache feeds add https://example.org/news.xml --keep 2GB --title '*news*'
            """)

    @Argument(help: "The URL of an RSS or Atom feed, or of a list of files (M3U, PLS, XSPF).")
    var url: String
    @OptionGroup var options: FeedOptions
    @OptionGroup var allowing: AllowOptions
    @OptionGroup var printing: PrintingOptions

    func run() throws {
        let configuration = allowing.applied(to: try printing.cache.configuration)
        let interruption = Interruption()
        let (check, isBrief, isNew) = try configuration.withProxy(
            for: .fetching, isWanted: { !interruption.isRequested }
        ) { proxy in
            let named = try proxy.url(url)
            let isNew = try !proxy.feeds().contains { $0.urlText == named.absolute }
            return (
                try proxy.subscribe(named, options.change) { !interruption.isRequested }, proxy.endsWithACommand, isNew
            )
        }
        if printing.json {
            print(try printing.secret.json(check, configuration))
        } else if check.outcome != .failed {
            print(try printing.secret.shown(check.line, configuration))
            for item in check.skippedItems ?? [] {
                Terminal.writeError("reelcache: skipped: \(try printing.secret.shown(item, configuration))")
            }
            if isNew, options.keep == nil { print(FeedOptions.defaultKeeping) }
            if isBrief, !check.downloads.isEmpty {
                print("no proxy is running: the downloads start when one is started, or with reelcache feeds check")
            }
        }
        guard check.outcome != .failed else {
            // A new subscription would not have been saved, and there would be no outcome.
            let line = try printing.secret.shown(check.line, configuration)
            Terminal.writeError("reelcache: the options are saved; the feed could not be read: \(line)")
            throw ExitCode(3)
        }
    }
}

struct FeedsImport: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Subscribe to the feeds of an OPML file, as other podcast programs export it.",
        discussion: """
            Feeds that are subscribed already stay as they are. The others are checked soon after, and their newest episodes queued.

              reelcache feeds import subscriptions.opml --latest 1
            """)

    @Argument(help: "The file; - for standard input.", completion: .file(extensions: ["opml", "xml"]))
    var file: String
    @OptionGroup var options: FeedOptions
    @OptionGroup var printing: PrintingOptions

    func run() throws {
        let configuration = try printing.cache.configuration
        let bytes = try CommandFile.bytes(of: file)
        let interruption = Interruption()
        let (result, isBrief) = try configuration.withProxy(for: .adding, isWanted: { !interruption.isRequested }) {
            (try $0.importFeeds(bytes, options.change), $0.endsWithACommand)
        }
        if printing.json {
            print(try printing.secret.json(result, configuration))
        } else {
            try report(result, isBrief, configuration)
        }
        if !result.skipped.isEmpty { throw ExitCode(result.added.isEmpty && result.known == 0 ? 1 : 3) }
    }

    private func report(_ result: FeedImport, _ isBrief: Bool, _ configuration: ProxyConfiguration) throws {
        for entry in result.skipped {
            Terminal.writeError("reelcache: \(try printing.secret.shown(entry, configuration))")
        }
        print(
            "\(result.added.count.of("feed")) added"
                + (result.known > 0 ? ", \(result.known.grouped) subscribed before" : ""))
        if options.keep == nil, !result.added.isEmpty { print(FeedOptions.defaultKeeping) }
        if isBrief, !result.added.isEmpty {
            print("no proxy is running: the feeds are checked when one is started, or with reelcache feeds check")
        }
    }
}

struct FeedsExport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Print the subscriptions as OPML, which other podcast programs import.",
        discussion: """
            The list contains URLs in full, with passwords and tokens.

              reelcache feeds export > subscriptions.opml
            """)

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let text = try cache.configuration.withProxy { try $0.exportFeeds() }
        print(String(decoding: text, as: UTF8.self), terminator: "")
    }
}
