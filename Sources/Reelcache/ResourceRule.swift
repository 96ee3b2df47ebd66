/// How some resources are handled: an entry of `rules`.
///
/// A rule is for the resources whose host and path match. What it leaves nil is left to the next rule that matches, and
/// in the end to the default: so general rules come last.
///
/// ```swift
/// var rule = ResourceRule(hosts: ["*.example.org"])
/// rule.ignoredQuery = .parameters(["token", "expires"])
/// configuration.rules = [rule]
/// ```
public struct ResourceRule: Sendable, Equatable {
    /// Hosts, one of which has to match: a name or an address in which `*` stands for any run of characters, upper and
    /// lower case alike, with `:port` behind it where only that port is meant. None stands for all hosts.
    public var hosts: [String]
    /// Paths, one of which has to match: they begin with `/` or `*`, and `*` stands for any run of characters, `/`
    /// included. The query is no part of them. None stands for all paths.
    public var paths: [String]
    /// Whether it is neither stored nor answered from what is.
    public var bypass: Bool?
    /// How long a response is fresh, in whole seconds, whatever its origin says.
    public var ttl: Duration?
    /// Whether it is stored although its origin said `no-store`.
    public var ignoresNoStore: Bool?
    /// Whether what is stored is played while its origin cannot be asked, although the origin forbade that. Nil: what
    /// is pinned or was downloaded is, unless `ProxyConfiguration.playsPinned` is false.
    public var playsStale: Bool?
    /// Parameters of the query that do not tell one resource from another. The origin is asked with all of them
    /// nevertheless.
    public var ignoredQuery: IgnoredParameters?
    /// What the cache finds it by, with `{scheme}`, `{host}`, `{path}` and `{query}` for parts of its URL:
    /// `https://cdn.example{path}` makes one resource of what several hosts have. An http or https URL, for any
    /// resource. `{query}` is what `ignoredQuery` leaves.
    public var key: String?
    /// How much is fetched beyond what is asked for.
    public var fill: FillMode?
    /// Whether each byte costs. Then nothing is fetched once a player has left: not on the chance that it comes back,
    /// nor to the end, whatever `fill` says.
    public var isMetered: Bool?
    /// How many segments of an HLS or DASH stream are fetched after the one that a player reads: 0 to 20. None with a
    /// `fill` of `read`, nor where each byte costs.
    public var aheadSegments: Int?
    /// Whether a player that wants what is fresh to be asked for again (`no-cache`, `max-age=0`) gets it as it is.
    public var ignoresReload: Bool?
    /// Header fields for the origin, by name, in place of the player's. They go to the origin of the URL only, along no
    /// redirect to another.
    public var headers: [String: String]?
    /// Whether what is stored is pinned.
    public var pin: Bool?
    /// Whether web pages are stored that come where media was asked for, such as those of a captive portal.
    public var storesPages: Bool?
    /// Bytes: what is longer is not stored.
    public var maxObject: Int64?

    /// A rule for these hosts and paths, without an effect yet.
    public init(hosts: [String] = [], paths: [String] = []) {
        self.hosts = hosts
        self.paths = paths
    }
}

/// Parameters of a URL's query that the cache looks past.
public enum IgnoredParameters: Sendable, Equatable {
    /// Each tells one resource from another.
    case nothing
    /// The whole query.
    case all
    /// Those of these names, in which `*` stands for any run of characters, such as `utm_*`.
    case parameters([String])
}

/// How much of a resource is fetched beyond what is asked for.
public enum FillMode: Sendable, Equatable {
    /// Only what is asked for.
    case read
    /// So many bytes past the furthest reader; 1 TiB at the most.
    case ahead(bytes: Int64)
    /// To the resource's end, whether or not somebody reads on.
    case end
    /// All of it.
    case whole
}
