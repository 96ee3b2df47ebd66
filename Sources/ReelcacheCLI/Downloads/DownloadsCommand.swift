import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Reelcache
import TerminalText

struct DownloadsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "downloads", abstract: "List and steer downloads.",
        discussion: "Of the proxy that runs; else what is queued for the next one.",
        subcommands: [
            DownloadsList.self, DownloadsWatch.self, DownloadsPause.self, DownloadsResume.self, DownloadsCancel.self,
            DownloadsRetry.self, DownloadsMove.self,
            DownloadsSet.self, DownloadsClear.self,
        ], defaultSubcommand: DownloadsList.self)
}

extension ProxyConfiguration {
    /// As `withDownloads`, also where there is no cache: then there are no downloads.
    func withKnownDownloads<Result>(_ body: (any DownloadAccess) throws -> Result) throws -> Result {
        let isThere = access(cacheDirectory + "/index.sqlite", F_OK) == 0 || errno != ENOENT
        guard isThere || RunningProxy(cacheDirectory: cacheDirectory) != nil else {
            return try body(NoDownloads(cacheDirectory: cacheDirectory))
        }
        return try withDownloads(body)
    }
}

/// The downloads of a cache that there is not.
private struct NoDownloads: DownloadAccess {
    let cacheDirectory: String

    var isFetching: Bool { false }

    func downloads() throws -> DownloadListing { DownloadListing(downloads: [], summary: DownloadSummary()) }

    func add(_ orders: [DownloadOrder]) throws -> [DownloadReport] { throw none }

    func change(_ selection: DownloadSelection, _ change: DownloadChange) throws -> [DownloadReport] {
        if case .ids = selection { throw none }
        return []
    }

    func set(_ settings: DownloadSettings) throws -> DownloadSummary { throw none }

    func history(limit: Int?, category: String?) throws -> [DownloadReport] { [] }

    func clearHistory() throws -> Int { 0 }

    private var none: CacheAccessError {
        CacheAccessError(
            "there is no cache at \(cacheDirectory); name another with --cache-dir, or fill one through reelcache prefetch or serve"
        )
    }
}

extension DownloadAccess {
    /// All that are known, each once: what has not ended in its order, then the newest first.
    func all() throws -> DownloadListing {
        var listing = try downloads()
        let known = Set(listing.downloads.map(\.id))
        listing.downloads += try history(limit: nil, category: nil).filter { !known.contains($0.id) }
        return listing
    }
}

struct DownloadsList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List what has not ended, and what has failed and can be tried again.")

    @Flag(help: "List what is completed and cancelled as well.")
    var all = false
    @Option(
        help: ArgumentHelp(
            "Only waiting, downloading, paused, completed, failed or cancelled ones.", valueName: "state"))
    var state: DownloadState?
    @Option(help: ArgumentHelp("Only those of this category.", valueName: "name"), completion: .known(.categories))
    var category: String?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        if all && state != nil { throw ValidationError("--state shows less than --all: leave one of them away") }
    }

    func run() throws {
        let configuration = try cache.configuration
        let (listing, isFetching) = try configuration.withKnownDownloads { access in
            var listing = try access.all()
            listing.downloads = listing.downloads.filter(isWanted)
            return (listing, access.isFetching)
        }
        guard !json else { return print(try secret.json(listing, configuration)) }
        let table = DownloadTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, now: Int64(time(nil)),
            mask: try secret.mask(configuration))
        for line in table.list(listing.downloads) { print(line) }
        print(Self.summary(listing, isFetching: isFetching))
    }

    private func isWanted(_ report: DownloadReport) -> Bool {
        if let category, report.category != category { return false }
        if let state { return report.state == state }
        return all || !report.state.hasEnded || report.state == .failed
    }

    private static func summary(_ listing: DownloadListing, isFetching: Bool) -> String {
        let totals = FollowedTotals(listing.downloads)
        var parts = DownloadState.allCases.filter { totals[$0] > 0 }.map { "\(totals[$0].grouped) \($0.rawValue)" }
        if parts.isEmpty { parts = ["no downloads"] }
        if totals.rate > 0 { parts.append(ProgressText.rate(totals.rate)) }
        let waits = !isFetching && totals[.waiting] + totals[.downloading] > 0
        return parts.joined(separator: ", ")
            + (waits ? "; no proxy runs: they go on when one is started, or with reelcache prefetch" : "")
    }
}

