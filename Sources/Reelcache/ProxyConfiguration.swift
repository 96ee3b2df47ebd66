import CachePolicy
import HTTPTransport

/// How a proxy works. The defaults are those of `reelcache serve`.
public struct ProxyConfiguration: Sendable {
    /// Where to listen: `host:port`, `[ipv6]:port`, or `:port` for all addresses. Port 0 lets the system choose.
    public var listen = "127.0.0.1:7335"
    /// Names by which players reach the proxy, such as `tv.example`, besides its addresses and `localhost`. To other
    /// names the answer is 421: a page of another site could have its own name resolve to this machine.
    public var names: [String] = []
    /// The cache directory; made where it is missing.
    public var cacheDirectory = Self.defaultCacheDirectory
    /// Bytes that the cache takes on the disk at the most, its index included. At least 16 MB.
    public var maxSize: Int64 = 20_000_000_000
    /// Bytes that always stay free on the disk.
    public var minFree: Int64 = 1_000_000_000
    /// Private origins that may be fetched from: host names, IP addresses, or networks such as `192.168.1.0/24`.
    public var allow: [String] = []
    /// Places of the proxy's own at which the resources of origins are: `["/tv/": "https://origin.example/vod/"]`
    /// serves `https://origin.example/vod/a.mp4` as `/tv/a.mp4`. Places and URLs end with `/`.
    public var mounts: [String: String] = [:]
    /// Whether players may name any origin, by `/https/host/path` or as their `http_proxy`; else only what is mounted
    /// is served.
    public var servesAnyOrigin = true
    /// Whether players that take the proxy as their `http_proxy` reach https origins through it by CONNECT. What passes
    /// there is not cached.
    public var tunnels = false
    /// The ports to which they do.
    public var tunnelPorts = [443]
    /// Bytes that the body of a request through a mount may have; nil for any number. Bodies stream through, and take
    /// no room here.
    public var largestMountBody: Int64?
    /// Never asks an origin: what is cached plays, whatever its origin said of that, and for the rest the answer is
    /// 504.
    public var isOffline = false
    /// Whether what somebody has pinned or downloaded plays while its origin cannot be reached, although the origin
    /// forbade that (`no-cache`, `must-revalidate`).
    public var playsPinned = true
    /// How much is fetched beyond what is asked for, where no rule says otherwise.
    public var fill = FillMode.ahead(bytes: 32 << 20)
    /// How many segments of an HLS or DASH stream are fetched after the one that a player reads, before it asks for
    /// them, where no rule says otherwise: 0 to 20. None with a `fill` of `read`.
    public var aheadSegments = 3
    /// Whether a player that wants what is fresh to be asked for again (`no-cache`, `max-age=0`) gets it as it is, where
    /// no rule says otherwise; nil: only segments that a playlist names, as their content does not change.
    public var ignoresReload: Bool?
    /// How long a transfer is kept after its last reader has left, up to ten minutes: players reconnect when they seek.
    public var linger = Duration.seconds(5)
    /// How long looking up an origin's name, connecting and shaking hands may take, a second to ten minutes.
    public var connectTimeout = Duration.seconds(10)
    /// After how long without a byte a transfer is given up, a second to an hour.
    public var stallTimeout = Duration.seconds(30)
    /// How many transfers from origins run at once, 1 to 4096; those that are paused do not count. Who plays goes
    /// before downloads.
    public var maxFetches = 256
    /// How many of them from one host, 1 to 4096.
    public var maxFetchesPerHost = 64
    /// How many downloads run at once, 1 to 64.
    public var maxDownloads = 3
    /// Bytes per second of all downloads together; nil for no limit. What players read does not count.
    public var downloadRate: Int64?
    /// How some resources are handled: each effect is that of the first rule that matches and names it.
    public var rules: [ResourceRule] = []
    /// Origins of pages that may read all that the proxy gives them, and learn what is cached, such as
    /// `https://player.example`. Pages of other sites may read media of public origins.
    public var webOrigins: [String] = []
    /// Names of further query parameters whose values are secrets, with `*` for any run of characters: logs and
    /// listings show `***` for them, as for those that `docs/dev/security.md` lists.
    public var secretParameters: [String] = []
    /// Event loops, each with a thread; nil for one for each core.
    public var threads: Int?
    /// A file of certificates (PEM) to trust instead of the system's, for origins over https.
    public var certificateFile: String?
    /// The access log: a file that gets a line of JSON for each request, as `docs/guide/http-api.md` describes it; `-`
    /// for standard output, nil for none.
    public var accessLog: String?
    /// How cached bytes go from the page cache to the socket: `mapping` or `sendfile`. For measuring;
    /// `docs/dev/performance.md` compares them.
    public var transmission = "mapping"

    /// The defaults of `reelcache serve`.
    public init() {}

    /// Where a proxy that works like this can be reached; nil where only the system will know the port, or `listen`
    /// cannot work.
    package var baseURL: String? {
        guard let address = ListenAddress(listen), address.port != 0 else { return nil }
        return "http://\(address.reachable)"
    }

    /// `$XDG_CACHE_HOME/reelcache`, else `~/.cache/reelcache`.
    public static var defaultCacheDirectory: String {
        HomeDirectory.directory("XDG_CACHE_HOME", orElse: ".cache") + "/reelcache"
    }

    /// What `accessLog` is for standard output.
    package static let standardOutput = "-"

    package static let fetchesRange = 1...4096
    package static let aheadSegmentsRange = 0...ResolvedRule.mostAheadSegments
    package static let lingerRange = Duration.zero ... .seconds(600)
    package static let connectTimeoutRange = Duration.seconds(1) ... .seconds(600)
    package static let stallTimeoutRange = Duration.seconds(1) ... .seconds(3600)
}
