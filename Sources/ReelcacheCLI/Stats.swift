import Activity
import Administration
import ArgumentParser
import ControlAPI
import Downloads
import Foundation
import Reelcache

struct Stats: JSONCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the counters of the running proxy.",
        discussion: """
            They begin at zero when the proxy starts. With --watch, prints a line with the rates of each interval, until \
            Ctrl-C.

              reelcache stats
              reelcache stats --json
              reelcache stats --watch 5
            """)

    @Flag(help: "Print the JSON of GET /stats.")
    var json = false
    @Flag(help: "Print a line with rates at each interval.")
    var watch = false
    @Argument(help: "With --watch, the interval in seconds, 1 to 3600. (default: 1)")
    var seconds: Int?
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard !(watch && json) else { throw ValidationError("--watch prints lines for people: leave out --json") }
        guard let seconds else { return }
        guard watch else { throw ValidationError("the interval \(seconds) is for --watch: write --watch \(seconds)") }
        guard (1...3600).contains(seconds) else {
            throw ValidationError("the interval is 1 to 3600 seconds, not \(seconds)")
        }
    }

    func run() throws {
        let proxy = try cache.runningProxy()
        if watch { return try Watch(proxy).run(every: seconds ?? 1) }
        guard !json else { return print(String(decoding: try proxy.get("/stats"), as: UTF8.self), terminator: "") }
        let text = StatsText(
            try proxy.stats(), try proxy.downloads(limit: 1).summary, baseURL: proxy.baseURL, width: Terminal.width)
        print(text.lines.joined(separator: "\n"))
    }
}

extension Stats {
    /// Prints a line with the rates of each interval.
    private struct Watch {
        private let proxy: RunningProxy
        /// The header stands again above so many lines.
        private static let linesPerHeader = 20

        init(_ proxy: RunningProxy) { self.proxy = proxy }

        /// Ends at SIGINT or SIGTERM.
        /// - Throws: if the proxy has stopped.
        func run(every seconds: Int) throws {
            let signals = Signals()
            // Ends with the reader of a pipe.
            signal(SIGPIPE, SIG_DFL)
            StandardOutput.useLines()
            var before = try look().stats
            for number in 0... {
                if number % Self.linesPerHeader == 0 { print(StatsRates.header(width: Terminal.width)) }
                while true {
                    guard let event = signals.wait(seconds: seconds) else { break }
                    if case .stop = event { return }
                }
                let (now, downloads) = try look()
                print(StatsRates(from: before, to: now, downloads).line(width: Terminal.width))
                before = now
            }
        }

        private func look() throws -> (stats: StatsSnapshot, downloads: DownloadTotals) {
            do { return (try proxy.stats(), try proxy.downloads(limit: 1).summary) } catch {
                guard (try? proxy.get("/healthz")) == nil else { throw error }
                throw ControlError("the proxy at \(proxy.baseURL) has ended")
            }
        }
    }
}

private extension RunningProxy {
    func stats() throws -> StatsSnapshot {
        let data = try get("/stats")
        guard let stats = try? StatsJSON.read(data) else { throw client.refusal(200, [], "/stats") }
        return stats
    }
}
