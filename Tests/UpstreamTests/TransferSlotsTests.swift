import CachePolicy
import Synchronization
import TestSupport
import Testing
import Upstream

/// How many transfers run at once, and who is next.
@Suite struct TransferSlotsTests {
    /// Takes slots and writes down whose turn it is.
    private final class Line: Sendable {
        let slots: TransferSlots
        private let woken = Mutex<[String]>([])

        init(total: Int, perHost: Int) { slots = TransferSlots(.init(total: total, perHost: perHost)) }

        @discardableResult
        func take(
            _ name: String, _ host: String, _ priority: UpstreamRequest.Priority = .playback,
            of client: IPAddress? = nil
        ) -> TransferSlots.Ticket? {
            slots.take(host, of: client, priority) { self.woken.withLock { $0.append(name) } }
        }

        func park(_ name: String, _ mayGiveWay: Bool) -> UInt64? {
            take(name, "a")
            let giveWay: @Sendable () -> Void = { self.woken.withLock { $0.append(name) } }
            return slots.park("a", of: nil, giveWay: mayGiveWay ? giveWay : nil)
        }

        var turns: [String] { woken.withLock { $0 } }
    }

    @Test func limitsHoldInAllAndForEachHost() {
        let line = Line(total: 3, perHost: 2)
        #expect(line.take("1", "a") == nil && line.take("2", "a") == nil)
        #expect(line.take("3", "a") != nil)
        #expect(line.take("4", "b") == nil)
        #expect(line.take("5", "c") != nil)
        #expect(line.slots.count == (3, 2))
        line.slots.give("a")
        #expect(line.turns == ["3"] && line.slots.count == (3, 1))
        line.slots.give("b")
        #expect(line.turns == ["3", "5"])
        for host in ["a", "a", "c"] { line.slots.give(host) }
        #expect(line.slots.count == (0, 0))
    }

    /// The rest is for others, in all and for each host.
    @Test func oneClientHasThreeQuartersAtMost() throws {
        let line = Line(total: 8, perHost: 4)
        let (greedy, other) = (IPAddress("192.0.2.1"), IPAddress("192.0.2.2"))
        for host in ["a", "a", "a", "b", "b", "b"] { #expect(line.take("at once", host, of: greedy) == nil) }
        #expect(line.take("fourth", "a", of: greedy) != nil && line.take("seventh", "c", of: greedy) != nil)
        #expect(line.take("other", "a", of: other) == nil && line.take("other", "c", of: other) == nil)
        line.slots.give("a", of: other)
        #expect(line.turns == [])
        line.slots.give("a", of: greedy)
        #expect(line.turns == ["fourth"])
        line.slots.give("b", of: greedy)
        #expect(line.turns == ["fourth", "seventh"])
    }

    /// Those of one host are no less in each other's way.
    @Test func clientsOfAHostTakeTurns() {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "a")
        let (greedy, other) = (IPAddress("192.0.2.1"), IPAddress("192.0.2.2"))
        for name in ["1", "2", "3"] { line.take(name, "a", of: greedy) }
        line.take("other", "a", of: other)
        line.slots.give("a")
        line.slots.give("a", of: greedy)
        #expect(line.turns == ["1", "other"])
    }

