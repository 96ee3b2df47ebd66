import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import HTTPModel
import Playlists
import Reelcache

struct Prefetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Download media into the cache, to play it later without its origin.",
        discussion: """
            Uses the running proxy if there is one; otherwise downloads by itself. Downloads are pinned: they are not evicted until \
            you unpin them. Ctrl-C pauses them; the same command continues them, also after a crash. Without URLs, it \
            continues what waits in the queue, and Ctrl-C leaves it there.

            An HLS or DASH stream counts as one download, with its best picture and its default sound unless the options for \
            playlists choose others. A live HLS stream is recorded for as long as --for says.

              reelcache prefetch https://example.org/episode-1.mp3
              reelcache prefetch -i season.txt -o ~/Videos --limit-rate 2MB
              reelcache prefetch https://example.org/film.mp4 --first 5MB --last 1MB
              reelcache prefetch --feed https://example.org/podcast.xml --latest 5
              reelcache prefetch https://example.org/film.m3u8 --quality 1080p
              reelcache prefetch https://example.org/live.m3u8 --for 30m
            """)

    @Argument(help: "Media URLs, as their origins have them or as players open them.", completion: .known(.urls))
    var urls: [String] = []
    @Option(
        name: [.customShort("i"), .customLong("input")],
        help: ArgumentHelp(
            "Read URLs from this file, one on each line; - for standard input. Empty lines and lines that begin with # are skipped.",
            valueName: "file"), completion: .file())
    var input: String?
    @Option(
        help: ArgumentHelp(
            "Download the newest episodes of this podcast or other feed, without subscribing to it.", valueName: "url"),
        completion: .known(.feeds))
    var feed: String?
    @Option(help: ArgumentHelp("Download this many episodes of the feed. (default: 3)", valueName: "number"))
    var latest: Int?
    @Option(
        help: ArgumentHelp(
            "Download only the first SIZE bytes of each, such as 10MB: enough for players to start at once. With --last, download them before the rest.",
            valueName: "size"),
        transform: DownloadArgument.size)
    var first: Int64?
    @Option(
        help: ArgumentHelp(
            "Download the last SIZE bytes of each right after the first ones, and then the rest: a film whose index is at its end then plays at once.",
            valueName: "size"),
        transform: DownloadArgument.size)
    var last: Int64?
    @Option(
        help: ArgumentHelp(
            "Start downloads of high priority before others that wait, and those of low priority after them.",
            valueName: "priority"))
    var priority = Download.Priority.normal
    @Option(
        help: ArgumentHelp(
            "Use up to this many connections for each download, 1 to \(DownloadOptions.maxConnections).",
            valueName: "number"))
    var connections = 1
    @Option(
        help: ArgumentHelp("Limit each download to this many bytes per second, such as 500kB.", valueName: "rate"),
        transform: DownloadArgument.rate)
    var limitRate: Int64?
    @Option(
        help: ArgumentHelp("Label the downloads, so that other commands find them with --category.", valueName: "name"),
        completion: .known(.categories))
    var category: String?
    @Flag(help: "Download now, whatever schedule and download_cap say.")
    var atOnce = false
    @OptionGroup(title: "OPTIONS FOR PLAYLISTS") var presentation: PresentationOptions
    @Flag(name: .customLong("no-pin"), help: "Do not pin the downloads: they may be evicted when the cache is full.")
    var noPin = false
    @Option(
        name: [.short, .customLong("output")],
        help: ArgumentHelp(
            "Also place each finished file in this directory, which is created if it is missing. Existing files are never overwritten.",
            valueName: "directory"), completion: .directory)
    var output: String?
    @Flag(help: "Queue the downloads and return at once.")
    var detach = false
    @OptionGroup var allowing: AllowOptions
    @Flag(help: "Print a line of JSON for each change.")
    var json = false
    @Flag(name: .shortAndLong, help: "Print errors only.")
    var quiet = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard !isContinuing || !detach && areOptionsDefault else {
            throw ValidationError(
                """
                without URLs, prefetch continues what waits as it was ordered: leave the options out, or write one or \
                more URLs or -i FILE
                """
            )
        }
        if let latest {
            guard feed != nil else {
                throw ValidationError("--latest counts the episodes of a feed: name one with --feed")
            }
            guard 1...SubscriptionOptions.latestRange.upperBound ~= latest else {
                throw ValidationError(
                    "--latest \(latest) is out of range: write 1 to \(SubscriptionOptions.latestRange.upperBound)")
            }
        }
        guard 1...DownloadOptions.maxConnections ~= connections else {
            throw ValidationError(
                "--connections \(connections) is out of range: write 1 to \(DownloadOptions.maxConnections)")
        }
        if category?.allSatisfy(\.isWhitespace) == true {
            throw ValidationError("--category is empty: write a name, or leave it out")
        }
        if let output {
            guard !output.isEmpty else { throw ValidationError("name the directory for the files: -o DIR") }
            guard first == nil || last != nil else {
                throw ValidationError(
                    "--first downloads no whole file that --output could place: leave one of them out, or add --last")
            }
            guard presentation.isDefault else {
                throw ValidationError(
                    "--output cannot place a stream: leave it out, and use reelcache export later"
                )
            }
            guard !detach else {
                throw ValidationError(
                    "--detach does not wait for the files that --output would place: leave one of them out, and use reelcache export later"
                )
            }
        }
        guard first == nil && last == nil || presentation.isDefault else {
            let flag = first == nil ? "--last" : "--first"
            throw ValidationError(
                "\(flag) is for files, and a stream is downloaded as a whole: leave \(flag) or the options for playlists out"
            )
        }
        guard !(detach && feed == nil && !allowing.allow.isEmpty) else {
            throw ValidationError(
                "--allow is for what this command fetches, and --detach fetches nothing: leave one of them out")
        }
    }

    /// Whether it names nothing, and so continues what is in the queue.
    private var isContinuing: Bool { urls.isEmpty && input == nil && feed == nil }

    /// Whether it says nothing about what is ordered.
    private var areOptionsDefault: Bool {
        presentation.isDefault && !noPin && !atOnce && priority == .normal && connections == 1 && category == nil
            && first == nil && last == nil && limitRate == nil
    }

    func run() throws {
        try DownloadDisplay.run(isJSON: json, isQuiet: quiet, secret, allowing.applied(to: try cache.configuration)) {
            display, configuration in
            let named = urls.isEmpty && input == nil ? [] : try configuration.urls(urls, file: input)
            let feed = try feed.map { try configuration.urls([$0], file: nil)[0] }
            let placement = try output.map { try FilePlacement(directory: $0) }
            let interruption = Interruption()
            let isWanted = { !interruption.isRequested }
            let wanted = { (proxy: RunningProxy) in
                try orders(named) + (feed.map { try episodes(of: $0, proxy, display, isWanted) } ?? [])
            }
            if detach {
                try configuration.withProxy(for: feed == nil ? .adding : .fetching, isWanted: isWanted) {
                    try queue(wanted($0), $0, display)
                }
            } else {
                try configuration.withProxy(for: .downloading, isWanted: isWanted) { proxy in
                    proxy.own?.cache.downloader.start()
                    let orders = isContinuing ? [] : try wanted(proxy)
                    try proxy.checkOnline(configuration)
                    let session = PrefetchSession(
                        proxy, display, placement, interruption, successor: configuration, pausesAtEnd: !isContinuing)
                    if isContinuing { try session.continueQueue() } else { try session.run(orders) }
                }
            }
        }
    }

    private func orders(_ urls: [OriginURL]) -> [DownloadOrder] {
        let options = DownloadOptions {
            ($0.first, $0.last, $0.priority, $0.connections) = (first, last, priority, connections)
            ($0.bytesPerSecond, $0.category, $0.isPinned, $0.isAtOnce) = (limitRate, category, !noPin, atOnce)
            ($0.renditions, $0.recordFor) = (presentation.choice, presentation.recordFor)
        }
        return urls.map { DownloadOrder(url: $0, options: options) }
    }

    /// Orders of the newest episodes of a feed, with their titles.
    private func episodes(
        of feed: OriginURL, _ proxy: RunningProxy, _ display: DownloadDisplay, _ isWanted: @escaping () -> Bool
    ) throws -> [DownloadOrder] {
        let preview = try proxy.previewFeed(feed, latest: latest ?? 3, title: nil, isWanted: isWanted)
        let found = preview.episodes.flatMap { episode in
            orders((try? OriginURL(url: episode.url)).map { [$0] } ?? []).map { order in
                var order = order
                order.title = episode.title
                return order
            }
        }
        guard !found.isEmpty else { throw ControlError("\(feed.absolute) has no episodes that can be downloaded") }
        display.say("\((preview.title ?? feed.absolute).printable): \(found.count.of("episode"))")
        return found
    }

    private func queue(_ orders: [DownloadOrder], _ proxy: RunningProxy, _ display: DownloadDisplay) throws {
        let reports = try proxy.add(orders)
        for report in reports {
            display.event("download", report)
            display.say("queued \(report.name)" + (report.state == .waiting ? "" : " (\(report.state.rawValue))"))
        }
        guard proxy.endsWithACommand else { return }
        display.say(
            "no proxy is running: \(reports.count == 1 ? "this download starts" : "these \(reports.count.grouped) downloads start") when one is started, or with reelcache prefetch"
        )
    }
}
