import ArgumentParser
import CachePolicy
import Foundation
import Logging
import Reelcache

struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the proxy until SIGINT or SIGTERM.")

    @Option(help: "Where to listen: HOST:PORT, [IPV6]:PORT, or :PORT for all addresses.")
    var listen = ProxyConfiguration().listen
    @OptionGroup var cache: CacheOptions
    @Option(help: "What the cache may take on the disk, such as 20GB or 500MiB; at least 16MB.")
    var maxSize = ByteSize(bytes: ProxyConfiguration().maxSize)
    @Option(help: "What always stays free on the disk.")
    var minFree = ByteSize(bytes: ProxyConfiguration().minFree)
    @Option(help: "A private origin that may be fetched from: a host name, an address, or a network such as 192.168.1.0/24. May be repeated.")
    var allow: [String] = []
    @Option(help: "Event loops, each with a thread. (default: one for each core)")
    var threads: Int?
    @Option(help: ArgumentHelp("A PEM file of certificates to trust instead of the system's.", valueName: "file"))
    var caFile: String?
    @Option(help: "trace, debug, info, notice, warning, error or critical.")
    var logLevel = Logger.Level.notice
    @Option(help: .hidden)
    var transmission = ProxyConfiguration().transmission

    func run() throws {
        var logger = Logger(label: "reelcache", factory: { StreamLogHandler.standardError(label: $0) })
        logger.logLevel = logLevel
        let signals = TerminationSignals()
        let proxy = try Proxy(configuration, logger: logger)
        StandardOutput.useLines()
        print("Reelcache \(Proxy.version) serves at \(proxy.baseURL), cache in \(cache.path) (at most \(maxSize))")
        print("Point a player at it, such as: mpv \(proxy.baseURL)/https/HOST/PATH")
        let signal = signals.wait()
        logger.info("stopping: \(signal)")
        try proxy.stop()
    }

    private var configuration: ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.listen = listen
        configuration.cacheDirectory = cache.path
        configuration.maxSize = maxSize.bytes
        configuration.minFree = minFree.bytes
        configuration.allow = allow
        configuration.threads = threads
        configuration.certificateFile = caFile
        configuration.transmission = transmission
        return configuration
    }
}

extension ByteSize: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
    package var defaultValueDescription: String { description }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
