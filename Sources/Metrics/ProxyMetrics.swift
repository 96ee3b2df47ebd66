/// What the proxy counts. One instance serves all loops.
package final class ProxyMetrics: Sendable {
    // Requests for media, by how the cache answered
    package let requests = Counter()
    package let hits = Counter()
    package let partialHits = Counter()
    package let misses = Counter()
    package let bypasses = Counter()
    /// Answered from the cache after the origin had said that it still holds.
    package let validated = Counter()
    /// Answered from the cache although it was stale.
    package let stale = Counter()
    /// Requests that followed a transfer which another request had started.
    package let collapsed = Counter()

    // Bytes of bodies sent to clients, by where they came from
    package let bytesFromCache = Counter()
    package let bytesFromUpstream = Counter()

    // Upstream
    package let upstreamReasons = ReasonCounters()
    package let upstreamBytes = Counter()
    package let openFetches = Gauge()
    /// Transfers that broke and went on from where they were.
    package let resumedTransfers = Counter()

    // The store
    package let evictedExtents = Counter()
    package let evictedBytes = Counter()
    package let droppedChunks = Counter()
    package let checkpoints = Counter()

    // The server
    package let connections = Gauge()
    package let acceptedConnections = Counter()
    /// Idle connections that were closed for new ones.
    package let closedForRoom = Counter()

    // Tunnels (CONNECT), and what has passed through them, both ways
    package let tunnels = Counter()
    package let openTunnels = Gauge()
    package let tunnelBytes = Counter()

    /// Failures by kind, each a short token such as `origin-broken` or `disk-write`.
    package let errors = LabelledCounters()

    package let firstByteOfHits = LatencyHistogram()
    package let firstByteOfMisses = LatencyHistogram()

    package init() {}
}

/// Why an upstream request was made.
package enum FetchReason: String, Sendable, CaseIterable {
    /// Nothing of the resource was known.
    case uriMiss = "uri-miss"
    /// A gap in what is cached.
    case gap
    /// A transfer broke and went on from its frontier.
    case resume
    /// The response could not be stored, so each client has its own.
    case bypass
    /// What is stored was stale, or a client wanted to know whether it still holds.
    case validation
    /// A client's HEAD for a resource that is not cached.
    case head
    /// A client's request of another method, through a mount.
    case method
}

/// A counter for each reason.
package final class ReasonCounters: Sendable {
    private let counters: [FetchReason: Counter] = Dictionary(
        uniqueKeysWithValues: FetchReason.allCases.map { ($0, Counter()) })
    package init() {}
    package subscript(_ reason: FetchReason) -> Counter { counters[reason]! }
}
