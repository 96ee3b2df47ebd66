/// The answer to `GET /metrics`: the counters at one moment.
package struct MetricsSnapshot: Sendable {
    package var stats: StatsSnapshot
    package var firstByteOfHits: LatencyCounts
    package var firstByteOfMisses: LatencyCounts
    /// The bytes of the hosts with most of them, and of all others.
    package var origins: [(host: String, bytes: OriginBytes)]
    /// Bytes of pinned resources, and those that are free on the disk; nil until they were first measured.
    package var pinnedBytes, freeBytes: Int64?
    package var process: ProcessFacts

    /// - Parameter stats: of the same moment.
    package init(_ metrics: ProxyMetrics, _ stats: StatsSnapshot, process: ProcessFacts) {
        self.stats = stats
        (firstByteOfHits, firstByteOfMisses) = (metrics.firstByteOfHits.counts, metrics.firstByteOfMisses.counts)
        origins = metrics.origins.listed
        (pinnedBytes, freeBytes) = (metrics.pinnedBytes.value, metrics.freeBytes.value)
        self.process = process
    }

    /// What the counters of a proxy do not know.
    package struct Surroundings: Sendable {
        /// Names of errors that are listed even while their count is 0, so that a rule about their increase sees the
        /// first one.
        package var errors: [String]
        /// The number of downloads in each state that is not their end.
        package var downloads: [(state: String, count: Int)]
        /// Whether the schedule or a cap keeps all downloads waiting.
        package var isHeld = false
        /// What downloads have fetched in the current day and month, in bytes.
        package var fetched: [(period: String, bytes: Int64)] = []
        /// The most that they may fetch in a day or month, in bytes.
        package var caps: [(period: String, bytes: Int64)] = []
        package var isOffline: Bool

        package init(errors: [String], downloads: [(state: String, count: Int)], isOffline: Bool) {
            (self.errors, self.downloads, self.isOffline) = (errors, downloads, isOffline)
        }
    }

    package func families(_ surroundings: Surroundings) -> [MetricFamily] {
        general(surroundings) + players + origin + cache + server + errors(surroundings) + downloads(surroundings)
            + processFamilies
    }

    // MARK: Families

    private func general(_ surroundings: Surroundings) -> [MetricFamily] {
        [
            MetricFamily(
                name: "reelcache_build", kind: .info, unit: nil, help: "The version of the program.",
                samples: [.init(labels: [.init(name: "version", value: stats.version)], value: .count(1))]),
            .one(
                .gauge, "reelcache_uptime_seconds", in: .seconds, .number(stats.uptimeSeconds),
                "Time since the cache was opened."),
            .one(
                .gauge, "reelcache_offline", .level(surroundings.isOffline ? 1 : 0),
                "1 while no origin is contacted, otherwise 0."),
        ]
    }

    private var players: [MetricFamily] {
        let requests = stats.requests
        return [
            .one(.counter, "reelcache_requests", .count(requests.total), "Requests of players for media."),
            .each(
                .counter, "reelcache_answers", by: "cache",
                [
                    ("hit", .count(requests.hits)), ("partial", .count(requests.partialHits)),
                    ("miss", .count(requests.misses)), ("bypass", .count(requests.bypasses)),
                ], "Answers by how much of them was cached."),
            .one(
                .counter, "reelcache_answers_validated", .count(requests.validated),
                "Answers from the cache after the origin had validated them."),
            .one(.counter, "reelcache_answers_stale", .count(requests.stale), "Stale answers from the cache."),
            .one(
                .counter, "reelcache_requests_collapsed", .count(requests.collapsed),
                "Requests that joined a fetch of another request."),
            .each(
                .counter, "reelcache_sent_bytes", in: .bytes, by: "source",
                [("cache", .count(stats.bytes.fromCache)), ("origin", .count(stats.bytes.fromUpstream))],
                "Bytes of bodies sent to players: stored before they were requested, or received from origins meanwhile."
            ),
            .each(
                .histogram, "reelcache_first_byte_seconds", in: .seconds, by: "cache",
                [
                    ("hit", .durations(DurationBuckets(firstByteOfHits))),
                    ("miss", .durations(DurationBuckets(firstByteOfMisses))),
                ], "Time from a request to the first byte of its body."),
        ]
    }

    private var origin: [MetricFamily] {
        let upstream = stats.upstream
        return [
            .each(
                .counter, "reelcache_origin_requests", by: "reason",
                upstream.requests.sorted { $0.key < $1.key }.map { ($0.key, .count($0.value)) },
                "Requests sent to origins, by reason."),
            .one(
                .counter, "reelcache_origin_received_bytes", in: .bytes, .count(upstream.bytes),
                "Bytes of bodies received from origins, downloads included."),
            .one(.gauge, "reelcache_origin_fetches", .level(upstream.openFetches), "Fetches that are running."),
            .one(
                .counter, "reelcache_origin_transfers_resumed", .count(upstream.resumedTransfers),
                "Transfers that broke off and were resumed."),
            .one(
                .counter, "reelcache_resolver_runs", .count(upstream.resolverRuns),
                "Programs that were run to find media behind pages."),
            .one(
                .counter, "reelcache_links_refreshed", .count(upstream.refreshedLinks),
                "Expired links that were replaced."),
            .each(
                .counter, "reelcache_host_received_bytes", in: .bytes, by: "host",
                origins.map { ($0.host, .count($0.bytes.received)) },
                "Bytes of bodies received from an origin: the 20 hosts with most bytes, and all others together."),
            MetricFamily(
                name: "reelcache_host_sent_bytes", kind: .counter, unit: .bytes,
                help: "Bytes of bodies sent to players, by the host of the media and by source.",
                samples: origins.flatMap { host, bytes in
                    [("cache", bytes.sentFromCache), ("origin", bytes.sentFromOrigin)].map { source, count in
                        .init(
                            labels: [.init(name: "host", value: host), .init(name: "source", value: source)],
                            value: .count(count))
                    }
                }),
        ]
    }

    private var cache: [MetricFamily] {
        let cache = stats.cache
        let measured: [MetricFamily?] = [
            pinnedBytes.map {
                .one(
                    .gauge, "reelcache_cache_pinned_bytes", in: .bytes, .level($0),
                    "Cached bytes of pinned resources, which are never evicted. Measured once a minute.")
            },
            freeBytes.map {
                .one(
                    .gauge, "reelcache_disk_free_bytes", in: .bytes, .level($0),
                    "Free space on the disk of the cache. Measured once a minute.")
            },
        ]
        return [
            .one(
                .gauge, "reelcache_cache_size_bytes", in: .bytes, .level(cache.size),
                "Disk space that the cache takes, its index included."),
            .one(.gauge, "reelcache_cache_limit_bytes", in: .bytes, .level(cache.limit), "The limit of that space."),
            .one(
                .gauge, "reelcache_cache_min_free_bytes", in: .bytes, .level(cache.minFree),
                "Space that the cache leaves free on its disk."),
        ] + measured.compactMap(\.self) + [
            .one(
                .counter, "reelcache_cache_evicted_bytes", in: .bytes, .count(cache.evictedBytes),
                "Bytes evicted to make room."),
            .one(
                .counter, "reelcache_cache_evicted_extents", .count(cache.evictedExtents),
                "Extents (4 MiB) evicted to make room."),
            .one(
                .counter, "reelcache_cache_dropped_chunks", .count(cache.droppedChunks),
                "Chunks (64 KiB) dropped because they were damaged."),
            .one(.counter, "reelcache_cache_checkpoints", .count(cache.checkpoints), "Saves of the index."),
            .one(
                .gauge, "reelcache_cache_open_resources", .level(Int64(cache.openResources)),
                "Resources that are in use, or were lately."),
            .one(
                .gauge, "reelcache_short_responses", .level(Int64(cache.shortResponses)),
                "Responses in memory that are not media, such as errors and redirects."),
            .one(
                .gauge, "reelcache_short_response_bytes", in: .bytes, .level(Int64(cache.shortResponseBytes)),
                "What these take of their limit."),
        ]
    }

    private var server: [MetricFamily] {
        [
            .one(.gauge, "reelcache_connections", .level(stats.connections), "Open connections of clients."),
            .one(
                .counter, "reelcache_connections_accepted", .count(stats.acceptedConnections),
                "Connections that were accepted."),
            .one(
                .counter, "reelcache_connections_closed_for_room", .count(stats.connectionsClosedForRoom),
                "Idle connections that were closed to make room for new ones."),
            .one(
                .gauge, "reelcache_transit_bytes", in: .bytes, .level(stats.transit.bytes),
                "Bytes that wait in memory for clients and origins."),
            .one(
                .gauge, "reelcache_transit_limit_bytes", in: .bytes, .level(stats.transit.limit),
                "The limit of these."),
            .one(.gauge, "reelcache_tunnels_open", .level(stats.tunnels.open), "Open tunnels."),
            .one(.counter, "reelcache_tunnels", .count(stats.tunnels.total), "Tunnels that were requested."),
            .one(
                .counter, "reelcache_tunnel_bytes", in: .bytes, .count(stats.tunnels.bytes),
                "Bytes that passed through tunnels, both ways."),
        ]
    }

    private func errors(_ surroundings: Surroundings) -> [MetricFamily] {
        let counts = stats.errors.merging(surroundings.errors.map { ($0, 0) }) { counted, _ in counted }
        return [
            .each(
                .counter, "reelcache_errors", by: "kind",
                counts.sorted { $0.key < $1.key }.map { ($0.key, .count($0.value)) },
                "Failures and other errors, by their names in docs/guide/http-api.md.")
        ]
    }

    private func downloads(_ surroundings: Surroundings) -> [MetricFamily] {
        [
            .each(
                .gauge, "reelcache_downloads", by: "state",
                surroundings.downloads.map { ($0.state, .level(Int64($0.count))) },
                "Downloads that have not ended, by state."),
            .one(
                .gauge, "reelcache_downloads_held", .level(surroundings.isHeld ? 1 : 0),
                "1 while the schedule or a cap keeps all downloads waiting, otherwise 0."),
            .each(
                .gauge, "reelcache_downloads_fetched_bytes", in: .bytes, by: "period",
                surroundings.fetched.map { ($0.period, .level($0.bytes)) },
                "Bytes that downloads have fetched from origins in the current day and month of local time."),
            .each(
                .gauge, "reelcache_downloads_cap_bytes", in: .bytes, by: "period",
                surroundings.caps.map { ($0.period, .level($0.bytes)) },
                "The most that downloads may fetch in a day or month."),
        ]
    }

    /// Named as in all programs that Prometheus scrapes.
    private var processFamilies: [MetricFamily] {
        [
            .one(
                .counter, "process_cpu_seconds", in: .seconds, .number(process.cpuSeconds),
                "Processor time, in user and system mode."),
            .one(
                .gauge, "process_start_time_seconds", in: .seconds, .number(process.startTime),
                "When the process started, since 1970."),
            .one(
                .gauge, "process_resident_memory_bytes", in: .bytes, .level(process.residentBytes),
                "Memory in use, mapped files included."),
            .one(
                .gauge, "process_virtual_memory_bytes", in: .bytes, .level(process.virtualBytes),
                "Address space in use."),
            .one(.gauge, "process_open_fds", .level(Int64(process.openFiles)), "Open files and sockets."),
            .one(.gauge, "process_max_fds", .level(process.maxFiles), "The most files and sockets that may be open."),
        ]
    }
}
