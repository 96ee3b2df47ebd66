import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Reelcache

struct FeedsCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check feeds for new episodes now.",
        discussion: """
            With a running proxy, new episodes are queued there. Without one, this command downloads them, and what was left in the \
            queue, and ends when all is done, or waits for the schedule or a cap: a timer can run it.

              reelcache feeds check
              reelcache feeds check https://example.org/podcast.xml
            """)

    @Argument(
        help: "A feed: its number in the list, a part of its title, or its URL. (default: all)",
        completion: .known(.feeds))
    var url: String?
    @OptionGroup var allowing: AllowOptions
    @Flag(help: "Print a line of JSON for each feed, and for each change of a download.")
    var json = false
    @Flag(name: .shortAndLong, help: "Print errors only.")
    var quiet = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func run() throws {
        try DownloadDisplay.run(isJSON: json, isQuiet: quiet, secret, allowing.applied(to: try cache.configuration)) {
            display, configuration in
            let interruption = Interruption()
            try configuration.withProxy(for: .downloading, isWanted: { !interruption.isRequested }) { proxy in
                // What is queued may fail at once.
                let endedBefore = try proxy.history().reduce(into: [Int64: Date?]()) {
                    $0[$1.id] = .some($1.finished)
                }
                proxy.own?.cache.downloader.start()
                let checks = try check(proxy, try url.map({ try proxy.feedURL($0) }), display, interruption)
                let failed = checks.count { $0.outcome == .failed }
                // A proxy that runs for itself continues by itself.
                let downloadsFail =
                    try proxy.endsWithACommand && !configuration.isOffline
                    && !download(proxy, configuration, endedBefore: endedBefore, display, interruption)
                if failed > 0 || downloadsFail {
                    throw ExitCode(failed == checks.count && failed > 0 ? 1 : 3)
                }
            }
        }
    }

    private func check(
        _ proxy: RunningProxy, _ url: OriginURL?, _ display: DownloadDisplay, _ interruption: Interruption
    ) throws -> [FeedCheckResult] {
        let checks = try proxy.checkFeeds(url) { !interruption.isRequested }
        for check in checks {
            display.event("check", check)
            if check.outcome == .failed { display.warn(check.line) } else { display.say(check.line) }
        }
        if checks.isEmpty { display.say("no feeds: subscribe with reelcache feeds add URL") }
        return checks
    }

    /// Waits for the downloads of all feeds, also those that were left in the queue. Those that the schedule or a cap
    /// holds back stay there.
    /// - Parameter endedBefore: the downloads that had ended when the command began, and when they had: others may have
    ///   ended since, or have been retried.
    /// - Returns: whether all that might run have completed.
    private func download(
        _ proxy: RunningProxy, _ configuration: ProxyConfiguration, endedBefore: [Int64: Date?],
        _ display: DownloadDisplay, _ interruption: Interruption
    ) throws -> Bool {
        let open = try proxy.downloads().downloads.filter { $0.feed != nil && $0.state != .paused }
        let known = Set(open.map(\.id))
        let ended = try proxy.history().filter {
            $0.feed != nil && $0.state != .cancelled && !known.contains($0.id)
                && endedBefore[$0.id] != .some($0.finished)
        }
        do {
            try PrefetchSession(
                proxy, display, nil, interruption, successor: configuration, pausesAtEnd: false, leavesHeld: true
            ).follow(ended.reversed() + open)
        } catch is ExitCode {
            return false
        }
        return true
    }
}