    /// 100 bytes a second, with the only slot.
    @Test(arguments: [true, false])
    func answerThatTricklesIsGivenUpOnceOthersWait(isAwaited: Bool) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.serve("/slow.mp4", bytes: [UInt8](repeating: 1, count: isAwaited ? 10_000 : 500))
        origin.script("/slow.mp4") { $0.bytesPerSecond = 100 }
        origin.serve("/b.mp4", bytes: [2])
        let upstreams = try Upstreams(
            UpstreamSettings(stallTimeout: 2), slots: TransferSlots(.init(total: 1, perHost: 1)))
        let slow = Recorder()
        upstreams.start(UpstreamRequest(url: origin.url("/slow.mp4")), slow)
        _ = try slow.head()
        if isAwaited {
            let (recorder, error) = try upstreams.fetch(origin.url("/b.mp4"))
            #expect(error == nil && recorder.body == [2])
        }
        #expect(try slow.outcome() == (isAwaited ? .timedOut(host: "127.0.0.1", phase: .body) : nil))
    }

    /// How long a request takes that is passed on is up to its client.
    @Test func whatIsPassedOnTakesNoSlotOfPlayers() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.serve("/a.mp4", bytes: [1])
        origin.script("/new") { $0.holdHead = true }
        let upstreams = try Upstreams(slots: TransferSlots(.init(total: 1, perHost: 1)))
        let passed = Recorder()
        let running = upstreams.start(UpstreamRequest(url: origin.url("/new"), method: .other("POST")), passed)
        try origin.waitForRequests("/new", count: 1)
        #expect(try upstreams.fetch(origin.url("/a.mp4")).error == nil)
        running.cancel(passed)
    }

    @Test func playersGoBeforeDownloads() {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "a")
        line.take("download", "a", .download)
        line.take("player", "a")
        line.slots.give("a")
        line.slots.give("a")
        #expect(line.turns == ["player", "download"])
    }

    /// A host for which many wait does not hold up the others.
    @Test func hostsTakeTurns() {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "z")
        for name in ["a1", "a2", "a3", "b1", "c1", "b2"] { line.take(name, String(name.prefix(1))) }
        for host in ["z", "a", "b", "c", "a", "b"] { line.slots.give(host) }
        #expect(line.turns == ["a1", "b1", "c1", "a2", "b2", "a3"])
    }

    @Test func whoLeavesIsNotWoken() throws {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "a")
        let left = try #require(line.take("left", "a"))
        line.take("next", "a")
        line.slots.leave(left)
        line.slots.give("a")
        #expect(line.turns == ["next"])
    }

    /// Its turn came while it was about to leave: the next one gets it.
    @Test func whoLeavesAfterItsTurnCameGivesItOn() throws {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "a")
        let left = try #require(line.take("left", "a"))
        line.take("next", "a")
        line.slots.give("a")
        line.slots.leave(left)
        #expect(line.turns == ["left", "next"] && line.slots.count == (1, 0))
    }

    @Test func whatGoesOnAfterAPauseDoesNotWait() {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "a")
        line.take("1", "a")
        line.slots.give("a")
        line.slots.takeAgain("a")
        #expect(line.turns == ["1"] && line.slots.count == (2, 0))
        line.take("2", "a")
        line.slots.give("a")
        #expect(line.turns == ["1"])
        line.slots.give("a")
        #expect(line.turns == ["1", "2"])
    }

    /// Of the slots, four; of the places for those that are paused, two.
    @Test func whatIsPausedTakesAPlaceOfOneThatCanBeContinued() throws {
        let line = Line(total: 4, perHost: 4)
        #expect(line.park("1", false) != nil)
        let second = try #require(line.park("2", true))
        #expect(line.slots.usage == (0, 2))
        #expect(line.park("3", false) != nil)
        #expect(line.turns == ["2"])
        #expect(line.slots.usage == (0, 2))
        // It has gone already.
        line.slots.unpark(second)
        #expect(line.park("4", true) == nil)
        #expect(line.turns == ["2"])
        #expect(line.slots.usage == (1, 2))
    }

    // MARK: Transfers

    @Test func originSeesNoMoreThanTheLimit() throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 4, size: 100_000)
        origin.serve("/a.mp4", media)
        origin.holdHeads("/a.mp4")
        let upstreams = try Upstreams(slots: TransferSlots(.init(total: 10, perHost: 2)))
        let recorders = (0..<8).map { _ in Recorder() }
        for recorder in recorders { upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), recorder) }
        try origin.waitForRequests("/a.mp4", count: 2)
        #expect(origin.requestCount("/a.mp4") == 2 && upstreams.onLoop { $0.openTransfers } == 8)
        origin.release("/a.mp4")
        for recorder in recorders {
            #expect(try recorder.outcome() == nil)
            #expect(recorder.received(media))
        }
        #expect(upstreams.slots.count == (0, 0))
    }

    /// A player that has paused costs nobody his turn.
    @Test func pausedTransferMakesRoom() throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 5, size: 3_000_000)
        origin.serve("/a.mp4", media)
        let upstreams = try Upstreams(slots: TransferSlots(.init(total: 1, perHost: 1)))
        let paused = Recorder(allowance: 100_000)
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), paused)
        _ = try paused.state.wait(for: "a pause") { $0.refusals > 0 ? true : nil }
        let (other, error) = try upstreams.fetch(origin.url("/a.mp4"))
        #expect(error == nil && other.received(media))
        paused.state.update { $0.allowance = .max }
        running.onLoop { $0.resume() }
        #expect(try paused.outcome() == nil)
        #expect(paused.received(media) && upstreams.slots.count == (0, 0))
    }

    /// One that takes a breath keeps its turn.
    @Test(arguments: [false, true]) func heldBackTransferKeepsItsSlot(isRefused: Bool) throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 5, size: 3_000_000)
        origin.serve("/a.mp4", media)
        let upstreams = try Upstreams(slots: TransferSlots(.init(total: 2, perHost: 2)))
        let paused = Recorder(allowance: isRefused ? 100_000 : .max) { transfer, step in
            if isRefused ? step == .refusal : step == .body && transfer.bodyBytesReceived == 0 { transfer.pause() }
        }
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), paused)
        _ = try paused.state.wait(for: "bytes") { (isRefused ? $0.refusals : $0.body.count) > 0 ? () : nil }
        #expect(running.onLoop { $0.isPaused } && upstreams.slots.usage == (1, 0))
        paused.state.update { $0.allowance = .max }
        running.onLoop { $0.resume() }
        #expect(try paused.outcome() == nil)
        #expect(paused.received(media) && upstreams.slots.usage == (0, 0))
    }

    @Test func playerThatWaitsTooLongIsTold() throws {
        let origin = try ScriptedOrigin()
        origin.serve("/a.mp4", Media(seed: 6, size: 1000))
        let upstreams = try Upstreams(
            UpstreamSettings(stallTimeout: 0.1), slots: TransferSlots(.init(total: 1, perHost: 1)))
        // Somebody else's.
        _ = upstreams.slots.take("127.0.0.1", .playback) {}
        let error = try upstreams.fetch(origin.url("/a.mp4")).error
        #expect(
            error == .timedOut(host: "127.0.0.1", phase: .queue) && error?.description.contains("max_fetches") == true)
        #expect(upstreams.slots.count == (1, 0))
    }

    /// Who downloads waits for as long as it takes, after a redirect too: what timed the hop before says nothing of
    /// this one.
    @Test func downloadWaitsForItsTurnAfterARedirect() throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 7, size: 1000)
        origin.serve("/b.mp4", media)
        origin.script("/a.mp4") { $0.redirect = "/b.mp4" }
        let upstreams = try Upstreams(
            UpstreamSettings(stallTimeout: 2), slots: TransferSlots(.init(total: 1, perHost: 1)))
        let download = Recorder(), player = Recorder(), turns = Monitor(0)
        var request = UpstreamRequest(url: origin.url("/a.mp4"))
        request.priority = .download
        let other = upstreams.onLoop { [request, slots = upstreams.slots] client in
            _ = client.start(request, delegate: download)
            // Somebody else's, whose turn it is when the redirect has come.
            return slots.take("other.test", .playback) { turns.update { $0 += 1 } }
        }
        try #require(other != nil, "the download has the only slot")
        _ = try turns.wait(for: "the redirect") { $0 > 0 ? true : nil }
        // It comes later and waits as long: when it has waited in vain, so has the time of the first hop passed.
        upstreams.start(UpstreamRequest(url: origin.url("/b.mp4")), player)
        #expect(try player.outcome() == .timedOut(host: "127.0.0.1", phase: .queue))
        #expect(upstreams.onLoop { $0.openTransfers } == 1)
        upstreams.slots.give("other.test")
        #expect(try download.outcome() == nil)
        #expect(download.received(media) && upstreams.slots.count == (0, 0))
    }

    /// Somebody plays what was queued as a download: it goes before other downloads, which came sooner.
    @Test func downloadThatIsPlayedIsNoLongerBehindDownloads() throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 8, size: 1000)
        let upstreams = try Upstreams(slots: TransferSlots(.init(total: 1, perHost: 1)))
        _ = upstreams.slots.take("other.test", .playback) {}
        let transfers = (0..<3).map { index in
            origin.serve("/\(index).mp4", media)
            var request = UpstreamRequest(url: origin.url("/\(index).mp4"))
            request.priority = .download
            let recorder = Recorder()
            return (recorder, upstreams.start(request, recorder))
        }
        transfers[2].1.onLoop { $0.hurry() }
        // Once is enough.
        transfers[2].1.onLoop { $0.hurry() }
        upstreams.slots.give("other.test")
        for (recorder, _) in transfers { #expect(try recorder.outcome() == nil) }
        #expect(origin.snapshot.requests.map(\.path) == ["/2.mp4", "/0.mp4", "/1.mp4"])
        #expect(upstreams.slots.count == (0, 0))
    }

    /// None of them costs a look at all the others.
    @Test func manyWhoWaitComeAndGo() throws {
        let line = Line(total: 1, perHost: 1)
        line.take("0", "a")
        let tickets = try (1...20_000).map { try #require(line.take("\($0)", "a")) }
        for ticket in tickets.dropLast().reversed() { line.slots.leave(ticket) }
        #expect(line.slots.count == (1, 1))
        line.slots.give("a")
        #expect(line.turns == ["20000"])
    }
}
