import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import LocalFiles
import Playlists
import Reelcache

struct Prefetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Download resources into the cache, to be played later without their origin.",
        discussion: """
            Uses the running proxy if there is one; otherwise fetches by itself. Ctrl-C pauses: the same command goes on where it was, also \
            after a crash. What is downloaded is pinned: it is not evicted until reelcache unpin.

            Of a playlist (HLS, DASH) all comes that it takes to play it: the best picture with its default sound, unless --quality, --audio, \
            --subtitles or --all say otherwise. It counts as one download. A live stream is recorded: --for 30m.
            """)

    @Argument(help: "Media URLs, or those that a player opens for them.", completion: .known(.urls))
    var urls: [String] = []
    @Option(
        name: [.customShort("i"), .customLong("input")],
        help: ArgumentHelp(
            "A file with one URL on each line; - for standard input. Empty lines and those that begin with # are passed over.",
            valueName: "file"), completion: .file())
    var input: String?
    @Option(
        help: ArgumentHelp("Only so much of the beginning of each, such as 10MB.", valueName: "size"),
        transform: DownloadArgument.size)
    var first: Int64?
    @Option(help: ArgumentHelp("high, normal or low: who goes first of those that wait.", valueName: "priority"))
    var priority = DownloadPriority.normal
    @Option(
        help: ArgumentHelp(
            "How many connections each may have to its origin, 1 to \(DownloadOrder.maxConnections).",
            valueName: "number"))
    var connections = 1
    @Option(
        help: ArgumentHelp("What may come in a second for each, such as 500kB.", valueName: "rate"),
        transform: DownloadArgument.rate)
    var limitRate: Int64?
    @Option(
        help: ArgumentHelp("A word by which the history can be searched.", valueName: "name"),
        completion: .known(.categories))
    var category: String?
    @OptionGroup(title: "OPTIONS FOR PLAYLISTS") var presentation: PresentationOptions
    @Flag(name: .customLong("no-pin"), help: "Let what is downloaded be evicted when the cache is full.")
    var noPin = false
    @Option(
        name: [.short, .customLong("output")],
        help: ArgumentHelp(
            "Place each finished file in this directory as well, under its own name; the directory is made where it is missing. What is there is never overwritten.",
            valueName: "directory"), completion: .directory)
    var output: String?
    @Flag(help: "Only put them into the queue.")
    var detach = false
    @Option(
        help: ArgumentHelp(
            "Where no proxy runs: a private origin that may be fetched from. May be repeated.", valueName: "host|cidr"))
    var allow: [String] = []
    @Flag(help: "Print a line of JSON for each change.")
    var json = false
    @Flag(name: .shortAndLong, help: "Say only what fails.")
    var quiet = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard !urls.isEmpty || input != nil else {
            throw ValidationError("name one or more URLs, or a file with some: -i FILE")
        }
        guard 1...DownloadOrder.maxConnections ~= connections else {
            throw ValidationError("--connections \(connections) cannot be; choose 1 to \(DownloadOrder.maxConnections)")
        }
        if category?.allSatisfy(\.isWhitespace) == true {
            throw ValidationError("--category is empty: name one, or leave it out")
        }
        if let output {
            guard !output.isEmpty else { throw ValidationError("name the directory for the files: -o DIR") }
            guard first == nil else {
                throw ValidationError("--first gets no whole file that --output could place: leave one of them away")
            }
            guard presentation.isDefault else {
                throw ValidationError(
                    "a playlist is no file that --output could place: leave --output away, and use reelcache export later"
                )
            }
            guard !detach else {
                throw ValidationError(
                    "with --detach nobody waits for the files that --output would place: leave one of them away, and use reelcache export later"
                )
            }
        }
        guard first == nil || presentation.isDefault else {
            throw ValidationError("--first is for files, and playlists come as a whole: leave one of the options away")
        }
        guard !(detach && !allow.isEmpty) else {
            throw ValidationError(
                "--allow is for what this command fetches, and --detach fetches nothing: leave one of them away")
        }
        try cache.sources(allow.isEmpty ? [:] : ["allow": allow]).validateFlags()
    }

    func run() throws {
        var mask: URLMask? = .standard
        do {
            var configuration = try cache.configuration
            mask = try secret.mask(configuration)
            configuration.allow += allow
            let orders = try configuration.urls(urls, file: input).map { url in
                DownloadOrder(
                    url: url, first: first, priority: priority, connections: connections, limitRate: limitRate,
                    category: category, isPinned: !noPin, renditions: presentation.choice,
                    recordFor: presentation.recordFor)
            }
            let placement = try output.map { try FilePlacement(directory: $0) }
            let display = DownloadDisplay(isJSON: json, isQuiet: quiet, mask: mask)
            let interruption = Interruption()
            let isWanted = { !interruption.isWished }
            if detach {
                try configuration.withDownloads(makesCache: true, isWanted: isWanted) { try queue(orders, $0, display) }
            } else {
                try configuration.withProxy(carriesOutDownloads: true, isWanted: isWanted) { proxy in
                    if configuration.isOffline && proxy.processID == getpid() {
                        throw CacheAccessError(
                            "offline is set, so that no origin is asked: set it to false in the configuration file, or use --detach"
                        )
                    }
                    try PrefetchSession(proxy, display, placement, interruption).run(orders)
                }
            }
        } catch {
            if json { DownloadDisplay.tellAsJSON(error, mask) }
            throw error
        }
    }

    private func queue(_ orders: [DownloadOrder], _ access: any DownloadAccess, _ display: DownloadDisplay) throws {
        let reports = try access.add(orders)
        for report in reports {
            display.event(DownloadEvent(report))
            display.say("queued \(report.name)" + (report.state == .waiting ? "" : " (\(report.state.rawValue))"))
        }
        guard !access.isFetching else { return }
        display.say(
            "no proxy runs: \(reports.count == 1 ? "this download begins" : "these \(reports.count.grouped) downloads begin") when one is started, or with reelcache prefetch"
        )
    }
}
