import CachePolicy
import Testing

@testable import CacheFill

@Suite struct LoopLoadsTests {
    private func loads(_ loops: Int) -> FetchBalance.Loads {
        var loads = FetchBalance.Loads()
        for loop in 0..<loops { loads.add(loop) }
        return loads
    }

    @Test(arguments: 0..<3)
    func transferOfOnePlayerRunsOnAnotherLoop(home: Int) {
        var loads = loads(3)
        #expect(loads.place(from: home, isShort: false) != home)
    }

    @Test func onTheOnlyLoopEverythingRuns() {
        var loads = loads(1)
        #expect(loads.place(from: 0, isShort: false) == 0)
        #expect(loads.place(from: 0, isShort: false) == 0)
    }

    @Test func loopsThatAllHaveWorkKeepTheirOwn() {
        var loads = loads(2)
        for _ in 0..<8 {
            _ = loads.place(from: 0, isShort: false)
            _ = loads.place(from: 1, isShort: false)
        }
        let before = loads.loads
        for home in 0..<2 {
            #expect(loads.place(from: home, isShort: false) == home)
            loads.ended(on: home, from: home)
        }
        #expect(loads.loads == before)
    }

    @Test func playersOfOneLoopAreServedByBoth() {
        var loads = loads(2)
        for _ in 0..<30 { _ = loads.place(from: 0, isShort: false) }
        // Sending stays: so two in three are received by the other.
        #expect(loads.loads == [0: 40, 1: 20])
    }

    @Test func shortTransfersStayWhereTheyAreAskedFor() {
        var loads = loads(2)
        for _ in 0..<30 { #expect(loads.place(from: 0, isShort: true) == 0) }
        #expect(loads.loads == [0: 60, 1: 0])
        #expect(loads.place(from: 0, isShort: false) == 1)
    }
}

@Suite struct ExpectedLengthsTests {
    private var lengths = FetchBalance.ExpectedLengths()

    private func isShort(_ url: String) throws -> Bool { lengths.isShort(try OriginURL(url: url)) }

    @Test mutating func whatAHostSentLastByNamesThatEndAlikeIsExpected() throws {
        #expect(try !isShort("http://a/1.ts"))
        lengths.note(65_536, of: try OriginURL(url: "http://a/1.ts?token=x.y"))
        #expect(try isShort("http://a/b/2.ts"))
        for other in [
            "http://a/1.mp4", "http://a/1", "http://a/ts", "http://a:81/1.ts", "http://b/1.ts", "http://a/1.ts/film",
        ] { #expect(try !isShort(other)) }
        lengths.note(1 << 30, of: try OriginURL(url: "http://a/3.ts"))
        #expect(try !isShort("http://a/1.ts"))
        lengths.note(1 << 20, of: try OriginURL(url: "http://a/"))
        #expect(try isShort("http://a/x"))
        lengths.note(nil, of: try OriginURL(url: "http://a/y"))
        #expect(try !isShort("http://a/x"))
    }

    /// However many hosts there are, what is known of them is bounded.
    @Test mutating func kindsAreForgottenWhereThereAreMany() throws {
        for number in 0..<5000 { lengths.note(1, of: try OriginURL(url: "http://h\(number)/")) }
        #expect(try (0..<5000).filter { try isShort("http://h\($0)/") }.count <= 1024)
        #expect(try isShort("http://h4999/"))
    }
}
