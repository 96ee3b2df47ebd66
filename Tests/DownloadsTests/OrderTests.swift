import CachePolicy
import Downloads
import Testing

/// What becomes of orders.
@Suite struct OrderTests {
    private static func order(_ change: (inout DownloadOrder) -> Void) -> DownloadOrder {
        var order = Desk.order("a")
        change(&order)
        return order
    }

    @Test(arguments: [
        (order { $0.first = 0 }, "cannot download the first 0 bytes of https://example.org/a: "),
        (order { $0.connections = 0 }, "cannot download https://example.org/a through 0 connections: "),
        (order { $0.connections = 17 }, "cannot download https://example.org/a through 17 connections: "),
        (order { $0.bytesPerSecond = 0 }, "cannot download https://example.org/a at 0 bytes per second: "),
        (order { $0.first = .max }, "cannot download https://example.org/a with the number \(Int64.max): "),
        (
            order { $0.last = 1 << 60 + 1 },
            "cannot download https://example.org/a with the number \(Int64(1) << 60 + 1): "
        ),
        (order { $0.bytesPerSecond = .max }, "cannot download https://example.org/a with the number \(Int64.max): "),
        (order { $0.renditions.quality = .lines(0) }, "'0p' is no quality for https://example.org/a: "),
        (order { $0.renditions.quality = .lines(70_000) }, "'70000p' is no quality for https://example.org/a: "),
        (order { $0.renditions.quality = .bitsPerSecond(0) }, "'0' is no quality for https://example.org/a: "),
        (order { $0.renditions.audio = .only(["de_DE"]) }, "'de_DE' names no languages for https://example.org/a: "),
        (order { $0.renditions.audio = .only(["all"]) }, "'all' names no languages for https://example.org/a: "),
        (order { $0.renditions.subtitles = .only([]) }, "'' names no languages for https://example.org/a: "),
        (order { $0.category = "" }, "the category of https://example.org/a is empty: "),
        (
            order { $0.category = String(repeating: "x", count: 101) },
            "the category of https://example.org/a has 101 characters: "
        ),
        (
            order { $0.category = "a\tb" },
            "the category 'a\\tb' of https://example.org/a contains a control character: "
        ),
    ])
    func whatMakesNoSenseIsRefusedWithAllThatIsOrderedWithIt(order: DownloadOrder, message: String) throws {
        let desk = try Desk()
        let error = #expect(throws: DownloadError.self) { try desk.add([Desk.order("good"), order]) }
        #expect(error?.kind == .invalid)
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("\n") == false)
        #expect(desk.listing == [])
        #expect(try desk.saved("state", as: String.self) == [:])
    }

    @Test func anOrderIsTakenAsItIs() throws {
        let desk = try Desk()
        let order = DownloadOrder(
            url: try OriginURL(ordered: "HTTPS://Example.org:443/a?b=c#d"),
            options: DownloadOptions {
                ($0.first, $0.priority, $0.connections, $0.bytesPerSecond) = (5, .high, 16, 1)
                ($0.category, $0.isPinned) = (String(repeating: "é", count: 100), false)
            })
        let report = try desk.add([order])[0]
        #expect(report.urlText == "https://example.org/a?b=c")
        #expect((report.first, report.priority, report.connections) == (5, .high, 16))
        #expect((report.limitRate, report.category, report.isPinned) == (1, order.category, false))
        #expect(
            (report.added.seconds, report.started?.seconds, report.state) == (
                1_700_000_000, 1_700_000_000, .downloading
            ))
        var taken = try desk.transfer("a?b=c").order
        #expect(taken.key?.text == "https://example.org/a")
        taken.key = nil
        #expect(taken == order)
    }

    @Test(arguments: [
        ("ftp://example.org/a", "cannot download 'ftp://example.org/a': "),
        ("film\nmp4\u{1b}", "cannot download 'film\\nmp4\\u{1B}': "),
        ("", "cannot download '': "),
        (String(repeating: "x", count: 5000), "cannot download '\(String(repeating: "x", count: 200))...': "),
    ])
    func whatIsNoURLIsRefused(text: String, message: String) {
        let error = #expect(throws: DownloadError.self) { try OriginURL(ordered: text) }
        #expect(error?.kind == .invalid)
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("\n") == false)
    }

    @Test func theSameAgainIsTheSameDownload() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running", "a", "b")
        let again = try desk.add([
            Self.order {
                ($0.priority, $0.category, $0.bytesPerSecond) = (.high, "new", 9)
            }, Desk.order("a", .high),
        ])
        #expect(again.map(\.id) == [2, 2])
        #expect(desk.waiting == ["a", "b"])
        #expect(desk["a"].priority == .high)
        #expect(desk["a"].category == nil, "of two orders the last holds")
        #expect(desk.listing.count == 3)

        try desk.act(.pause, "b")
        #expect(try desk.add("b") == [3])
        #expect(desk["b"].state == .waiting)
        #expect(try desk.add([Self.order { $0.first = 7 }])[0].id == 4, "a part is another download")
    }

    @Test func theSameTwiceInOneOrderIsOneDownload() throws {
        let desk = try Desk()
        #expect(try desk.add("a", "b", "a") == [1, 2, 1])
        #expect(desk.begun == ["a", "b"])
    }

    @Test func theSameAgainEndsTheWaitForTheNextAttempt() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").fail(.busy(retryAfter: 600))
        #expect(desk["a"].retryDate?.seconds == 1_700_000_600)
        try desk.add("a")
        #expect(desk["a"].state == .downloading)
        #expect(desk["a"].failures == 0)
        #expect(desk.begun == ["a", "a"])
    }

    @Test func whatRunsIsBegunAnewWhereTheOrderIsAnother() throws {
        let desk = try Desk()
        try desk.add("a")
        _ = try desk.add([Self.order { $0.bytesPerSecond = 55 }])
        #expect(desk.begun == ["a"])
        #expect(try desk.transfer("a").limit == .some(55))

        _ = try desk.add([Self.order { ($0.connections, $0.bytesPerSecond) = (4, 55) }])
        #expect(desk.begun == ["a", "a"])
        #expect(desk.source.transfers[0].isStopped)
        #expect(try desk.transfer("a").order.connections == 4)
        #expect(desk.running == ["a"])
        try desk.transfer("a").complete()
        #expect(desk["a"].state == .completed)
    }

    @Test(arguments: [Download.State.completed, .failed, .cancelled]) func whatHasEndedIsDownloadedAnew(
        state: Download.State
    ) throws {
        let desk = try Desk()
        try desk.add("a")
        switch state {
        case .completed: try desk.transfer("a").complete()
        case .failed: try desk.transfer("a").fail(.final)
        default: try desk.act(.cancel, "a")
        }
        desk.catchUp()
        #expect(try desk.add("a") == [2])
        #expect(desk["a"].state == .downloading)
        #expect(desk.history().map(\.id) == [1])
        #expect(desk.history().map(\.state) == [state])
    }

    @Test func numbersAreNeverGivenAgain() throws {
        let desk = try Desk()
        try desk.add("a", "b")
        try desk.act(.cancel, "b")
        #expect(try desk.manager.perform { try $0.clearHistory() } == 1)
        desk.manager.perform { $0.stop() }
        let next = try Desk(after: desk)
        #expect(try next.add("c") == [3])
    }
}
