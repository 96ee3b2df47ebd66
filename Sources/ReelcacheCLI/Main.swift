import ArgumentParser
import Reelcache

@main
struct Main: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reelcache",
        abstract: "A local cache for video and audio: players are pointed at it, and what they read once comes from the disk.",
        version: Proxy.version,
        subcommands: [Serve.self, URLCommand.self, Stats.self])

    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let error as ProxyError {
            Failure.exit(error.description)
        } catch {
            // Usage errors are 2 everywhere (DESIGN section 10); `--help` and `--version` are none.
            guard exitCode(for: error) != .success, !(error is ExitCode) else { exit(withError: error) }
            Failure.exit(fullMessage(for: error), code: 2, isPrefixed: true)
        }
    }
}

/// Where the cache is.
struct CacheOptions: ParsableArguments {
    @Option(name: .customLong("cache-dir"), help: "The cache directory. (default: $REELCACHE_CACHE_DIR, else $XDG_CACHE_HOME/reelcache)")
    var directory: String?

    var path: String { directory ?? Environment["REELCACHE_CACHE_DIR"] ?? ProxyConfiguration.defaultCacheDirectory }
}
