import Testing

@testable import Activity

/// What `/metrics` contains.
@Suite struct MetricsSnapshotTests {
    private let metrics = ProxyMetrics()
    private let surroundings = {
        var surroundings = MetricsSnapshot.Surroundings(
            errors: ["disk-read", "offline"], downloads: [("waiting", 2), ("paused", 0)], isOffline: true)
        (surroundings.isHeld, surroundings.plays) = (true, 37)
        (surroundings.fetched, surroundings.caps) = ([("day", 31), ("month", 32)], [("month", 33)])
        return surroundings
    }()

    private var families: [MetricFamily] {
        let levels =
            [
                (metrics.size, 10), (metrics.limit, 20), (metrics.minFree, 30), (metrics.openResources, 2),
                (metrics.shortResponses, 3), (metrics.shortResponseBytes, 4000), (metrics.transitLimit, 64_000_000),
            ] as [(Gauge, Int64)]
        for (gauge, level) in levels { gauge.set(level) }
        let stats = StatsSnapshot(metrics, version: "1.2.3", uptimeSeconds: 4.5)
        return MetricsSnapshot(metrics, stats, process: .read()).families(surroundings)
    }

    private func lines(_ format: ExpositionFormat = .prometheus) -> Set<Substring> {
        Set(String(decoding: Exposition.bytes(families, format), as: UTF8.self).split(separator: "\n"))
    }

