import Activity

/// The JSON of `GET /stats`, written and read.
package enum StatsJSON {
    /// Written here and not by an encoder, which takes ten times as long: monitoring asks often. Nothing in it needs an
    /// escape.
    package static func page(_ stats: StatsSnapshot) -> [UInt8] {
        let (requests, upstream, cache, tunnels) = (stats.requests, stats.upstream, stats.cache, stats.tunnels)
        let text = """
            {
              "accepted_connections": \(stats.acceptedConnections),
              "bytes": {
                "from_cache": \(stats.bytes.fromCache), "from_upstream": \(stats.bytes.fromUpstream)\
            \(member("hit_ratio", stats.bytes.hitRatio))
              },
              "cache": {
                "checkpoints": \(cache.checkpoints), "dropped_chunks": \(cache.droppedChunks),
                "evicted_bytes": \(cache.evictedBytes), "evicted_extents": \(cache.evictedExtents),
                "limit": \(cache.limit), "min_free": \(cache.minFree), "open_resources": \(cache.openResources),
                "short_response_bytes": \(cache.shortResponseBytes), "short_responses": \(cache.shortResponses),
                "size": \(cache.size)
              },
              "connections": \(stats.connections), "connections_closed_for_room": \(stats.connectionsClosedForRoom),
              "errors": \(counts(stats.errors)),
              "first_byte_of_hits": \(times(stats.firstByteOfHits)),
              "first_byte_of_misses": \(times(stats.firstByteOfMisses)),
              "requests": {
                "bypasses": \(requests.bypasses), "collapsed": \(requests.collapsed), "hits": \(requests.hits),
                "misses": \(requests.misses), "partial_hits": \(requests.partialHits), "stale": \(requests.stale),
                "total": \(requests.total), "validated": \(requests.validated)
              },
              "transit": {"bytes": \(stats.transit.bytes), "limit": \(stats.transit.limit)},
              "tunnels": {"bytes": \(tunnels.bytes), "open": \(tunnels.open), "total": \(tunnels.total)},
              "upstream": {
                "bytes": \(upstream.bytes), "open_fetches": \(upstream.openFetches),
                "open_transfers": \(upstream.openTransfers), "paused_transfers": \(upstream.pausedTransfers),
                "refreshed_links": \(upstream.refreshedLinks), "requests": \(counts(upstream.requests)),
                "resolver_runs": \(upstream.resolverRuns), "resumed_transfers": \(upstream.resumedTransfers)
              },
              "uptime_seconds": \(stats.uptimeSeconds), "version": "\(stats.version)"
            }

            """
        return Array(text.utf8)
    }

    private static func counts(_ counts: [String: UInt64]) -> String {
        "{" + counts.sorted { $0.key < $1.key }.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}"
    }

    private static func times(_ times: StatsSnapshot.FirstByte) -> String {
        "{\"count\": \(times.count)\(member("p50", times.p50))\(member("p90", times.p90))\(member("p99", times.p99))}"
    }

    private static func member(_ name: String, _ value: Double?) -> String {
        value.map { ", \"\(name)\": \($0)" } ?? ""
    }

    package static func read(_ page: some Sequence<UInt8>) throws -> StatsSnapshot {
        try ControlJSON.decode(StatsSnapshot.self, from: page)
    }
}
