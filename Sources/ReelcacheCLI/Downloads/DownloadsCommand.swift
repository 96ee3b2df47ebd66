import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Reelcache

struct DownloadsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "downloads", abstract: "List and control downloads.",
        discussion: """
            The downloads are those of the running proxy. Without a proxy, they wait in the queue until one is started.

              reelcache downloads
              reelcache downloads pause --all
              reelcache downloads move 12 --first
            """,
        subcommands: [
            DownloadsList.self, DownloadsWatch.self, DownloadsWait.self, DownloadsPause.self, DownloadsResume.self,
            DownloadsCancel.self,
            DownloadsRetry.self, DownloadsMove.self,
            DownloadsSet.self, DownloadsClear.self,
        ], defaultSubcommand: DownloadsList.self)
}

struct DownloadsList: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List downloads that have not ended, and failed ones that can be retried.")

    @Flag(help: "Include completed and cancelled downloads.")
    var all = false
    @Option(
        help: ArgumentHelp(
            "List only downloads in this state.", valueName: "state"))
    var state: Download.State?
    @Option(
        help: ArgumentHelp("List only downloads of this category.", valueName: "name"), completion: .known(.categories))
    var category: String?
    @Flag(name: .shortAndLong, help: "On a terminal, list URLs in place of names.")
    var long = false
    @OptionGroup var printing: PrintingOptions

    func validate() throws {
        if all && state != nil {
            throw ValidationError("--all and --state contradict each other: leave one of them out")
        }
    }

    func run() throws {
        let configuration = try printing.cache.configuration
        var (listing, isFetching) = try configuration.withProxy(
            orElse: (DownloadListing(downloads: [], summary: DownloadTotals()), false)
        ) { (try $0.allDownloads(), !$0.isOwn) }
        listing.downloads = listing.downloads.filter(isWanted)
        guard !printing.json else { return print(try printing.secret.json(listing, configuration)) }
        let table = DownloadTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, now: Int64(time(nil)),
            mask: try printing.secret.mask(configuration), isLong: long)
        for line in table.list(listing.downloads, hold: listing.summary.hold) { print(line) }
        print(Self.summary(listing, isFetching: isFetching))
    }

    private func isWanted(_ report: Download) -> Bool {
        if let category, report.category != category { return false }
        if let state { return report.state == state }
        return all || !report.state.hasEnded || report.state == .failed
    }

    private static func summary(_ listing: DownloadListing, isFetching: Bool) -> String {
        let totals = FollowedTotals(listing.downloads)
        var parts = Download.State.allCases.filter { totals[$0] > 0 }.map { "\(totals[$0].grouped) \($0.rawValue)" }
        if parts.isEmpty { parts = ["no downloads"] }
        if totals.rate > 0 { parts.append(ProgressText.rate(totals.rate)) }
        if isFetching, let hold = listing.summary.hold { parts.append(hold) }
        if !listing.summary.settings.caps.isEmpty, let usage = listing.summary.usage, usage.thisMonth > 0 {
            parts.append("fetched \(usage.today.size) today, \(usage.thisMonth.size) this month")
        }
        let waits = !isFetching && totals[.waiting] + totals[.downloading] > 0
        return parts.joined(separator: ", ")
            + (waits ? "; no proxy is running: they continue when one is started, or with reelcache prefetch" : "")
    }
}

struct DownloadsWatch: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show the progress of downloads until Ctrl-C.",
        discussion: "Ctrl-C ends the display; the downloads continue.")

    @Flag(help: "Print a line of JSON for each change.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func run() throws {
        try DownloadDisplay.run(isJSON: json, secret, try cache.configuration) { display, _ in
            try watch(display, cache.runningProxy())
        }
    }

    private func watch(_ display: DownloadDisplay, _ proxy: RunningProxy) throws {
        let interruption = Interruption()
        defer { display.clear() }
        var followed = FollowedDownloads()
        do {
            try proxy.watchDownloads(
                [],
                isWanted: {
                    display.draw(followed)
                    return !interruption.isRequested
                }
            ) { news in
                switch news {
                case .download(let report): display.show(report, followed.note(report), isError: false)
                case .removed(let id): followed.forget(id)
                case .summary: break
                }
                display.draw(followed)
                return !interruption.isRequested
            }
        } catch let error as ControlError {
            guard !interruption.isRequested else { return }
            throw (try? proxy.get("/healthz")) == nil ? Self.gone(proxy) : error
        }
        if !interruption.isRequested { throw Self.gone(proxy) }
    }

    private static func gone(_ proxy: RunningProxy) -> ControlError {
        ControlError("the proxy at \(proxy.baseURL) has ended")
    }
}

