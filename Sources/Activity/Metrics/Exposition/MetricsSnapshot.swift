/// The answer to `GET /metrics`: the counters at one moment.
package struct MetricsSnapshot: Sendable {
    package var stats: StatsSnapshot
    package var firstByteOfHits: LatencyCounts
    package var firstByteOfMisses: LatencyCounts
    /// The bytes of the hosts with most of them, and of all others.
    package var origins: [(host: String, bytes: OriginBytes)]
    private let responses, originResponses: [(code: String, count: UInt64)]
    /// The numbers that have a name, each metric whole.
    private let numbers: [MetricFamily]
    package var process: ProcessFacts

    /// - Parameter stats: of the same moment.
    package init(_ metrics: ProxyMetrics, _ stats: StatsSnapshot, process: ProcessFacts) {
        self.stats = stats
        (firstByteOfHits, firstByteOfMisses) = (metrics.firstByteOfHits.counts, metrics.firstByteOfMisses.counts)
        origins = metrics.origins.listed
        (responses, originResponses) = (metrics.responses.values, metrics.originResponses.values)
        numbers = Self.families(metrics.numbers)
        self.process = process
    }

    /// What the counters of a proxy do not know.
    package struct Surroundings: Sendable {
        /// Names of errors that are listed even while their count is 0, so that a rule about their increase sees the
        /// first one.
        package var errors: [String]
        /// The number of downloads in each state that is not their end.
        package var downloads: [(state: String, count: Int)]
        /// What players play now; nil if that is unknown.
        package var plays: Int?
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
        general(surroundings) + players(surroundings) + numbers + origin + errors(surroundings)
            + downloads(surroundings)
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

    /// Numbers of one metric stand side by side; its help is that of the first.
    private static func families(_ numbers: [any MetricFamily.Number]) -> [MetricFamily] {
        var families: [MetricFamily] = []
        for number in numbers {
            guard let name = number.name, let metric = name.metric, let reading = number.reading else { continue }
            let sample = MetricFamily.Sample(labels: name.label.map { [$0] } ?? [], value: reading)
            if families.last?.name == metric {
                families[families.count - 1].samples.append(sample)
            } else {
                families.append(
                    MetricFamily(
                        name: metric, kind: number is Counter ? .counter : .gauge, unit: name.unit, help: name.help,
                        samples: [sample]))
            }
        }
        return families
    }

    private func players(_ surroundings: Surroundings) -> [MetricFamily] {
        let plays = surroundings.plays.map {
            MetricFamily.one(.gauge, "reelcache_plays", .level(Int64($0)), "What players play now.")
        }
        return [
            .each(
                .counter, "reelcache_responses", by: "code", responses.map { ($0.code, .count($0.count)) },
                "Responses to players, by status."),
            .each(
                .histogram, "reelcache_first_byte_seconds", in: .seconds, by: "cache",
                [
                    ("hit", .durations(DurationBuckets(firstByteOfHits))),
                    ("miss", .durations(DurationBuckets(firstByteOfMisses))),
                ], "Time from a request to the first byte of its body."),
        ] + [plays].compactMap(\.self)
    }

    private var origin: [MetricFamily] {
        [
            .each(
                .counter, "reelcache_origin_requests", by: "reason",
                stats.reasons.sorted { $0.key < $1.key }.map { ($0.key, .count($0.value)) },
                "Requests sent to origins, by reason."),
            .each(
                .counter, "reelcache_origin_responses", by: "code", originResponses.map { ($0.code, .count($0.count)) },
                "Responses of origins and parents, redirects among them, by status."),
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

    private func errors(_ surroundings: Surroundings) -> [MetricFamily] {
        let counts = stats.errors.merging(surroundings.errors.map { ($0, 0) }) { counted, _ in counted }
        return [
            .each(
                .counter, "reelcache_errors", by: "kind",
                counts.sorted { $0.key < $1.key }.map { ($0.key, .count($0.value)) },
                "Failures and other errors, by their names in docs/programs/http-api.md.")
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
