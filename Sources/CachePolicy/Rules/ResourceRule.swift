/// How to handle certain resources: an entry of `rules`.
///
/// A rule applies to resources whose host and path match. An effect that it leaves nil is decided by the next matching
/// rule, and finally by the default, so general rules come last.
///
/// ```swift
/// var rule = ResourceRule(hosts: ["*.example.org"])
/// rule.ignoredQuery = .parameters(["token", "expires"])
/// configuration.rules = [rule]
/// ```
public struct ResourceRule: Sendable, Equatable {
    /// Hosts, one of which must match: names or addresses, in which `*` stands for any run of characters, regardless of
    /// case, followed by `:port` to match that port only. An empty list matches all hosts.
    public var hosts: [String]
    /// Paths, one of which must match: they begin with `/` or `*`, and `*` stands for any run of characters, including
    /// `/`. They do not cover the query. An empty list matches all paths.
    public var paths: [String]
    /// Whether requests bypass the cache: responses are not stored, and stored ones are not used.
    public var bypass: Bool?
    /// How long a response stays fresh, in whole seconds, regardless of what the origin says.
    public var ttl: Duration?
    /// Whether to store responses even if the origin says `no-store`.
    public var ignoresNoStore: Bool?
    /// Whether stored responses play while the origin is unreachable, even if the origin forbids that. Nil allows it for
    /// pinned and downloaded resources, unless `ProxyConfiguration.playsPinned` is false.
    public var playsStale: Bool?
    /// Query parameters that do not distinguish resources, such as expiring tokens. Requests to the origin still carry
    /// all of them.
    public var ignoredQuery: IgnoredParameters?
    /// The cache key, an http or https URL with `{scheme}`, `{host}`, `{path}` and `{query}` for the parts of the
    /// requested URL: `https://cdn.example{path}` lets several hosts share one resource. `{query}` is the query without
    /// the `ignoredQuery` parameters.
    public var key: String?
    /// How much to fetch beyond the bytes that players request.
    public var fill: FillMode?
    /// Whether the connection is metered. Then nothing more is fetched after the player has disconnected, neither in
    /// case it comes back nor to the end, regardless of `fill`.
    public var isMetered: Bool?
    /// How many segments of an HLS or DASH stream to prefetch beyond the one that a player reads: 0 to 20. With a `fill`
    /// of `read`, or on a metered connection, none are.
    public var aheadSegments: Int?
    /// Whether to download the next item of a feed, list or numbered series when a player has read three quarters of
    /// one. On a metered connection, none is.
    public var prefetchesNext: Bool?
    /// Whether to serve fresh responses from the cache even if the player asks to bypass it (`no-cache`, `max-age=0`).
    public var ignoresReload: Bool?
    /// Header fields to send to the origin, by name; they replace the player's. They are never sent to another origin
    /// after a redirect.
    public var headers: [String: String]?
    /// The path of a cookie file in Netscape's form, as yt-dlp and curl write it. Its cookies go to the origins for
    /// which they are, as those do that an origin sets: for players that name origins by the proxy, and for downloads;
    /// not from a shared cache, nor for pages of other sites.
    public var cookies: String?
    /// The greatest height of a picture that HLS and DASH playlists offer, such as 720 for 1280x720: better renditions
    /// are left out, unless all are better. Downloads of the best picture choose among the rest.
    public var maxHeight: Int?
    /// The same by the bit rate, in bits per second.
    public var maxBitrate: Int64?
    /// Whether to pin the stored resource.
    public var pin: Bool?
    /// Whether to store web pages that arrive in place of media, such as the login page of a captive portal.
    public var storesPages: Bool?
    /// The largest resource to store, in bytes.
    public var maxObject: Int64?
    /// Whether to store answers that are not media, such as 404 and 301, even if the origin states no lifetime for them.
    public var heuristic: Bool?
    /// The address at which a fresh link is obtained when a player's own has expired midway: an http or https URL with
    /// `{scheme}`, `{host}`, `{path}` and `{query}` for the parts of the requested URL. After a 401, 403, 404 or 410 for
    /// the rest of a response, the rest is requested there, and a redirect followed.
    public var refresh: String?
    /// Other caches that are asked before the origin, as `ProxyConfiguration.parents` names them. An empty list asks none.
    public var parents: [String]?

    /// Creates a rule for these hosts and paths that has no effect yet.
    public init(hosts: [String] = [], paths: [String] = []) {
        self.hosts = hosts
        self.paths = paths
    }
}
