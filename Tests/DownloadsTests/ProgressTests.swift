import Downloads
import HTTPModel
import Synchronization
import Testing

@testable import Downloads

/// How far downloads are, and how fast.
@Suite struct ProgressTests {
    @Test func theRateFollowsSlowly() throws {
        var rate = TransferRate()
        rate.sample(5_000_000, at: 0)
        #expect(rate.bytesPerSecond == nil, "what is there at first was there before")
        for second in 1...20 { rate.sample(5_000_000 + Int64(second) * 1000, at: Double(second)) }
        #expect(rate.bytesPerSecond == 1000)
        // After the time constant two thirds of the way are done.
        rate.sample(5_020_000 + 5 * 4000, at: 25)
        let after = try #require(rate.bytesPerSecond)
        #expect((2890...2900).contains(after))
        rate.sample(5_040_000, at: 25)
        #expect(rate.bytesPerSecond == after, "no time has passed")
        for second in 26...100 { rate.sample(5_040_000, at: Double(second)) }
        #expect(rate.bytesPerSecond == nil, "nothing comes any more")
    }

    @Test(
        arguments: [
            (100, 10, 10), (101, 10, 11), (0, 10, 0), (-5, 10, 0), (Int64.max, 1, Int64.max), (100, 0, nil),
            (100, nil, nil), (nil, 10, nil),
        ] as [(Int64?, Int64?, Int64?)])
    func theTimeThatIsLeftIsRoundedUp(bytes: Int64?, rate: Int64?, expected: Int64?) {
        #expect(TransferRate.seconds(for: bytes, at: rate) == expected)
    }

    @Test func reportsSayHowFarItIs() throws {
        let desk = try Desk(maxActive: 2)
        try desk.add("a", "b", "c")
        try desk.transfer("a").has(1000, of: 10_000, fileName: "film.mp4")
        try desk.transfer("b").has(500)
        desk.pass(0.25)
        #expect(
            (desk["a"].bytes, desk["a"].total, desk["a"].fileName, desk["a"].bytesPerSecond) == (
                1000, 10_000, "film.mp4", nil
            ))
        try desk.transfer("a").has(2000, of: 10_000)
        try desk.transfer("b").has(600)
        desk.pass(1)
        #expect((desk["a"].bytesPerSecond, desk["a"].eta, desk["a"].fileName) == (1000, 8, "film.mp4"))
        #expect((desk["b"].bytesPerSecond, desk["b"].eta, desk["b"].total) == (100, nil, nil))
        #expect(
            (desk.summary.bytes, desk.summary.total, desk.summary.bytesPerSecond, desk.summary.eta) == (
                2600, nil, 1100, nil
            ))

        try desk.act(.cancel, "b")
        try desk.transfer("c").has(1, of: 2000)
        desk.pass(0)
        #expect(
            (desk.summary.bytes, desk.summary.total, desk.summary.bytesPerSecond, desk.summary.eta) == (
                2001, 12_000, 1000, 10
            ))
        try desk.act(.pause, "a")
        #expect((desk["a"].bytesPerSecond, desk["a"].eta) == (nil, nil))
        #expect((desk.summary.downloading, desk.summary.waiting, desk.summary.paused) == (1, 0, 1))
    }

    @Test func aTotalThatCannotBeAddedUpIsNoHarm() throws {
        let desk = try Desk(maxActive: 2)
        try desk.add("a", "b")
        for name in ["a", "b"] { try desk.transfer(name).has(.max, of: .max) }
        desk.pass(1)
        #expect(desk.summary.total == .max)
    }

    @Test func progressIsSavedOnceASecond() throws {
        let desk = try Desk()
        try desk.add("a")
        desk.pass(10)
        try desk.transfer("a").has(100, of: 1000)
        desk.pass(0.25)
        #expect(try desk.saved("bytes") == ["a": 100])
        for step in 1...3 {
            try desk.transfer("a").has(100 + Int64(step), of: 1000)
            desk.pass(0.25)
            #expect(desk["a"].bytes == 100 + Int64(step), "people see it at once")
        }
        #expect(try desk.saved("bytes") == ["a": 100])
        desk.pass(0.25)
        #expect(try desk.saved("bytes") == ["a": 103])
        try desk.transfer("a").has(500, of: 1000)
        try desk.act(.pause, "a")
        #expect(try desk.saved("bytes") == ["a": 500], "a change of state is saved at once, and how far it was with it")
    }

    /// Before its first byte a download is in the database, as one that runs, with what was cached before.
    @Test func aDownloadIsSavedBeforeItBegins() throws {
        let desk = try Desk()
        let seen = Mutex<[String]>([])
        let path = desk.path
        desk.source.onBegin { transfer in
            let row = try? Self.row(path, transfer.name)
            seen.withLock { $0.append(row ?? "nothing") }
        }
        try desk.add("a", "b")
        #expect(seen.withLock { $0 } == ["downloading with a restore point", "downloading with a restore point"])
    }

    private static func row(_ path: String, _ name: String) throws -> String? {
        try SavedRows.read(
            path, "SELECT state || iif(claim IS NULL, '', ' with a restore point') FROM download WHERE url = ?",
            Desk.url(name))
    }

    @Test func ticksAreAskedForOnlyWhileTimeChangesSomething() throws {
        let desk = try Desk(maxActive: 1)
        #expect(!desk.clock.isTicking)
        try desk.add("a", "b")
        #expect(desk.clock.isTicking)
        try desk.change(.all, DownloadChange(action: .pause))
        #expect(!desk.clock.isTicking)
        try desk.change(.all, DownloadChange(action: .resume))
        try desk.transfer("a").fail(.network)
        try desk.act(.cancel, "b")
        #expect(desk.clock.isTicking, "one waits for its next attempt")
        try desk.act(.cancel, "a")
        #expect(!desk.clock.isTicking)
    }

    @Test func theSystemsClockTicksUntilItIsTold() async throws {
        let clock = SystemDownloadClock()
        #expect(clock.now > 1_700_000_000)
        let ticks = AsyncStream<Double> { continuation in
            clock.tick(true) { continuation.yield(clock.monotonic) }
        }
        var seen: [Double] = []
        for await tick in ticks.prefix(3) { seen.append(tick) }
        #expect(seen == seen.sorted())
        clock.tick(false) {}
    }
}
