import DiskCache
import Reelcache

extension Setting {
    /// All that can be set. Flags, environment, file, `config show` and SIGHUP go by this table.
    package static let all: [Setting] = [
        Setting(
            "listen", .listenAddress, at: \.proxy.listen,
            "Where to listen: HOST:PORT, [IPV6]:PORT, or :PORT for all addresses."),
        Setting(
            listOf: .hostName, "names", flag: "name", at: \.proxy.names,
            "A name by which players reach this proxy, besides its addresses and localhost, such as tv.example.",
            standard: "none"),
        Setting(
            "cache_dir", .path, at: \.proxy.cacheDirectory, "The cache directory; made where it is missing.",
            standard: "$XDG_CACHE_HOME/reelcache, else ~/.cache/reelcache"),
        Setting(
            "max_size", .size(atLeast: CapacityLedger.smallestLimit), at: \.proxy.maxSize,
            "What the cache may take on the disk, such as 20GB or 500MiB; at least 16MB.",
            reload: { try $0.cache.setLimits(maxSize: $1.proxy.maxSize) }),
        Setting(
            "min_free", .size(atLeast: 0), at: \.proxy.minFree, "What always stays free on the disk.",
            reload: { try $0.cache.setLimits(minFree: $1.proxy.minFree) }),
        Setting(
            listOf: .privateOrigin, "allow", at: \.proxy.allow,
            "A private origin that may be fetched from: a host name, an address, or a network such as 192.168.1.0/24.",
            standard: "none",
            reload: { try $0.cache.setAllow($1.proxy.allow) }),
        Setting(
            "mounts", .mounts, at: \.proxy.mounts,
            "A place of the proxy's own with the URL that is mounted there: /tv/=https://origin.example/vod/ (both end with /).",
            standard: "none",
            isPolicy: true),
        Setting(
            "any_origin", .bool, at: \.proxy.servesAnyOrigin,
            "Whether players may name any origin, by /https/HOST/PATH or as their http_proxy; else only what is mounted is served.",
            isPolicy: true),
        Setting(
            "tunnel", .bool, at: \.proxy.tunnels,
            "Let players that take the proxy as their http_proxy reach https origins by CONNECT. Nothing of that is cached.",
            isPolicy: true),
        Setting(
            listOf: .number(in: 1...65535), "tunnel_ports", flag: "tunnel-port", at: \.proxy.tunnelPorts,
            "A port to which CONNECT may lead; 1 to 65535.",
            isPolicy: true),
        Setting(
            optional: .size(atLeast: 0), "max_body", at: \.proxy.largestMountBody,
            "What the body of a request through a mount may have at most, such as 100MB.",
            standard: "any size", isPolicy: true),
        Setting(
            "offline", .bool, at: \.proxy.isOffline, "Never ask an origin: play what is cached, and nothing else.",
            isPolicy: true),
        Setting(
            "play_pinned", .bool, at: \.proxy.playsPinned,
            "Whether what is pinned or was downloaded plays when its origin cannot be reached, even if the origin forbids that (no-cache).",
            isPolicy: true),
        Setting(
            "fill", .fill, at: \.proxy.fill,
            "How much to fetch beyond what is asked for: read (nothing), ahead SIZE, end or whole.",
            isPolicy: true),
        Setting(
            "ahead_segments", .number(in: ProxyConfiguration.aheadSegmentsRange), at: \.proxy.aheadSegments,
            "How many segments of a stream to fetch after the one that a player reads; 0 to 20.",
            isPolicy: true),
        Setting(
            optional: .bool, "ignore_reload", at: \.proxy.ignoresReload,
            "Whether what is fresh answers although a player wants it asked for again (no-cache).",
            standard: "only segments that a playlist names", isPolicy: true),
        Setting(
            "max_downloads", .number(in: ProxyConfiguration.maxDownloadsRange), at: \.proxy.maxDownloads,
            "How many downloads run at once; 1 to 64.",
            reload: { try $0.cache.setMaxDownloads($1.proxy.maxDownloads) }),
        Setting(
            "download_rate", .rate, at: \.proxy.downloadRate,
            "Bytes per second of all downloads together, such as 2MB, or none for no limit.",
            reload: { try $0.cache.setDownloadRate($1.proxy.downloadRate) }),
        Setting(
            "linger", .time(in: ProxyConfiguration.lingerRange), at: \.proxy.linger,
            "How long a transfer is kept after its last reader has left; 0s to 10m."),
        Setting(
            "connect_timeout", .time(in: ProxyConfiguration.connectTimeoutRange), at: \.proxy.connectTimeout,
            "How long reaching an origin may take; 1s to 10m."),
        Setting(
            "stall_timeout", .time(in: ProxyConfiguration.stallTimeoutRange), at: \.proxy.stallTimeout,
            "After how long without a byte a transfer is given up; 1s to 1h."),
        Setting(
            "max_fetches", .number(in: ProxyConfiguration.fetchesRange), at: \.proxy.maxFetches,
            "How many transfers from origins run at once; 1 to 4096."),
        Setting(
            "max_fetches_per_host", .number(in: ProxyConfiguration.fetchesRange), at: \.proxy.maxFetchesPerHost,
            "How many transfers from one host run at once; 1 to 4096."),
        Setting(
            listOf: .webOrigin, "web_origins", flag: "web-origin", at: \.proxy.webOrigins,
            "The origin of a page that may read all that the proxy gives it, and learn what is cached, such as https://player.example.",
            standard: "none",
            isPolicy: true),
        Setting(
            listOf: .parameterPattern, "secret_parameters", flag: "secret-parameter", at: \.proxy.secretParameters,
            "A query parameter whose value is a secret: *** in logs and listings, as for those that docs/dev/security.md lists.",
            standard: "none besides those",
            isPolicy: true),
        Setting(
            optional: .number(in: 1...256), "threads", at: \.proxy.threads,
            "Event loops, each with a thread; 1 to 256.",
            standard: "one for each core"),
        Setting(
            optional: .path, "ca_file", at: \.proxy.certificateFile,
            "A PEM file of certificates to trust instead of the system's.",
            standard: "the system's"),
        Setting(
            "log_level", .logLevel, at: \.logLevel, "trace, debug, info, notice, warning, error or critical.",
            reload: { $0.logLevel.current = $1.logLevel }),
        Setting(
            optional: .output, "access_log", at: \.proxy.accessLog,
            "A file that gets a line of JSON for each request, or - for standard output.", standard: "no log",
            reload: { try $0.cache.setAccessLog($1.proxy.accessLog) }),
        Setting(
            "player", .player, at: \.player,
            "The program that reelcache play opens a URL with: its name or path, or in the file a list such as [mpv, --fs].",
            standard: "mpv, vlc or ffplay, the first that is installed", command: "play"),
        Setting(
            "rules", .rules, at: \.proxy.rules, "How resources of some hosts and paths are handled.", standard: "none",
            isPolicy: true),
    ]

    private static let byKey = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })

    /// The one of that key.
    package static subscript(_ key: String) -> Setting? { byKey[key] }
}
