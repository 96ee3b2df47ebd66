import Activity
import CachePolicy
import HTTPTransport

/// How to handle certain resources: an entry of `rules`.
public typealias ResourceRule = CachePolicy.ResourceRule
/// The query parameters that the cache key leaves out.
public typealias IgnoredParameters = CachePolicy.IgnoredParameters
/// How much of a resource to fetch beyond the bytes that players request.
public typealias FillMode = CachePolicy.FillMode
/// For whom a cache stores responses (RFC 9111 §1).
public typealias CacheMode = CachePolicy.CacheMode

/// The settings of a proxy. The defaults are those of `reelcache serve`.
public struct ProxyConfiguration: Sendable {
    static let libraryVersion = "0.1.0"

    /// The address to listen on: `host:port`, `[ipv6]:port`, or `:port` for all addresses, IPv4 and IPv6. Port 0 lets
    /// the system choose.
    public var listen = "127.0.0.1:7335"
    /// Names by which players reach the proxy, such as `tv.example`, besides its addresses and `localhost`. Requests
    /// for any other name are answered 421, because a hostile site could let its own name resolve to this machine.
    public var names: [String] = []
    /// The balancers in front of the proxy, as IP addresses and networks such as `10.0.0.0/24`. What they state about
    /// their clients is believed: `Forwarded`, `X-Forwarded-For` and the like, and PROXY headers. Reading the control
    /// interface then needs a token.
    public var trusted: [String] = []
    /// Whether connections from `trusted` addresses begin with a header of the PROXY protocol, version 1 or 2.
    public var expectsProxyHeader = false
    /// How long running responses may take to end when `reelcache serve` is told to stop: up to a day.
    public var drainTime = Duration.seconds(5)
    /// The most connections of clients, beyond which they are answered 503: 1 to 1,000,000; nil for as many as there
    /// are files and sockets for, beyond which they wait.
    public var maxConnections: Int?
    /// The most connections of one client, or the most running requests of one behind a balancer that speaks HTTP: 1 to
    /// 1,000,000. Beyond, they are answered 429. Nil for no limit.
    public var maxConnectionsPerClient: Int?
    /// How many requests a client may send: `100/s`, `600/min`, `5000/h`. Beyond, they are answered 429. Nil for no
    /// limit.
    public var maxRequestsPerClient: String?
    /// The cache directory. It is created if it does not exist.
    public var cacheDirectory = Self.defaultCacheDirectory
    /// The most disk space that the cache uses, in bytes, index included. At least 16 MB.
    public var maxSize: Int64 = 20_000_000_000
    /// The disk space to keep free, in bytes.
    public var minFree: Int64 = 1_000_000_000
    /// The most memory for responses that are not media, such as errors and redirects, in bytes; with 0, none is
    /// stored.
    public var maxShortResponses: Int64 = 4 << 20
    /// Private origins that the proxy may fetch from: host names, IP addresses, or networks such as `192.168.1.0/24`.
    public var allow: [String] = []
    /// Paths of the proxy that stand for origins: `["/tv/": "https://origin.example/vod/"]` serves
    /// `https://origin.example/vod/a.mp4` as `/tv/a.mp4`. Both end with `/`.
    public var mounts: [String: String] = [:]
    /// For whom the cache stores what is below these mounts, by their paths, where that differs from `cache`. It holds
    /// for the URLs of the mount, in whatever form they are requested.
    public var mountCaches: [String: CacheMode] = [:]
    /// For whom the cache stores responses; nil for `shared` if only mounts are served (`servesAnyOrigin`), otherwise
    /// `private`.
    public var cache: CacheMode?
    /// How long a response is fresh if its origin states no lifetime, up to ten years; nil for ten minutes in a private
    /// cache, and none in a shared one. Playlists and feeds get none.
    public var defaultTTL: Duration?
    /// The fields that a shared cache obeys in place of `Cache-Control` and `Expires`, the first before the others (RFC
    /// 9213). Their names end with `-Cache-Control`.
    public var targetedFields = ["CDN-Cache-Control"]
    /// Whether players may name any origin, with `/https/host/path` or by using the proxy as their `http_proxy`. If
    /// false, the proxy serves mounts only.
    public var servesAnyOrigin = true
    /// Whether players that use the proxy as their `http_proxy` can reach https origins through it with CONNECT. Such
    /// tunnels are encrypted end to end, so nothing in them is cached.
    public var tunnels = false
    /// The ports that CONNECT may reach.
    public var tunnelPorts = [443]
    /// The largest body of a request through a mount, in bytes; nil for no limit. Bodies stream through and are not
    /// stored.
    public var largestMountBody: Int64?
    /// Never contact an origin: cached bytes play even where the origin asked for revalidation, and everything else is
    /// answered 504. Downloads wait, also those of what is cached.
    public var isOffline = false
    /// Whether pinned and downloaded resources play while their origin is unreachable or no longer has them, even if
    /// the origin forbids that (`no-cache`, `must-revalidate`).
    public var playsPinned = true
    /// How much to fetch beyond the bytes that players request, unless a rule says otherwise.
    public var fill = FillMode.ahead(bytes: 32 << 20)
    /// How many segments of an HLS or DASH stream to prefetch beyond the one that a player reads, unless a rule says
    /// otherwise: 0 to 20. With a `fill` of `read`, none are.
    public var aheadSegments = 3
    /// Whether to download the next item of a feed, list or numbered series when a player has read three quarters of
    /// one, unless a rule says otherwise. Never on a metered connection. The download is not pinned.
    public var prefetchesNext = false
    /// Whether to serve fresh responses from the cache even if the player asks to bypass it (`no-cache`, `max-age=0`),
    /// unless a rule says otherwise. Nil does so for segments named by a playlist, whose content does not change.
    public var ignoresReload: Bool?
    /// How long a transfer goes on after its last reader has disconnected, up to ten minutes: players reconnect when
    /// they seek.
    public var linger = Duration.seconds(5)
    /// The time limit for connecting to an origin, with name lookup and TLS handshake: one second to ten minutes.
    public var connectTimeout = Duration.seconds(10)
    /// How long a transfer may go without receiving a byte before it fails: one second to one hour.
    public var stallTimeout = Duration.seconds(30)
    /// The most transfers from origins at the same time, 1 to 4096, not counting paused ones. Players go before
    /// downloads.
    public var maxFetches = 256
    /// The most transfers from one host at the same time, 1 to 4096.
    public var maxFetchesPerHost = 64
    /// The most memory for bytes that wait for clients and origins: answers that are not stored, bodies of requests,
    /// what is not on the disk yet. At least 4 MiB; nil for a sixteenth of the machine's memory, 16 MB to 24 MB.
    public var maxBuffered: Int64?
    /// The most downloads at the same time, 1 to 64.
    public var maxDownloads = 3
    /// The rate limit of all downloads together, in bytes per second; nil for no limit. Players are not limited.
    public var downloadRate: Int64?
    /// When downloads run, in local time, and at what rate: windows of the week such as `01:00-06:30=unlimited`,
    /// `Sat,Sun 08:00-12:00=2MB` and `else=500kB`, or `off` for no downloads. The first window that contains a time
    /// counts; without `else`, nothing is downloaded outside of all windows. Empty for no schedule. The lower of its
    /// rate and `downloadRate` applies.
    public var downloadSchedule: [String] = []
    /// The most bytes that downloads may fetch from origins in each day and month of local time: `2GB/day`,
    /// `40GB/month`. Downloads then wait until the period has ended. Empty for no cap.
    public var downloadCaps: [String] = []
    /// How long a download is retried whose origin cannot be reached or is too busy, until it fails for good: up to 90
    /// days; zero for three attempts. What would fail again, such as 404, is not retried.
    public var downloadRetryTime = Duration.seconds(7 * 86400)
    /// Other caches of this kind that are asked before the origin, unless a rule says otherwise: `http://host:port`, up
    /// to 64. Each resource has one of them; if that one does not answer, the next is asked, and at last the origin.
    public var parents: [String] = []
    /// An HTTP or SOCKS proxy through which origins are reached: `http://[user:password@]host:port`, or the same with
    /// `socks5h`. It looks up their names, so that the addresses of origins cannot be checked. Parents are reached
    /// directly. Nil to connect to origins.
    public var upstreamProxy: String?
    /// Hosts that are reached without `upstreamProxy`: names, which stand for all names below them, too; addresses; and
    /// networks such as `10.0.0.0/8`.
    public var upstreamProxyExceptions: [String] = []
    /// How to handle certain resources. The first matching rule that sets an effect decides it.
    public var rules: [ResourceRule] = []
    /// Programs that find the media behind pages. The first that matches a URL is run.
    public var resolvers: [MediaResolver] = []
    /// A program and its arguments, to be run when a download has completed, and when one has failed for good; empty
    /// for none. It runs without a shell, and learns from its environment what has ended (`DOWNLOAD_URL`,
    /// `DOWNLOAD_TITLE`, `DOWNLOAD_REASON` and others, as in `docs/guide/configuration.md`).
    public var onCompleted: [String] = [], onFailed: [String] = []
    /// Origins of web pages that may read every response of the proxy and learn what is cached, such as
    /// `https://player.example`. Pages of other sites may only read media of public origins.
    public var webOrigins: [String] = []
    /// More query parameters whose values are secret, with `*` for any run of characters. Logs and listings show `***`
    /// in their place, as they do for the names listed in `docs/guide/security.md`.
    public var secretParameters: [String] = []
    /// The number of event loops, each on a thread of its own; nil for one per core.
    public var threads: Int?
    /// A PEM file of certificates to trust in place of the system's, for https origins.
    public var certificateFile: String?
    /// A file for the access log, one line per request; `-` for standard output, nil for no log.
    public var accessLog: String?
    /// The form of its lines.
    public var accessLogFormat = AccessLogFormat.json
    /// How cached bytes get from the page cache to the socket: `mapping` or `sendfile`. For measurements;
    /// `docs/dev/performance.md` compares them.
    public var transmission = "mapping"

