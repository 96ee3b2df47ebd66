import Activity
import CachePolicy
import Downloads
import Testing

@testable import ReelcacheCLI

/// The counters of a proxy as people read them.
@Suite struct StatsTextTests {
    private let metrics = ProxyMetrics()

    private func stats(up seconds: Double = 5, size: Int64 = 5_000_000_000) -> StatsSnapshot {
        metrics.size.set(size)
        metrics.limit.set(20_000_000_000)
        metrics.minFree.set(1_000_000_000)
        return StatsSnapshot(metrics, version: "1.2.3", uptimeSeconds: seconds)
    }

    private func lines(up seconds: Double = 5, _ downloads: DownloadTotals = DownloadTotals(), width: Int? = nil)
        -> [String]
    {
        StatsText(stats(up: seconds), downloads, baseURL: "http://127.0.0.1:1", width: width).lines
    }

    @Test func narrowTerminalGetsFoldedLinesAndFewerColumns() {
        #expect(
            lines(width: 40) == [
                "proxy       http://127.0.0.1:1, version", "            1.2.3, up 5 s, 0 connections",
                "requests    0: 0 hits, 0 partial, 0", "            misses, 0 bypassed",
                "sent        0 bytes: 0 bytes from the", "            cache, 0 bytes from origins",
                "first byte   median  answers", "  hits            -        0", "  misses          -        0",
                "origins     0 bytes received, 0 running", "cache       5.00 GB of 20.0 GB (25 %),",
                "            at least 1.00 GB of the disk", "            stay free",
            ])
        #expect(StatsRates.header(width: 40) == "  requests  hit ratio     from cache")
        #expect(StatsRates.header(width: 35) == "  requests  hit ratio")
    }

    @Test func proxyThatHasDoneNothing() {
        #expect(
            lines() == [
                "proxy       http://127.0.0.1:1, version 1.2.3, up 5 s, 0 connections",
                "requests    0: 0 hits, 0 partial, 0 misses, 0 bypassed",
                "sent        0 bytes: 0 bytes from the cache, 0 bytes from origins",
                "first byte   median     90 %     99 %  answers", "  hits            -        -        -        0",
                "  misses          -        -        -        0", "origins     0 bytes received, 0 running",
                "cache       5.00 GB of 20.0 GB (25 %), at least 1.00 GB of the disk stay free",
            ])
    }

    @Test func proxyThatHasDoneEverything() {
        metrics.connections.set(1)
        let counts: [(Counter, Int64)] = [
            (metrics.requests, 200), (metrics.hits, 150), (metrics.partialHits, 20), (metrics.misses, 30),
            (metrics.bypasses, 1), (metrics.stale, 2), (metrics.validated, 3), (metrics.collapsed, 4),
            (metrics.bytesFromCache, 3_000_000_000), (metrics.bytesFromUpstream, 1_000_000_000),
            (metrics.upstreamBytes, 1_500_000_000), (metrics.resumedTransfers, 5), (metrics.evictedExtents, 1),
            (metrics.evictedBytes, 4_194_304), (metrics.droppedChunks, 2), (metrics.tunnels, 3),
            (metrics.tunnelBytes, 1000), (metrics.upstreamReasons[.gap], 7), (metrics.upstreamReasons[.uriMiss], 9),
        ]
        for (counter, count) in counts { counter.add(count) }
        metrics.openFetches.set(2)
        metrics.firstByteOfHits.record(nanoseconds: 400_000)
        metrics.firstByteOfMisses.record(nanoseconds: 45_000_000)
        metrics.firstByteOfMisses.record(nanoseconds: 2_000_000_000)
        for error in ["refused", "origin-timeout", "origin-timeout"] { metrics.errors.add(error) }
        var downloads = DownloadTotals()
        (downloads.downloading, downloads.waiting, downloads.paused, downloads.bytesPerSecond) = (1, 2, 3, 2_000_000)
        #expect(
            lines(up: 100_000, downloads) == [
                "proxy       http://127.0.0.1:1, version 1.2.3, up 27 h, 1 connection",
                "requests    200: 150 hits (75 %), 20 partial (10 %), 30 misses (15 %), 1 bypassed",
                "            2 stale, 3 revalidated, 4 joined another's fetch",
                "sent        4.00 GB: 3.00 GB from the cache (75 %), 1.00 GB from origins",
                "first byte   median     90 %     99 %  answers", "  hits       0.4 ms   0.4 ms   0.4 ms        1",
                "  misses      46 ms    2.0 s    2.0 s        2",
                "origins     1.50 GB received, 2 running, 5 resumed", "            requests: 9 uri-miss, 7 gap",
                "cache       5.00 GB of 20.0 GB (25 %), at least 1.00 GB of the disk stay free",
                "            4.19 MB evicted in 1 extent", "            2 damaged chunks dropped",
                "tunnels     3, 0 open, 1.00 kB through them",
                "downloads   1 running at 2.00 MB/s, 2 waiting, 3 paused", "errors      2 origin-timeout, 1 refused",
            ])
    }

    @Test func whyDownloadsWaitIsSaid() throws {
        var downloads = DownloadTotals()
        (downloads.waiting, downloads.hold, downloads.scheduledRate) = (2, "2GB/day used up until 00:00", 500_000)
        downloads.settings.caps = try DownloadCap.parse(["2GB/day", "40GB/month"])
        downloads.usage = .init(today: 2_000_000_000, thisMonth: 9_000_000_000)
        metrics.resolverRuns.add(1)
        metrics.refreshedLinks.add(2)
        let lines = lines(downloads)
        #expect(
            lines.suffix(3) == [
                "downloads   0 running, 2 waiting, 0 paused; the schedule allows 500 kB/s",
                "            2GB/day used up until 00:00",
                "            2.00 GB fetched today, 9.00 GB this month, of 2GB/day, 40GB/month",
            ])
        #expect(lines.contains("            1 run of resolvers, 2 expired links replaced"))
    }

    /// A proxy of another version may answer anything.
    @Test func oddNumbersAreText() throws {
        metrics.requests.add(1)
        metrics.hits.add(.max)
        metrics.bytesFromCache.add(.max)
        metrics.bytesFromUpstream.add(.max)
        metrics.errors.add("\u{1B}[31m")
        let lines = lines(up: .infinity)
        #expect(!lines.joined().contains("\u{1B}") && lines.contains { $0.contains("9.22 EB") })
    }

    // MARK: Rates

    private func line(_ before: StatsSnapshot, _ now: StatsSnapshot) -> [String] {
        var downloads = DownloadTotals()
        downloads.downloading = 3
        let line = StatsRates(from: before, to: now, downloads).line(width: nil)
        #expect(line.count == StatsRates.header(width: nil).count)
        return line.replacing(/\s{2,}/, with: "|").split(separator: "|").map { String($0) }
    }

    @Test func ratesArePerSecondOfTheProxysTime() {
        let before = stats(up: 10)
        metrics.requests.add(25)
        metrics.bytesFromCache.add(9_000_000)
        metrics.bytesFromUpstream.add(1_000_000)
        metrics.upstreamBytes.add(2_500_000)
        metrics.openFetches.set(4)
        metrics.connections.set(5)
        #expect(
            line(before, stats(up: 15))
                == ["5.0/s", "90 %", "1.80 MB/s", "200 kB/s", "500 kB/s", "4", "3", "5", "5.00 GB"])
    }

    @Test func withoutBytesThereIsNoRatio() {
        #expect(line(stats(up: 10), stats(up: 11)).prefix(3) == ["0.0/s", "-", "0 bytes/s"])
        // No time has passed.
        #expect(line(stats(up: 10), stats(up: 10)).first == "0.0/s")
    }

    /// It counts from zero.
    @Test func proxyThatWasRestartedMeanwhileHasNoNegativeRates() {
        metrics.requests.add(1000)
        let before = stats(up: 500)
        let again = ProxyMetrics()
        again.requests.add(200)
        let now = StatsSnapshot(again, version: "1.2.3", uptimeSeconds: 2)
        #expect(line(before, now).first == "100/s")
    }
}
