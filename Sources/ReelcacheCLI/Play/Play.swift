import Activity
import Administration
import ArgumentParser
import CLinux
import CachePolicy
import Configuration
import ControlAPI
import Foundation
import Logging
import Reelcache

struct Play: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Play a URL through the cache with mpv, VLC or ffplay.",
        discussion: """
            Uses the running proxy if there is one, and otherwise a Reelcache of someone else at the same address, such as that of \
            the household. If there is none, it runs one, with the settings of serve, for as long as the player runs. \
            If other clients are connected to that one when the player ends, it runs until they disconnect, or until Ctrl-C.

            Arguments after -- are passed to the player. The exit code is the player's, or 128 + n if signal n ended it.

              reelcache play https://example.org/film.mp4
              reelcache play https://example.org/film.mp4 -- --fs --start=50%
              reelcache play --feed "history of rome"
              reelcache play --player vlc https://example.org/film.m3u8
              reelcache play --prefetch-next https://example.org/show-s01e01.mp4
            """)

    @Argument(help: "The media URL, as its origin has it or as players open it.", completion: .known(.urls))
    var url: String?
    @Argument(parsing: .postTerminator, help: "Arguments for the player.")
    var arguments: [String] = []
    @Option(
        help: ArgumentHelp(
            "Open the URL with this player: the name or path of a program. (default: mpv, vlc or ffplay, the first that is installed)",
            valueName: "program"),
        completion: .list(PlayerProgram.known))
    var player: String?
    @Option(
        help: ArgumentHelp(
            "Play the newest downloaded episode of this feed: a part of its title, its number in the list, or its URL.",
            valueName: "feed"), completion: .known(.feeds))
    var feed: String?
    @Option(
        help: ArgumentHelp(
            "Without a running proxy, listen on this address: HOST:PORT, with port 0 for any free port. (default: 127.0.0.1:7335)",
            valueName: "host:port"))
    var listen: String?
    @Option(
        help: ArgumentHelp(
            "Without a running proxy, allow this private origin, such as nas.local. May be repeated.",
            valueName: "host|cidr"))
    var allow: [String] = []
    @Flag(
        help:
            "Download the next episode, file of a list, or number of a series when most of this one was played, whatever the setting prefetch_next says."
    )
    var prefetchNext = false
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard (url == nil) != (feed == nil) else {
            throw ValidationError(url == nil ? "write the URL to play, or --feed" : "write either a URL or --feed")
        }
        try sources.validateFlags()
    }

    private var sources: SettingSources {
        var flags = ["player": player, "listen": listen].compactMapValues { $0.map { [$0] } }
        if !allow.isEmpty { flags["allow"] = allow }
        return cache.sources(flags)
    }

    func run() throws {
        var settings = try sources.read()
        // As with other commands, --allow adds to what the file allows.
        if !allow.isEmpty { settings.proxy.allow = try cache.configuration.allow + allow }
        let environment = ProcessInfo.processInfo.environment
        let program = try PlayerProgram(settings.player, searchPath: environment["PATH"])
        let signals = ForegroundSignals()
        do {
            let code = try settings.proxy.withProxy(
                isWanted: { !signals.isEndRequested },
                startedBy: { try Proxy(settings.proxy, logger: Self.logger(settings)) }
            ) { proxy in
                let origin = try feed.map(proxy.newestEpisode) ?? proxy.url(url ?? "")
                if prefetchNext { Self.prefetchNext(after: origin, proxy) }
                let url = try settings.proxy.url(for: origin.absolute, through: proxy.baseURL)
                let code = try play(url, through: proxy.baseURL, with: program, environment, signals)
                if let own = proxy.own { Self.waitForOthers(of: own, signals) }
                if prefetchNext, let own = proxy.own { Self.reportRest(of: own) }
                return code
            }
            if code != 0 { throw ExitCode(code) }
        } catch ProxyError.portInUse {
            // A Reelcache of the household, or of another user, plays just as well.
            guard let base = settings.proxy.baseURL, LocalProxy.answers(at: base) else {
                throw ControlError(
                    "another program uses \(settings.proxy.listen): choose another address with --listen, or find that program with reelcache doctor"
                )
            }
            guard let url else {
                throw ControlError("the proxy at \(base) is someone else's, whose feeds are not yours")
            }
            if prefetchNext {
                Terminal.writeError(
                    "reelcache: the proxy at \(base) is someone else's: its own setting prefetch_next decides about the next item"
                )
            }
            let address = url.hasPrefix(base + "/") ? url : try settings.proxy.url(for: url, through: base)
            let code = try play(address, through: base, with: program, environment, signals)
            if code != 0 { throw ExitCode(code) }
        }
    }

    /// Has the next item downloaded. The film plays even if the proxy does not do that, such as one of an earlier version.
    private static func prefetchNext(after url: OriginURL, _ proxy: RunningProxy) {
        do { try proxy.prefetchNext(after: url) } catch {
            Terminal.writeError("reelcache: the next item will not be downloaded: \(error)")
        }
    }

    /// Runs the player, and says why the proxy refused the URL if it did.
    /// - Returns: the player's exit code.
    private func play(
        _ url: String, through base: String, with program: PlayerProgram, _ environment: [String: String],
        _ signals: ForegroundSignals
    ) throws -> Int32 {
        let code = try play(url, with: program, environment, signals)
        if code != 0, code < 128, let refusal = LocalProxy.refusal(ofURL: url, from: base) {
            Terminal.writeError("reelcache: \(refusal)")
        }
        return code
    }

    private func play(
        _ url: String, with program: PlayerProgram, _ environment: [String: String], _ signals: ForegroundSignals
    ) throws -> Int32 {
        guard !signals.isEndRequested else { throw ControlError.interrupted }
        let host = URLComponents(string: url)?.host ?? "127.0.0.1"
        let player = try ForegroundProcess(
            program.path, program.arguments + arguments + [url],
            environment: PlayerProgram.environment(environment, host: host), signals: signals,
            orElse: "name another with --player")
        return player.waitForEnd()
    }

    /// Reports downloads that have not ended: they wait for the next proxy.
    private static func reportRest(of proxy: Proxy) {
        let count = proxy.cache.downloads.active.count
        guard count > 0 else { return }
        Terminal.writeError(
            "reelcache: \(count.of("download")) \(count == 1 ? "has" : "have") not ended: the next reelcache play or serve continues \(count == 1 ? "it" : "them")"
        )
    }

    /// Logs only warnings and errors unless a level is configured, because the player uses the terminal.
    private static func logger(_ settings: Settings) -> Logger {
        let isChosen = Setting["log_level"].map { settings.origin(of: $0) != .standard } ?? false
        return AdjustableLogLevel(isChosen ? settings.logLevel : .warning).logger(label: "reelcache")
    }

    // MARK: Other clients

    /// How often connections are counted, and how many times before others are reported: the event loops may not have
    /// noticed yet that the player's own are closed.
    private static let steps = (milliseconds: 50, ofPlayer: 20)

    /// Waits until all clients of this process's proxy have disconnected, or until a signal arrives.
    private static func waitForOthers(of proxy: Proxy, _ signals: ForegroundSignals) {
        var step = 0
        while case let count = proxy.counters[\.connections], count > 0 {
            if step == steps.ofPlayer {
                Terminal.writeError(
                    "reelcache: the player has ended; \(count.of("other connection")) to \(proxy.baseURL) \(count == 1 ? "is" : "are") open: "
                        + "the proxy ends when all are closed, or on Ctrl-C")
            }
            step = min(step, steps.ofPlayer) + 1
            if case .signal = signals.wait(milliseconds: steps.milliseconds) { return signals.allowInterrupt() }
        }
    }
}
