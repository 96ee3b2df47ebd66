/// The proxy's counters. One instance serves all loops.
package final class ProxyMetrics: Sendable {
    // Requests for media, by how the cache answered
    package let requests = Counter()
    package let hits = Counter()
    package let partialHits = Counter()
    package let misses = Counter()
    package let bypasses = Counter()
    /// Answered from the cache after the origin had validated the response.
    package let validated = Counter()
    /// Answered from the cache with a stale response.
    package let stale = Counter()
    /// Requests that joined a transfer started by another request.
    package let collapsed = Counter()

    // Bytes of bodies sent to clients, by source
    package let bytesFromCache = Counter()
    package let bytesFromUpstream = Counter()

    // Upstream
    package let upstreamReasons = ReasonCounters()
    package let upstreamBytes = Counter()
    package let openFetches = Gauge()
    /// Transfers that broke off and were resumed.
    package let resumedTransfers = Counter()
    /// Runs of resolvers.
    package let resolverRuns = Counter()
    /// Links that had expired and were replaced.
    package let refreshedLinks = Counter()
    /// Bytes received from origins, and sent to players, by the host of the media.
    package let origins = OriginCounters()

    // The store
    package let evictedExtents = Counter()
    package let evictedBytes = Counter()
    package let droppedChunks = Counter()
    package let checkpoints = Counter()
    /// Cached bytes of pinned resources.
    package let pinnedBytes = Measurement()
    /// Bytes free on the cache's disk.
    package let freeBytes = Measurement()

    // The server
    package let connections = Gauge()
    package let acceptedConnections = Counter()
    /// Idle connections that were closed to make room for new ones.
    package let closedForRoom = Counter()

    /// What waits in memory for clients and origins.
    package let transit = Transit()

    // Tunnels (CONNECT), and the bytes that passed through them, both ways
    package let tunnels = Counter()
    package let openTunnels = Gauge()
    package let tunnelBytes = Counter()

    /// Failures by kind, each with a short name such as `origin-broken` or `disk-write`.
    package let errors = LabelledCounters()

    package let firstByteOfHits = LatencyHistogram()
    package let firstByteOfMisses = LatencyHistogram()

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
