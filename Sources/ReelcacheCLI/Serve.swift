import ArgumentParser
import CLinux
import CachePolicy
import Configuration
import HTTPModel
import Logging
import Reelcache

struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the proxy until it receives SIGINT or SIGTERM.",
        discussion: """
            Players reach any http or https URL through the proxy:

              reelcache serve --max-size 100GB
              mpv http://127.0.0.1:7335/https/example.org/film.mp4

            To serve a network, serve mounts only:

              reelcache serve --listen :7335 --no-any-origin \\
                --mount /tv/=https://origin.example/vod/

            Each option is also a key of the configuration file (max_size) and an environment variable (REELCACHE_MAX_SIZE). \
            Flags override variables, and variables override the file. On SIGHUP the proxy reads the file again. On \
            SIGTERM it gives running responses the drain time to end. If systemd passes a socket, it serves on that.
            """)

    @OptionGroup var options: ServeOptions
    @Option(help: .hidden)
    var transmission = ProxyConfiguration().transmission

    func run() throws {
        // As many bytes at once, such as the parts of a long playlist, go back to the system when they are free. The
        // allocator would raise the limit to what was freed last, and keep them.
        mallopt(M_MMAP_THRESHOLD, 1 << 20)
        let sources = options.cache.sources(options.flags)
        var settings = try sources.read()
        settings.proxy.transmission = transmission
        let logLevel = AdjustableLogLevel(settings.logLevel)
        let logger = logLevel.logger(label: "reelcache")
        let signals = Signals()
        let proxy = try Proxy.start(asService: settings.proxy, logger: logger)
        let running = RunningSettings(settings, from: sources, proxy: proxy, logLevel: logLevel)
        StandardOutput.useLines()
        print(
            "Reelcache \(Proxy.version) serves at \(proxy.baseURL), cache in \(settings.proxy.cacheDirectory) (at most \(ByteSize(bytes: settings.proxy.maxSize)))"
        )
        ServiceManager.notifyReady()
        let others = proxy.urlsForOthers.filter { $0 != proxy.baseURL }
        if !others.isEmpty { print("Other machines reach it at \(others.joined(separator: ", "))") }
        if settings.proxy.mounts["/"] != nil { print("Its status page is \(proxy.baseURL)/api/") }
        if settings.proxy.servesAnyOrigin {
            print("To play through it: mpv \(proxy.baseURL)/https/HOST/PATH")
        }
        for (path, url) in settings.proxy.mounts.sorted(by: { $0.key < $1.key }) {
            print("Mounted: \(proxy.baseURL)\(path) is \(try settings.proxy.mask.masked(url))")
        }
        while true {
            switch signals.wait(seconds: 60) {
            // Freed memory lies scattered between memory in use, and the allocator would keep it: after hours, several
            // times as much as is needed.
            case nil: malloc_trim(0)
            case .reload: running.reload()
            case .stop(let signal, let isInHurry):
                logger.info("stopping: \(signal)")
                signals.onRepetition { proxy.hurry() }
                return try Self.stop(proxy, within: running.current.proxy.drainTime, isInHurry: isInHurry)
            }
        }
    }

    /// Of balancers that don't check this proxy, it knows nothing: within so much without a request, they send no more.
    private static let quietTime = Duration.seconds(2)

    private static func stop(_ proxy: Proxy, within drainTime: Duration, isInHurry: Bool) throws {
        ServiceManager.notifyStopping(within: drainTime)
        let quiet = proxy.hasDistantClients ? min(drainTime, quietTime) : .zero
        try proxy.stop(grace: drainTime, quiet: isInHurry ? nil : quiet)
    }
}
