import CachePolicy
@testable import Downloads
import Testing

/// A host that fails is tried by one download at a time; the others wait for it.
@Suite struct HostRestTests {
    @Test func whatWaitsIsNotTriedWhereOneHasJustFailed() throws {
        let desk = try Desk(maxActive: 2)
        let elsewhere = DownloadOrder(url: try OriginURL(url: "https://other.example/film"))
        try desk.add("a", "b", "c", "d", "e")
        try desk.transfer("a").fail(.network, "connection refused")
        #expect(desk.running == ["b"], "it had begun before")
        #expect(desk["c"].message == "connection refused" && desk["c"].retryDate != nil && desk["c"].failures == 0)
        try desk.transfer("b").fail(.network, "connection refused")
        #expect(desk.running == [])
        _ = try desk.add([elsewhere])
        #expect(desk.running == ["film"], "other hosts are not concerned")
        desk.pass(0.75)
        #expect(desk.running == ["film", "c"], "one tries for all")
        try desk.transfer("film").complete()
        desk.pass(0.5)
        #expect(Set(desk.running) == ["c"] && desk["a"].failures == 1, "not even those whose own time has come")
        try desk.transfer("c").has(1, of: 100)
        desk.pass(0.25)
        #expect(desk.running == ["c", "a"], "it works again: they go on in their order")
        #expect(desk["d"].message == nil && desk["d"].retryDate == nil)
    }

    /// An origin that refuses for a night fails nothing.
    @Test func aNightWithoutTheOriginCostsNoDownload() throws {
        let desk = try Desk(maxActive: 3)
        let names = (0..<10).map { "episode\($0)" }
        desk.source.onBegin { $0.fail(.network, "connection refused") }
        _ = try desk.add(names.map { Desk.order($0) })
        for _ in 0..<8 * 720 { desk.pass(5) }
        #expect(desk.listing.count == 10 && desk.listing.allSatisfy { $0.state == .waiting })
        #expect(desk.begun.count < 60, "\(desk.begun.count) attempts")
        desk.source.onBegin { $0.complete() }
        for _ in 0..<720 { desk.pass(5) }
        #expect(desk.history().count == 10 && desk.history().allSatisfy { $0.state == .completed })
    }

    /// 404 is an answer.
    @Test func oneThatFailsForGoodHoldsNobodyBack() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        try desk.transfer("a").fail(.final, "404")
        #expect(desk.running == ["b"])
    }

    /// Perhaps only one URL fails.
    @Test func anotherDownloadTriesFirst() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.name == "bad" ? $0.fail(.busy(retryAfter: nil)) : $0.complete() }
        try desk.add("bad", "b", "c")
        for _ in 0..<8 { desk.pass(0.25) }
        #expect(desk["b"].state == .completed && desk["c"].state == .completed && desk["bad"].state == .waiting)
    }

    @Test(arguments: ["retry", "order", "network", "pause"])
    func peopleAndANewNetworkEndIt(_ how: String) throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        try desk.transfer("a").fail(.network)
        desk.pass(0.75)
        try desk.transfer("b").fail(.network)
        for name in ["a", "b"] where how == "network" {
            desk.pass(4)
            try desk.transfer(name).fail(.network)
        }
        #expect(desk.running == [])
        switch how {
        case "retry": try desk.act(.retry, "b")
        case "order": try desk.add("c")
        case "network": desk.manager.perform { $0.networkChanged() }
        default:
            // The one that would try is paused: another one does.
            desk.pass(3)
            #expect(desk.running == ["a"])
            try desk.act(.pause, "a")
            desk.pass(0.25)
        }
        #expect(desk.running == [["retry": "b", "order": "c", "network": "a", "pause": "b"][how]])
    }

    /// In the order in which they were ordered, although the newest failure is listed first.
    @Test func allAreRetriedInTheirOrder() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.fail(.final) }
        try desk.add("a", "b", "c")
        desk.source.onBegin { _ in }
        try desk.change(.all, DownloadChange(action: .retry))
        #expect(desk.running == ["a"] && desk.waiting == ["b", "c"])
    }

    @Test func whatHasWaitedAsLongIsGivenUpToo() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.fail(.network, "connection refused") }
        desk.set { $0.retryFor = 7200 }
        try desk.add("a", "b", "c")
        for _ in 0..<4 * 720 { desk.pass(5) }
        #expect(
            desk.history().count == 3
                && desk.history().allSatisfy { $0.state == .failed && $0.message == "connection refused" })
        #expect(!desk.clock.isTicking)
    }
}
