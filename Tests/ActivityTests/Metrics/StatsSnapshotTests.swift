import Activity
import Foundation
import Testing

@Suite struct StatsSnapshotTests {
    private let metrics = ProxyMetrics()

    private var snapshot: StatsSnapshot {
        StatsSnapshot(
            metrics, version: "1.2.3", uptimeSeconds: 4.5, size: 10, limit: 20, minFree: 30, openResources: 2,
            shortResponses: (3, 4000))
    }

    @Test func beforeTheFirstByteThereAreNoRatios() {
        #expect(snapshot.bytes.hitRatio == nil)
        #expect(snapshot.firstByteOfHits.p50 == nil)
        #expect(snapshot.firstByteOfHits.count == 0)
    }

    @Test func hitRatioIsOfBytes() {
        metrics.bytesFromCache.add(300)
        metrics.bytesFromUpstream.add(100)
        #expect(snapshot.bytes.hitRatio == 0.75)
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
        let requests = stats.requests
        #expect(
            [
                requests.total, requests.hits, requests.partialHits, requests.misses, requests.bypasses,
                requests.collapsed,
            ] == [1, 2, 3, 4, 5, 6])
        #expect([requests.validated, requests.stale] == [17, 18])
        #expect(
            stats.upstream.requests == [
                "uri-miss": 0, "gap": 7, "resume": 0, "bypass": 0, "validation": 0, "head": 0, "feed": 0, "method": 0,
            ])
        #expect(stats.upstream.bytes == 8 && stats.upstream.openFetches == 9 && stats.upstream.resumedTransfers == 10)
        let cache = stats.cache
        #expect(
            [cache.evictedExtents, cache.evictedBytes, cache.droppedChunks, cache.checkpoints] == [11, 12, 13, 14])
        #expect(cache.size == 10 && cache.limit == 20 && cache.minFree == 30 && cache.openResources == 2)
        #expect(cache.shortResponses == 3 && cache.shortResponseBytes == 4000)
        #expect(stats.connections == 15 && stats.acceptedConnections == 16)
        #expect(stats.errors == ["disk-read": 1])
    }

    @Test func jsonReadsBackToAnEqualValue() throws {
        metrics.firstByteOfHits.record(nanoseconds: 1_000_000)
        metrics.errors.add("accept")
        let stats = snapshot
        #expect(try JSONDecoder().decode(StatsSnapshot.self, from: JSONEncoder().encode(stats)) == stats)
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
