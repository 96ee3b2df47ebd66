import Activity
import Foundation
import Testing

@Suite struct StatsSnapshotTests {
    private let metrics = ProxyMetrics()

    private var snapshot: StatsSnapshot { StatsSnapshot(metrics, version: "1.2.3", uptimeSeconds: 4.5) }

    @Test func beforeTheFirstByteThereAreNoRatios() {
        #expect(snapshot.hitRatio == nil)
        #expect(snapshot.firstByteOfHits.p50 == nil)
        #expect(snapshot.firstByteOfHits.count == 0)
    }

    @Test func hitRatioIsOfBytes() {
        metrics.bytesFromCache.add(300)
        metrics.bytesFromUpstream.add(100)
        #expect(snapshot.hitRatio == 0.75)
    }

    @Test func firstByteTimesAreMilliseconds() throws {
        for _ in 0..<100 { metrics.firstByteOfMisses.record(nanoseconds: 2_000_000) }
        let p99 = try #require(snapshot.firstByteOfMisses.p99)
        #expect(p99 >= 2 && p99 <= 2.25)
        #expect(snapshot.firstByteOfMisses.count == 100)
    }

    @Test func eachCountIsInItsPlace() {
        metrics.countEach()
        metrics.errors.add("disk-read")

        let stats = snapshot
        let numbers: [String: Int64] = Dictionary(uniqueKeysWithValues: zip(StatsSnapshot.places, stats.numbers))
        let counted = numbers.filter { $0.value > 0 && $0.value != 64_000_000 }
        #expect(
            counted == [
                "requests.total": 1, "requests.hits": 2, "requests.partial_hits": 3, "requests.misses": 4,
                "requests.bypasses": 5, "requests.collapsed": 6, "upstream.bytes": 8, "upstream.open_fetches": 9,
                "upstream.resumed_transfers": 10, "cache.evicted_extents": 11, "cache.evicted_bytes": 12,
                "cache.dropped_chunks": 13, "cache.checkpoints": 14, "connections": 15, "accepted_connections": 16,
                "requests.validated": 17, "requests.stale": 18,
            ])
        #expect(stats[\.requests] == 1 && stats[\.connections] == 15)
        #expect(
            stats.reasons == [
                "uri-miss": 0, "gap": 7, "resume": 0, "bypass": 0, "validation": 0, "head": 0, "feed": 0, "method": 0,
            ])
        #expect(stats.errors == ["disk-read": 1])
    }
}

extension ProxyMetrics {
    /// Counts another number of each.
    func countEach() {
        requests.add(1)
        hits.add(2)
        partialHits.add(3)
        misses.add(4)
        bypasses.add(5)
        collapsed.add(6)
        upstreamReasons[.gap].add(7)
        upstreamBytes.add(8)
        openFetches.set(9)
        resumedTransfers.add(10)
        evictedExtents.add(11)
        evictedBytes.add(12)
        droppedChunks.add(13)
        checkpoints.add(14)
        connections.set(15)
        acceptedConnections.add(16)
        validated.add(17)
        stale.add(18)
    }
}
