import Downloads
import Testing

/// What is remembered of downloads that have ended.
@Suite struct HistoryTests {
    @Test func itHasTheNewestFirst() throws {
        let desk = try Desk()
        _ = try desk.add(
            ["a", "b", "c"].map { name in
                DownloadOrder(url: Desk.origin(name), options: .init { $0.category = name == "b" ? nil : "series" })
            })
        try desk.transfer("c").complete(70)
        desk.pass(5)
        try desk.transfer("a").fail(.final, "404")
        try desk.act(.cancel, "b")

        let history = desk.history()
        #expect(history.map { Desk.name($0) } == ["b", "a", "c"])
        #expect(history.map(\.state) == [.cancelled, .failed, .completed])
        #expect(history.map(\.message) == [nil, "404", nil])
        #expect((history[2].bytes, history[2].total, history[2].finished?.seconds) == (70, 70, 1_700_000_000))
        #expect(history[1].finished?.seconds == 1_700_000_005)
        #expect(desk.history(limit: 1).map { Desk.name($0) } == ["b"])
        #expect(desk.history(limit: 1, category: "series").map { Desk.name($0) } == ["a"])
        #expect(desk.history(limit: 0) == [])
        #expect(desk.listing.map { Desk.name($0) } == ["b", "a", "c"])
    }

    @Test func onlyTheNewestThousandAreRemembered() throws {
        let desk = try Desk(maxActive: 64)
        desk.source.onBegin { transfer in
            if transfer.name == "failed" { transfer.fail(.final) } else { transfer.complete() }
        }
        try desk.add("failed")
        desk.catchUp()
        _ = try desk.add((1...1000).map { Desk.order("\($0)") })
        desk.catchUp()
        #expect(desk.history().count == 1000)
        #expect(desk.history().last.map { Desk.name($0) } == "1")
        #expect(desk.listing.count == 1000)
        #expect(try desk.saved("state", as: String.self).count == 1000)
        #expect(desk.restorePoints.releasedKeys == [Desk.url("failed")], "nobody can go on with it any more")
        let next = try Desk(after: desk)
        #expect(next.history().map(\.id) == desk.history().map(\.id))
    }

    @Test func clearingForgetsWhatHasEnded() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("completed", "failed", "cancelled", "running", "waiting")
        try desk.transfer("completed").complete()
        try desk.transfer("failed").fail(.final)
        try desk.act(.cancel, "cancelled")
        let released = desk.restorePoints.released.count
        #expect(try desk.manager.perform { try $0.clearHistory() } == 3)
        #expect(desk.history() == [])
        #expect(desk.listing.map { Desk.name($0) } == ["running", "waiting"])
        #expect(try desk.saved("state") == ["running": "downloading", "waiting": "waiting"])
        #expect(
            desk.restorePoints.released.count == released + 1,
            "the failed one has left bytes with which nobody can go on")
        #expect(try desk.manager.perform { try $0.clearHistory() } == 0)
    }
}
