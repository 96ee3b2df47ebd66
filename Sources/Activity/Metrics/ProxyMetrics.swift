/// The proxy's numbers. One instance serves all loops.
///
/// A counter is one declaration here, with where it is in `/stats`, its name in `/metrics` and its help.
package final class ProxyMetrics: Sendable {
    // Requests for media, by how the cache answered
    package let requests = Counter("requests.total", "reelcache_requests", "Requests of players for media.")
    package let hits = Counter(
        "requests.hits", "reelcache_answers", label: ("cache", "hit"), "Answers by how much of them was cached.")
    package let partialHits = Counter("requests.partial_hits", "reelcache_answers", label: ("cache", "partial"), "")
    package let misses = Counter("requests.misses", "reelcache_answers", label: ("cache", "miss"), "")
    package let bypasses = Counter("requests.bypasses", "reelcache_answers", label: ("cache", "bypass"), "")
    package let validated = Counter(
        "requests.validated", "reelcache_answers_validated",
        "Answers from the cache after the origin had validated them.")
    package let stale = Counter("requests.stale", "reelcache_answers_stale", "Stale answers from the cache.")
    package let collapsed = Counter(
        "requests.collapsed", "reelcache_requests_collapsed", "Requests that joined a fetch of another request.")

    /// Responses to players, by status.
    package let responses = StatusCounters()

    package let bytesFromCache = Counter(
        "bytes.from_cache", "reelcache_sent_bytes", in: .bytes, label: ("source", "cache"),
        "Bytes of bodies sent to players: stored before they were requested, or received from origins meanwhile.")
    package let bytesFromUpstream = Counter(
        "bytes.from_upstream", "reelcache_sent_bytes", in: .bytes, label: ("source", "origin"), "")
    package let firstByteOfHits = LatencyHistogram()
    package let firstByteOfMisses = LatencyHistogram()

    // Origins
    package let upstreamReasons = ReasonCounters()
    /// Responses of origins and parents, by status; each redirect is one.
    package let originResponses = StatusCounters()
    package let upstreamBytes = Counter(
        "upstream.bytes", "reelcache_origin_received_bytes", in: .bytes,
        "Bytes of bodies received from origins, downloads included.")
    package let openFetches = Gauge(
        "upstream.open_fetches", "reelcache_origin_fetches", "Fetches that are running.")
    /// Transfers that have a slot, and those that have given it to others because their clients do not read.
    package let openTransfers = Gauge("upstream.open_transfers"), pausedTransfers = Gauge("upstream.paused_transfers")
    package let resumedTransfers = Counter(
        "upstream.resumed_transfers", "reelcache_origin_transfers_resumed",
        "Transfers that broke off and were resumed.")
    package let resolverRuns = Counter(
        "upstream.resolver_runs", "reelcache_resolver_runs", "Programs that were run to find media behind pages.")
    package let refreshedLinks = Counter(
        "upstream.refreshed_links", "reelcache_links_refreshed", "Expired links that were replaced.")
    /// Bytes received from origins, and sent to players, by the host of the media.
    package let origins = OriginCounters()

    // The store
    package let size = Gauge(
        "cache.size", "reelcache_cache_size_bytes", in: .bytes,
        "Disk space that the cache takes, its index included.")
    package let limit = Gauge("cache.limit", "reelcache_cache_limit_bytes", in: .bytes, "The limit of that space.")
    package let minFree = Gauge(
        "cache.min_free", "reelcache_cache_min_free_bytes", in: .bytes, "Space that the cache leaves free on its disk.")
    package let pinnedBytes = Measurement(
        "reelcache_cache_pinned_bytes", in: .bytes,
        "Cached bytes of pinned resources, which are never evicted. Measured once a minute.")
    package let freeBytes = Measurement(
        "reelcache_disk_free_bytes", in: .bytes, "Free space on the disk of the cache. Measured once a minute.")
    package let resources = Measurement(
        "reelcache_cache_resources", in: nil,
        "Cached resources; a stream with its segments is one. Measured once a minute.")
    package let evictedBytes = Counter(
        "cache.evicted_bytes", "reelcache_cache_evicted_bytes", in: .bytes, "Bytes evicted to make room.")
    package let evictedExtents = Counter(
        "cache.evicted_extents", "reelcache_cache_evicted_extents", "Extents (4 MiB) evicted to make room.")
    package let droppedChunks = Counter(
        "cache.dropped_chunks", "reelcache_cache_dropped_chunks",
        "Chunks (64 KiB) dropped because they were damaged.")
    package let checkpoints = Counter("cache.checkpoints", "reelcache_cache_checkpoints", "Saves of the index.")
    package let openResources = Gauge(
        "cache.open_resources", "reelcache_cache_open_resources", "Resources that are in use, or were lately.")
    package let shortResponses = Gauge(
        "cache.short_responses", "reelcache_short_responses",
        "Responses in memory that are not media, such as errors and redirects.")
    package let shortResponseBytes = Gauge(
        "cache.short_response_bytes", "reelcache_short_response_bytes", in: .bytes, "What these take of their limit.")

    // The server
    package let connections = Gauge("connections", "reelcache_connections", "Open connections of clients.")
    package let acceptedConnections = Counter(
        "accepted_connections", "reelcache_connections_accepted", "Connections that were accepted.")
    package let closedForRoom = Counter(
        "connections_closed_for_room", "reelcache_connections_closed_for_room",
        "Idle connections that were closed to make room for new ones.")

    /// What waits in memory for clients and origins.
    package let transit = Transit()
    package let transitBytes = Gauge(
        "transit.bytes", "reelcache_transit_bytes", in: .bytes, "Bytes that wait in memory for clients and origins.")
    package let transitLimit = Gauge(
        "transit.limit", "reelcache_transit_limit_bytes", in: .bytes, "The limit of these.")

    // Downloads
    package let completedDownloads = Counter(
        nil, "reelcache_downloads_ended", label: ("outcome", "completed"), "Downloads that have ended, by outcome.")
    package let failedDownloads = Counter(nil, "reelcache_downloads_ended", label: ("outcome", "failed"), "")
    package let cancelledDownloads = Counter(nil, "reelcache_downloads_ended", label: ("outcome", "cancelled"), "")

    // Tunnels (CONNECT)
    package let openTunnels = Gauge("tunnels.open", "reelcache_tunnels_open", "Open tunnels.")
    package let tunnels = Counter("tunnels.total", "reelcache_tunnels", "Tunnels that were requested.")
    package let tunnelBytes = Counter(
        "tunnels.bytes", "reelcache_tunnel_bytes", in: .bytes, "Bytes that passed through tunnels, both ways.")

    /// Failures by kind, each with a short name such as `origin-broken` or `disk-write`.
    package let errors = LabelledCounters()

    let found = Found()

    package init() {}
}

/// Why a request was sent to an origin.
package enum FetchReason: String, Sendable, CaseIterable {
    /// Nothing of the resource was known.
    case uriMiss = "uri-miss"
    /// A gap in the cached bytes.
    case gap
    /// A transfer broke off and was resumed at its frontier.
    case resume
    /// The response could not be stored, so each client gets its own.
    case bypass
    /// The stored response was stale, or a client demanded validation.
    case validation
    /// A client's HEAD for a resource that is not cached.
    case head
    /// A check of a subscribed feed.
    case feed
    /// A client's request with another method, through a mount.
    case method
}

/// One counter for each reason.
package final class ReasonCounters: Sendable {
    private let counters: [FetchReason: Counter] = Dictionary(
        uniqueKeysWithValues: FetchReason.allCases.map { ($0, Counter()) })
    package init() {}
    package subscript(_ reason: FetchReason) -> Counter { counters[reason]! }
}
