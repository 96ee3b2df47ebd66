import CachePolicy
import Testing

@testable import Downloads

/// An origin that cannot be reached is tried by one download at a time; the others wait for it.
@Suite struct HostRestTests {
    private static func order(_ url: String, atOnce: Bool = false) throws -> DownloadOrder {
        DownloadOrder(url: try OriginURL(url: url), options: DownloadOptions { $0.isAtOnce = atOnce })
    }

    @Test func whatWaitsIsNotTriedWhereOneHasJustFailed() throws {
        let desk = try Desk(maxActive: 2)
        try desk.add("a", "b", "c", "d", "e")
        try desk.transfer("a").fail(.network, "connection refused")
        #expect(desk.running == ["b"], "it had begun before")
        #expect(desk["c"].message == "connection refused" && desk["c"].retryDate != nil && desk["c"].failures == 0)
        try desk.transfer("b").fail(.network, "connection refused")
        #expect(desk.running == [])
        _ = try desk.add([Self.order("https://other.example/film"), Self.order("https://example.org:8443/port")])
        #expect(desk.running == ["film", "port"], "other origins are not concerned")
        desk.pass(1)
        try desk.transfer("film").complete()
        try desk.transfer("port").complete()
        #expect(desk.running == ["c"] && desk["a"].failures == 1, "one tries for all, not those whose time has come")
        try desk.transfer("c").has(1, of: 100)
        desk.pass(0.25)
        #expect(desk.running == ["c", "a"], "it works again: they continue in their order")
        #expect(desk["d"].message == nil && desk["d"].retryDate == nil)
    }

    /// An origin that refuses for a night fails nothing.
    @Test func aNightWithoutTheOriginCostsNoDownload() throws {
        let desk = try Desk(maxActive: 3)
        desk.source.onBegin { $0.fail(.network, "connection refused") }
        _ = try desk.add((0..<10).map { Desk.order("episode\($0)") })
        for _ in 0..<8 * 720 { desk.pass(5) }
        #expect(desk.listing.count == 10 && desk.listing.allSatisfy { $0.state == .waiting })
        #expect(desk.begun.count < 30, "\(desk.begun.count) attempts")
        #expect(
            desk.log.lines(.warning) == [
                "downloads from https://example.org wait: connection refused; one of them tries again later"
            ])
        desk.source.onBegin { $0.complete() }
        for _ in 0..<720 { desk.pass(5) }
        #expect(desk.history().count == 10 && desk.history().allSatisfy { $0.state == .completed })
    }

    /// 404 is an answer, and so is 503.
    @Test(arguments: [.final, .busy(retryAfter: nil)] as [DownloadFault.Kind])
    func anAnswerHoldsNobodyBack(kind: DownloadFault.Kind) throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        try desk.transfer("a").fail(kind)
        #expect(desk.running == ["b"])
    }

    /// Perhaps only some URLs fail.
    @Test func whatHasNotFailedTriesFirst() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.name.hasPrefix("bad") ? $0.fail(.network) : $0.complete() }
        try desk.add("bad1", "bad2", "b", "c")
        for _ in 0..<400 { desk.pass(0.25) }
        #expect(desk["b"].state == .completed && desk["c"].state == .completed && desk["bad2"].state == .waiting)
    }

    /// Who waits for it hears of the failure after three attempts, however many others wait.
    @Test func anAwaitedOneWaitsForNobody() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.fail(.network) }
        try desk.add("a", "b", "c")
        try desk.manager.perform { _ = try $0.add([Desk.order("d")], waits: true) }
        for _ in 0..<40 { desk.pass(0.25) }
        #expect(desk["d"].state == .failed && desk["d"].failures == 3)
    }

    /// One that the schedule holds back cannot try for others.
    @Test func theOneThatTriesMayRun() throws {
        let desk = try Desk(maxActive: 1)
        _ = try desk.add([Self.order("https://example.org/a"), Self.order("https://example.org/now", atOnce: true)])
        try desk.transfer("a").fail(.network)
        #expect(desk.running == [])
        desk.set { $0.schedule = try? DownloadSchedule.parse(["else=off"]) }
        desk.pass(1)
        #expect(desk.running == ["now"])
    }

    @Test(arguments: ["retry", "order", "network", "pause"])
    func peopleAndANewNetworkEndIt(_ how: String) throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        try desk.transfer("a").fail(.network)
        desk.pass(1)
        try desk.transfer("b").fail(.network)
        #expect(desk.running == [])
        switch how {
        case "retry": try desk.act(.retry, "b")
        case "order": try desk.add("c")
        case "network": desk.manager.perform { $0.networkChanged() }
        default:
            // The one that would try is paused: another one does.
            desk.pass(4)
            #expect(desk.running == ["a"])
            try desk.act(.pause, "a")
            desk.pass(0.25)
        }
        #expect(desk.running == [how == "pause" ? "b" : "a"])
    }

    /// In the order in which they were ordered, although the newest failure is listed first.
    @Test func allAreRetriedInTheirOrder() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.fail(.final) }
        try desk.add("a", "b", "c")
        #expect(desk.running == [])
        desk.source.onBegin { _ in }
        try desk.change(.all, DownloadChange(action: .retry))
        #expect(desk.running == ["a"] && desk.waiting == ["b", "c"])
    }
}