    /// https://prometheus.io/docs/practices/naming/
    @Test func namesFollowTheConventions() {
        var names: Set<String> = []
        for family in families {
            #expect(names.insert(family.name).inserted, "\(family.name) is there twice")
            #expect(names.insert(family.sampleName).inserted || family.name == family.sampleName)
            #expect(family.name.wholeMatch(of: /(reelcache|process)(_[a-z]+)+/) != nil, "\(family.name)")
            #expect(!family.name.hasSuffix("_total") && !family.name.hasSuffix("_info"))
            if let unit = family.unit { #expect(family.name.hasSuffix("_" + unit.rawValue), "\(family.name)") }
            #expect(family.name.contains(/_(bytes|seconds)$/) == (family.unit != nil), "\(family.name)")
            #expect(family.help.hasSuffix(".") && family.help.first?.isLetter != family.help.hasPrefix("1"))
            #expect(Set(family.samples.map { $0.labels.map(\.value) }).count == family.samples.count)
        }
    }

    @Test func eachCounterIsInItsPlace() {
        metrics.countEach()
        metrics.bytesFromCache.add(19)
        metrics.bytesFromUpstream.add(20)
        metrics.closedForRoom.add(21)
        metrics.tunnels.add(22)
        metrics.openTunnels.set(23)
        metrics.tunnelBytes.add(24)
        metrics.pinnedBytes.set(25)
        metrics.freeBytes.set(26)
        metrics.origins.origin("a.example").received.add(27)
        metrics.origins.origin("a.example").sentFromCache.add(28)
        metrics.resolverRuns.add(29)
        metrics.refreshedLinks.add(30)
        metrics.completedDownloads.add(34)
        metrics.failedDownloads.add(35)
        metrics.resources.set(36)
        for code in [206, 206, 599, 600, 99] { metrics.responses.add(code) }
        metrics.originResponses.add(302)
        metrics.errors.add("disk-read")
        metrics.errors.add("new")
        metrics.firstByteOfMisses.record(nanoseconds: 2_000_000)
        let lines = lines()
        for line in [
            "reelcache_build_info{version=\"1.2.3\"} 1", "reelcache_uptime_seconds 4.5", "reelcache_offline 1",
            "reelcache_requests_total 1", "reelcache_answers_total{cache=\"hit\"} 2",
            "reelcache_answers_total{cache=\"partial\"} 3", "reelcache_answers_total{cache=\"miss\"} 4",
            "reelcache_answers_total{cache=\"bypass\"} 5", "reelcache_requests_collapsed_total 6",
            "reelcache_origin_requests_total{reason=\"gap\"} 7", "reelcache_origin_received_bytes_total 8",
            "reelcache_origin_fetches 9", "reelcache_origin_transfers_resumed_total 10",
            "reelcache_cache_evicted_extents_total 11", "reelcache_cache_evicted_bytes_total 12",
            "reelcache_cache_dropped_chunks_total 13", "reelcache_cache_checkpoints_total 14",
            "reelcache_connections 15",
            "reelcache_connections_accepted_total 16", "reelcache_answers_validated_total 17",
            "reelcache_answers_stale_total 18", "reelcache_sent_bytes_total{source=\"cache\"} 19",
            "reelcache_sent_bytes_total{source=\"origin\"} 20", "reelcache_connections_closed_for_room_total 21",
            "reelcache_transit_limit_bytes 64000000", "reelcache_tunnels_total 22", "reelcache_tunnels_open 23",
            "reelcache_tunnel_bytes_total 24",
            "reelcache_cache_pinned_bytes 25", "reelcache_disk_free_bytes 26",
            "reelcache_host_received_bytes_total{host=\"a.example\"} 27",
            "reelcache_host_sent_bytes_total{host=\"a.example\",source=\"cache\"} 28",
            "reelcache_host_received_bytes_total{host=\"other\"} 0", "reelcache_errors_total{kind=\"disk-read\"} 1",
            "reelcache_errors_total{kind=\"new\"} 1", "reelcache_errors_total{kind=\"offline\"} 0",
            "reelcache_first_byte_seconds_count{cache=\"miss\"} 1",
            "reelcache_first_byte_seconds_count{cache=\"hit\"} 0",
            "reelcache_cache_size_bytes 10", "reelcache_cache_limit_bytes 20", "reelcache_cache_min_free_bytes 30",
            "reelcache_cache_open_resources 2", "reelcache_short_responses 3", "reelcache_short_response_bytes 4000",
            "reelcache_downloads{state=\"waiting\"} 2",
            "reelcache_downloads{state=\"paused\"} 0", "reelcache_resolver_runs_total 29",
            "reelcache_links_refreshed_total 30", "reelcache_downloads_held 1",
            "reelcache_downloads_fetched_bytes{period=\"day\"} 31",
            "reelcache_downloads_fetched_bytes{period=\"month\"} 32",
            "reelcache_downloads_cap_bytes{period=\"month\"} 33",
            "reelcache_downloads_ended_total{outcome=\"completed\"} 34",
            "reelcache_downloads_ended_total{outcome=\"failed\"} 35",
            "reelcache_downloads_ended_total{outcome=\"cancelled\"} 0", "reelcache_cache_resources 36",
            "reelcache_responses_total{code=\"206\"} 2", "reelcache_responses_total{code=\"599\"} 1",
            "reelcache_responses_total{code=\"503\"} 0", "reelcache_responses_total{code=\"other\"} 2",
            "reelcache_origin_responses_total{code=\"302\"} 1", "reelcache_plays 37",
        ] { #expect(lines.contains(Substring(line)), "\(line)") }
    }

    /// A 0 would be an alarm.
    @Test func whatWasNotMeasuredYetIsLeftOut() {
        #expect(!families.contains { ["reelcache_cache_pinned_bytes", "reelcache_disk_free_bytes"].contains($0.name) })
    }

    /// However many hosts there are, and whatever they are called.
    @Test func thereAreAtMostAFewHundredLines() {
        for number in 0..<3000 {
            metrics.origins.origin("host-\(number).\"\n\\ÿ" + String(repeating: "x", count: number)).received.add(1)
        }
        #expect(lines(.openMetrics).count < 350)
    }

    /// proc(5) of this very process.
    @Test func processIsMeasured() throws {
        let facts = ProcessFacts.read()
        #expect(facts.residentBytes > 1 << 20 && facts.virtualBytes > facts.residentBytes)
        #expect((3...100_000).contains(facts.openFiles) && facts.maxFiles >= facts.openFiles)
        #expect(facts.cpuSeconds > 0 && facts.startTime > 1_700_000_000)
        #expect(ProcessFacts.read().startTime == facts.startTime)
    }
}