struct DownloadsWatch: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show downloads as they go on, until Ctrl-C.",
        discussion: "Ctrl-C ends the showing, and pauses nothing.")

    @Flag(help: "Print a line of JSON for each change.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func run() throws {
        var mask: URLMask? = .standard
        do {
            let configuration = try cache.configuration
            mask = try secret.mask(configuration)
            try watch(DownloadDisplay(isJSON: json, mask: mask), configuration.cacheDirectory)
        } catch {
            if json { DownloadDisplay.tellAsJSON(error, mask) }
            throw error
        }
    }

    private func watch(_ display: DownloadDisplay, _ directory: String) throws {
        guard let proxy = RunningProxy(cacheDirectory: directory) else {
            throw CacheAccessError(
                "no proxy is running for the cache \(directory), so no download goes on; start one with reelcache serve, or name its --cache-dir"
            )
        }
        let interruption = Interruption()
        defer { display.clear() }
        var followed = FollowedDownloads()
        do {
            try proxy.watchDownloads(
                [],
                isWanted: {
                    display.draw(followed)
                    return !interruption.isWished
                }
            ) { news in
                switch news {
                case .download(let report): display.tell(report, followed.note(report), isError: false)
                case .removed(let id): followed.forget(id)
                case .summary: break
                }
                display.draw(followed)
                return !interruption.isWished
            }
        } catch let error as CacheAccessError {
            guard !interruption.isWished else { return }
            throw (try? proxy.get("/healthz")) == nil ? Self.gone(proxy) : error
        }
        if !interruption.isWished { throw Self.gone(proxy) }
    }

    private static func gone(_ proxy: RunningProxy) -> CacheAccessError {
        CacheAccessError("the proxy at \(proxy.baseURL) has ended")
    }
}

// MARK: - What is done to them

/// Which downloads, as people name them.
struct DownloadNaming: ParsableArguments {
    @Argument(help: "Downloads by their number or URL.", completion: .known(.downloads))
    var names: [String] = []
    @Flag(help: "All for which it is possible.")
    var all = false
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard names.isEmpty == all else { throw ValidationError("say which: one or more numbers or URLs, or --all") }
    }

    /// - Parameters:
    ///   - prefers: of several downloads of one URL, this one is meant.
    ///   - verb: as in "nothing to pause".
    func run(_ action: DownloadChange.Action, prefers: @escaping (DownloadReport) -> Bool) throws {
        let configuration = try cache.configuration
        let batch = try configuration.withKnownDownloads { access in
            let change = DownloadChange(action: action)
            guard !all else { return Batch(done: try access.change(.all, change)) }
            let names = try DownloadNames(access, configuration, names)
            return try Batch(self.names) {
                try access.change(.ids([names.id($0, prefers: prefers)]), change).first.orUnknown($0)
            }
        }
        if json {
            print(try secret.json(batch, configuration))
        } else {
            for report in batch.done { print(try secret.shown(Self.line(report), configuration)) }
            if all && batch.done.isEmpty { print("nothing to \(action.rawValue)") }
        }
        try batch.exitIfFailed(secret, configuration)
    }

    static func line(_ report: DownloadReport) -> String {
        "\(report.id)  \(report.state.rawValue)  \(report.amount)  \(report.url.printable)"
    }
}

/// Finds downloads by what people call them.
struct DownloadNames {
    private let reports: [DownloadReport]
    private let configuration: ProxyConfiguration

    /// - Parameter names: those that will be asked for.
    init(_ access: any DownloadAccess, _ configuration: ProxyConfiguration, _ names: [String]) throws {
        reports = names.allSatisfy { Int64($0) != nil } ? [] : try access.all().downloads
        self.configuration = configuration
    }

    func id(_ name: String, prefers: (DownloadReport) -> Bool) throws -> Int64 {
        if let id = Int64(name) { return id }
        var list = try configuration.urlList()
        list.add(argument: name)
        guard let url = list.urls.first?.absolute else {
            throw CacheAccessError("\(list.problems.first ?? name); or name a download by its number")
        }
        let known = reports.filter { $0.url == url }
        guard let report = known.first(where: prefers) ?? known.first else {
            throw Optional<DownloadReport>.unknown(name)
        }
        return report.id
    }
}

extension DownloadReport? {
    func orUnknown(_ name: String) throws -> DownloadReport {
        guard let self else { throw Self.unknown(name) }
        return self
    }

    static func unknown(_ name: String) -> CacheAccessError {
        CacheAccessError("there is no download \(name): reelcache downloads list --all shows all")
    }
}