struct DownloadsWait: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until the downloads that wait or run now have ended.",
        discussion: """
            Also ends once those that are left are held, as their origin fails. The exit code is that of prefetch. \
            Ctrl-C ends the waiting; the downloads continue.
            """)

    @Flag(help: "Print a line of JSON for each change.")
    var json = false
    @Flag(name: .shortAndLong, help: "Print errors only.")
    var quiet = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func run() throws {
        try DownloadDisplay.run(isJSON: json, isQuiet: quiet, secret, try cache.configuration) { display, _ in
            let interruption = Interruption()
            let proxy = try cache.runningProxy()
            try PrefetchSession(proxy, display, nil, interruption, successor: nil, pausesAtEnd: false)
                .follow(proxy.waitingDownloads())
        }
    }
}

// MARK: - Changing downloads

/// The downloads that a command changes, as users name them.
struct DownloadNaming: ParsableArguments {
    @Argument(help: "Downloads, by their number or URL.", completion: .known(.downloads))
    var names: [String] = []
    @Flag(help: "Select all downloads to which this applies.")
    var all = false
    @Option(help: ArgumentHelp("Select all downloads in this state, such as failed.", valueName: "state"))
    var state: Download.State?

    func validate() throws {
        guard [!names.isEmpty, all, state != nil].count(where: { $0 }) == 1 else {
            throw ValidationError("select downloads: write one or more numbers or URLs, --all or --state STATE")
        }
    }

    /// - Parameters:
    ///   - prefers: which of several downloads of one URL to choose.
    func run(
        _ action: DownloadChange.Action, _ printing: PrintingOptions, prefers: @escaping (Download) -> Bool
    ) throws {
        let configuration = try printing.cache.configuration
        let batch = try configuration.withProxy(orElse: names.isEmpty ? Batch<Download>(done: []) : nil) { proxy in
            let change = DownloadChange(action: action)
            guard !all else { return Batch(done: try proxy.change(.all, change)) }
            if let state {
                let ids = try allIDs(in: state, proxy)
                guard !ids.isEmpty else { return Batch(done: []) }
                // Failed ones are cancelled only by their numbers; whatever else has changed meanwhile is left out.
                let selection: DownloadSelection = action == .cancel && state == .failed ? .ids(ids) : .possible(ids)
                return Batch(done: try proxy.change(selection, change))
            }
            var listed: [Download]?
            return try Batch(names) {
                let id = try proxy.downloadID($0, in: &listed, prefers: prefers)
                return try proxy.change(.ids([id]), change).first.orUnknown($0)
            }
        }
        let none = names.isEmpty ? "nothing to \(action.rawValue)" : nil
        try batch.end(printing, configuration, orElse: none, line: Self.line)
    }

    /// In the order in which they were ordered.
    private func allIDs(in state: Download.State, _ proxy: RunningProxy) throws -> [Int64] {
        try proxy.allDownloads().downloads.filter { $0.state == state }.map(\.id).sorted()
    }

    static func line(_ report: Download) -> String {
        "\(report.id)  \(report.state.rawValue)  \(report.amount)  \(report.urlText.printable)"
    }
}

extension RunningProxy {
    /// Finds a download by its number or URL.
    /// - Parameters:
    ///   - listed: all downloads; nil until a URL is looked up.
    ///   - prefers: which of several downloads of one URL to choose.
    func downloadID(_ name: String, in listed: inout [Download]?, prefers: (Download) -> Bool) throws -> Int64 {
        if let id = Int64(name) { return id }
        let url: String
        do { url = try self.url(name).absolute } catch {
            throw ControlError("\(error); or write the number of a download")
        }
        let all = try listed ?? allDownloads().downloads
        listed = all
        let known = all.filter { $0.urlText == url }
        return try (known.first(where: prefers) ?? known.first).orUnknown(name).id
    }
}

extension Download? {
    func orUnknown(_ name: String) throws -> Download {
        guard let self else { throw Self.unknown(name) }
        return self
    }

    static func unknown(_ name: String) -> ControlError {
        ControlError("there is no download \(name): reelcache downloads list --all lists all of them")
    }
}

struct DownloadsPause: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pause downloads. The bytes that have arrived are kept.")

    @OptionGroup var naming: DownloadNaming
    @OptionGroup var printing: PrintingOptions

    func run() throws { try naming.run(.pause, printing) { $0.state == .downloading || $0.state == .waiting } }
}

struct DownloadsResume: PrintingCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Resume paused downloads.")

    @OptionGroup var naming: DownloadNaming
    @OptionGroup var printing: PrintingOptions

    func run() throws { try naming.run(.resume, printing) { $0.state == .paused } }
}