    /// The defaults of `reelcache serve`.
    public init() {}

    /// The URL at which such a proxy can be reached; nil if the system chooses the port or `listen` is invalid.
    package var baseURL: String? {
        guard let address = ListenAddress(listen), address.port != 0 else { return nil }
        return "http://\(address.reachable)"
    }

    /// `$XDG_CACHE_HOME/reelcache`, else `~/.cache/reelcache`.
    public static var defaultCacheDirectory: String {
        HomeDirectory.directory("XDG_CACHE_HOME", orElse: ".cache") + "/reelcache"
    }

    /// The value of `accessLog` that stands for standard output.
    package static let standardOutput = "-"

    package static let leastBuffered = ProxyMetrics.Transit.leastLimit
    package static let fetchesRange = 1...4096
    package static let aheadSegmentsRange = 0...ResolvedRule.mostAheadSegments
    package static let defaultTTLRange = Duration.zero ... .seconds(315_360_000)
    package static let connectionsRange = 1...1_000_000
    package static let drainTimeRange = Duration.zero ... .seconds(86400)
    package static let downloadRetryRange = Duration.zero ... .seconds(90 * 86400)
    package static let lingerRange = Duration.zero ... .seconds(600)
    package static let connectTimeoutRange = Duration.seconds(1) ... .seconds(600)
    package static let stallTimeoutRange = Duration.seconds(1) ... .seconds(3600)
}