struct DownloadsPause: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop downloads for now. What has come stays.")

    @OptionGroup var naming: DownloadNaming

    func run() throws { try naming.run(.pause) { $0.state == .downloading || $0.state == .waiting } }
}

struct DownloadsResume: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Let paused downloads go on.")

    @OptionGroup var naming: DownloadNaming

    func run() throws { try naming.run(.resume) { $0.state == .paused } }
}

struct DownloadsCancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "End downloads. What has come for them alone is removed from the cache.",
        discussion:
            "With --all, those that have not ended. One that has failed keeps what has come, to be retried, until it is cancelled by its name."
    )

    @OptionGroup var naming: DownloadNaming

    func run() throws { try naming.run(.cancel) { !$0.state.hasEnded } }
}

struct DownloadsRetry: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Try failed downloads again, from where they were.")

    @OptionGroup var naming: DownloadNaming

    func run() throws { try naming.run(.retry) { $0.state == .failed || $0.state == .waiting && $0.retryAt != nil } }
}

struct DownloadsMove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Change when a download has its turn.")

    @Argument(help: "A download by its number or URL.", completion: .known(.downloads))
    var name: String
    @Flag(help: "Before all others of its priority that wait.")
    var first = false
    @Flag(help: "Behind them.")
    var last = false
    @Option(help: ArgumentHelp("To this place among them; 1 is the first.", valueName: "position"))
    var to: Int?
    @Option(help: ArgumentHelp("high, normal or low.", valueName: "priority"))
    var priority: DownloadPriority?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        let places = [first, last, to != nil].filter { $0 }.count
        guard places <= 1, places == 1 || priority != nil else {
            throw ValidationError("say where to: --first, --last or --to POSITION; or --priority PRIORITY; or both")
        }
        if let to, to < 1 { throw ValidationError("--to \(to) is not a position; 1 is the first") }
    }

    func run() throws {
        let configuration = try cache.configuration
        let report = try configuration.withKnownDownloads { access in
            let id = try DownloadNames(access, configuration, [name]).id(name) { !$0.state.hasEnded }
            var change = DownloadChange(priority: priority)
            if first {
                change.position = 0
            } else if let to {
                change.position = to - 1
            } else if last {
                change.position = try access.downloads().downloads.filter { $0.state == .waiting }.count
            }
            return try access.change(.ids([id]), change).first.orUnknown(name)
        }
        print(
            json ? try secret.json(report, configuration) : try secret.shown(DownloadNaming.line(report), configuration)
        )
    }
}

struct DownloadsSet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change how many run at once, and how fast, until the proxy ends.")

    @Option(
        help: ArgumentHelp(
            "How many run at once, \(DownloadSettings.maxActiveRange.lowerBound) to \(DownloadSettings.maxActiveRange.upperBound).",
            valueName: "number"))
    var maxActive: Int?
    @Option(
        help: ArgumentHelp("What may come in a second for all together, such as 2MB; none for any.", valueName: "rate"),
        transform: DownloadArgument.rateOrNone)
    var limitRate: Int64?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard maxActive != nil || limitRate != nil else {
            throw ValidationError("say what to change: --max-active NUMBER, --limit-rate RATE, or both")
        }
        if let maxActive, !DownloadSettings.maxActiveRange.contains(maxActive) {
            let range = DownloadSettings.maxActiveRange
            throw ValidationError(
                "--max-active \(maxActive) cannot be; choose \(range.lowerBound) to \(range.upperBound)")
        }
    }

    func run() throws {
        let configuration = try cache.configuration
        let summary = try configuration.withKnownDownloads { access in
            var settings = try access.downloads().summary.settings
            if let maxActive { settings.maxActive = maxActive }
            if let limitRate { settings.limitRate = limitRate > 0 ? limitRate : nil }
            return try access.set(settings)
        }
        guard !json else { return print(try ControlJSON.pretty(summary)) }
        print(
            "at most \(summary.settings.maxActive.of("download")) at once, \(summary.settings.limitRate.map { "\(ProgressText.rate($0)) together" } ?? "as fast as it goes")"
        )
    }
}

struct DownloadsClear: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Forget the downloads that have ended.",
        discussion:
            "What the completed ones brought stays in the cache; what failed ones have left, which nobody could go on with any more, goes."
    )

    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let count = try cache.configuration.withKnownDownloads { try $0.clearHistory() }
        print(json ? try ControlJSON.pretty(["cleared": count]) : "forgot \(count.of("download"))")
    }
}