struct DownloadsCancel: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel downloads. Bytes that arrived only for them are removed from the cache.",
        discussion: """
            With --all, cancels the downloads that have not ended. A failed download keeps its bytes, so that it can be \
            retried, until you cancel it by its number or URL.
            """
    )

    @OptionGroup var naming: DownloadNaming
    @OptionGroup var printing: PrintingOptions

    func run() throws { try naming.run(.cancel, printing) { !$0.state.hasEnded } }
}

struct DownloadsRetry: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retry failed downloads from where they stopped.")

    @OptionGroup var naming: DownloadNaming
    @OptionGroup var printing: PrintingOptions

    func run() throws {
        try naming.run(.retry, printing) { $0.state == .failed || $0.state == .waiting && $0.retryDate != nil }
    }
}

struct DownloadsMove: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Change the place of a download in the queue.")

    @Argument(help: "The download, by its number or URL.", completion: .known(.downloads))
    var name: String
    @Flag(help: "Move it before all waiting downloads of its priority.")
    var first = false
    @Flag(help: "Move it after all waiting downloads of its priority.")
    var last = false
    @Option(help: ArgumentHelp("Move it to this position among them; 1 is the first.", valueName: "position"))
    var to: Int?
    @Option(help: ArgumentHelp("Give it this priority.", valueName: "priority"))
    var priority: Download.Priority?
    @OptionGroup var printing: PrintingOptions

    func validate() throws {
        let places = [first, last, to != nil].filter { $0 }.count
        guard places <= 1, places == 1 || priority != nil else {
            throw ValidationError(
                "no place is given: write --first, --last or --to POSITION, or --priority PRIORITY, or both")
        }
        if let to, to < 1 { throw ValidationError("--to \(to) is not a position: write 1 for the first, or more") }
    }

    func run() throws {
        let configuration = try printing.cache.configuration
        let report = try configuration.withProxy { proxy in
            var listed: [Download]?
            let id = try proxy.downloadID(name, in: &listed) { !$0.state.hasEnded }
            var change = DownloadChange(priority: priority)
            if first {
                change.position = 0
            } else if let to {
                change.position = to - 1
            } else if last {
                change.position = try proxy.downloads().downloads.filter { $0.state == .waiting }.count
            }
            return try proxy.change(.ids([id]), change).first.orUnknown(name)
        }
        try printing.print(report, configuration, text: DownloadNaming.line(report))
    }
}

struct DownloadsSet: JSONCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change how many downloads run at once, and how fast, until the proxy ends.")

    @Option(
        help: ArgumentHelp(
            "Run at most this many downloads at once, \(DownloadSettings.maxActiveRange.lowerBound) to \(DownloadSettings.maxActiveRange.upperBound).",
            valueName: "number"))
    var maxActive: Int?
    @Option(
        help: ArgumentHelp(
            "Limit all downloads together to this many bytes per second, such as 2MB; none for no limit.",
            valueName: "rate"),
        transform: DownloadArgument.rateOrNone)
    var limitRate: Int64?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard maxActive != nil || limitRate != nil else {
            throw ValidationError("nothing to change is given: write --max-active NUMBER, --limit-rate RATE, or both")
        }
        if let maxActive, !DownloadSettings.maxActiveRange.contains(maxActive) {
            let range = DownloadSettings.maxActiveRange
            throw ValidationError(
                "--max-active \(maxActive) is out of range: write \(range.lowerBound) to \(range.upperBound)")
        }
    }

    func run() throws {
        let proxy = try cache.runningProxy()
        var settings = try proxy.downloads(limit: 1).summary.settings
        if let maxActive { settings.maxActive = maxActive }
        if let limitRate { settings.limitRate = limitRate > 0 ? limitRate : nil }
        let summary = try proxy.set(settings)
        guard !json else { return print(try ControlJSON.pretty(summary)) }
        print(
            "at most \(summary.settings.maxActive.of("download")) at once, \(summary.settings.limitRate.map { "\(ProgressText.rate($0)) together" } ?? "without a rate limit")"
        )
    }
}

struct DownloadsClear: JSONCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Forget the downloads that have ended.",
        discussion: """
            The media of completed downloads stays in the cache. Bytes of failed ones are removed, because nothing could resume \
            them. Failed episodes stay in the history while their feed retries them.
            """
    )

    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let count = try cache.configuration.withProxy(orElse: 0) { try $0.clearHistory() }
        print(json ? try ControlJSON.pretty(["cleared": count]) : "forgot \(count.of("download"))")
    }
}
