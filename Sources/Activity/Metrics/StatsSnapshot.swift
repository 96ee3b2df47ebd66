/// The answer to `GET /stats`: the counters at one moment. Counts are since the start of the process.
package struct StatsSnapshot: Codable, Sendable, Equatable {
    package struct Requests: Codable, Sendable, Equatable {
        package var total, hits, partialHits, misses, bypasses, collapsed, validated, stale: UInt64
    }
    package struct Bytes: Codable, Sendable, Equatable {
        package var fromCache, fromUpstream: UInt64
        /// Bytes served from the cache divided by all bytes served, 0...1; nil before the first byte.
        package var hitRatio: Double?
    }
    package struct Upstream: Codable, Sendable, Equatable {
        /// Requests sent to origins, by reason.
        package var requests: [String: UInt64]
        package var bytes: UInt64
        package var openFetches: Int64
        package var resumedTransfers: UInt64
        package var resolverRuns, refreshedLinks: UInt64
        /// Transfers that have a slot, and those that have given it to others because their clients do not read.
        package var openTransfers, pausedTransfers: Int
    }
    /// Bytes that wait in memory for clients and origins, and their limit.
    package struct Transit: Codable, Sendable, Equatable {
        package var bytes, limit: Int64
    }
    package struct Cache: Codable, Sendable, Equatable {
        /// Bytes: allocated on the disk, the limit, and the amount to keep free on the disk.
        package var size, limit, minFree: Int64
        package var evictedExtents, evictedBytes, droppedChunks, checkpoints: UInt64
        package var openResources: Int
        /// Responses in memory that are not media, and the bytes that they take of their limit.
        package var shortResponses, shortResponseBytes: Int
    }
    /// The tunnels that CONNECT opened.
    package struct Tunnels: Codable, Sendable, Equatable {
        package var total: UInt64
        package var open: Int64
        package var bytes: UInt64
    }
    /// Milliseconds from a request to the first byte of its body.
    package struct FirstByte: Codable, Sendable, Equatable {
        package var count: UInt64
        package var p50, p90, p99: Double?

        package init(_ histogram: LatencyHistogram) {
            let counts = histogram.counts
            func milliseconds(_ quantile: Double) -> Double? {
                counts.quantile(quantile).map { Double($0 / 1000) / 1000 }
            }
            count = counts.count
            (p50, p90, p99) = (milliseconds(0.5), milliseconds(0.9), milliseconds(0.99))
        }
    }

    package var version: String
    package var uptimeSeconds: Double
    package var requests: Requests
    package var bytes: Bytes
    package var upstream: Upstream
    package var cache: Cache
    package var transit: Transit
    package var tunnels: Tunnels
    package var connections: Int64
    package var acceptedConnections: UInt64
    /// Idle connections that were closed to make room for new ones.
    package var connectionsClosedForRoom: UInt64
    package var firstByteOfHits, firstByteOfMisses: FirstByte
    package var errors: [String: UInt64]

    package init(
        _ metrics: ProxyMetrics, version: String, uptimeSeconds: Double, size: Int64, limit: Int64, minFree: Int64,
        openResources: Int, shortResponses: (count: Int, bytes: Int) = (0, 0),
        transfers: (open: Int, paused: Int) = (0, 0)
    ) {
        self.version = version
        self.uptimeSeconds = uptimeSeconds
        requests = Requests(
            total: metrics.requests.value, hits: metrics.hits.value, partialHits: metrics.partialHits.value,
            misses: metrics.misses.value, bypasses: metrics.bypasses.value, collapsed: metrics.collapsed.value,
            validated: metrics.validated.value, stale: metrics.stale.value)
        let (cached, fetched) = (metrics.bytesFromCache.value, metrics.bytesFromUpstream.value)
        bytes = Bytes(
            fromCache: cached, fromUpstream: fetched,
            hitRatio: cached + fetched == 0 ? nil : Double(cached) / Double(cached + fetched))
        upstream = Upstream(
            requests: Dictionary(
                uniqueKeysWithValues: FetchReason.allCases.map { ($0.rawValue, metrics.upstreamReasons[$0].value) }),
            bytes: metrics.upstreamBytes.value, openFetches: metrics.openFetches.value,
            resumedTransfers: metrics.resumedTransfers.value, resolverRuns: metrics.resolverRuns.value,
            refreshedLinks: metrics.refreshedLinks.value, openTransfers: transfers.open,
            pausedTransfers: transfers.paused)
        transit = Transit(bytes: metrics.transit.bytes, limit: metrics.transit.limit)
        cache = Cache(
            size: size, limit: limit, minFree: minFree, evictedExtents: metrics.evictedExtents.value,
            evictedBytes: metrics.evictedBytes.value,
            droppedChunks: metrics.droppedChunks.value, checkpoints: metrics.checkpoints.value,
            openResources: openResources, shortResponses: shortResponses.count,
            shortResponseBytes: shortResponses.bytes)
        tunnels = Tunnels(
            total: metrics.tunnels.value, open: metrics.openTunnels.value, bytes: metrics.tunnelBytes.value)
        connections = metrics.connections.value
        acceptedConnections = metrics.acceptedConnections.value
        connectionsClosedForRoom = metrics.closedForRoom.value
        firstByteOfHits = FirstByte(metrics.firstByteOfHits)
        firstByteOfMisses = FirstByte(metrics.firstByteOfMisses)
        errors = metrics.errors.values
    }
}
