import Downloads
import Playlists
import Testing

/// Downloads of playlists: what is ordered of them, and how far they are.
@Suite struct PresentationOrderTests {
    private static func order(_ change: (inout DownloadOrder) -> Void = { _ in }) -> DownloadOrder {
        var order = Desk.order("main.m3u8")
        change(&order)
        return order
    }

    private static let small = order { $0.renditions = RenditionChoice(quality: .lines(360)) }
    private static let german = order {
        $0.renditions = RenditionChoice(
            quality: .bitsPerSecond(4_000_000), audio: .only(["de", "en"]), subtitles: .all)
    }
    private static let all = order { $0.renditions.isEverything = true }
    private static let recording = order { $0.recordFor = 1800 }

    @Test func anotherChoiceIsAnotherDownload() throws {
        let desk = try Desk(maxActive: 1)
        let reports = try desk.add([Self.order(), Self.small, Self.german, Self.all, Self.recording, Self.small])
        #expect(reports.map(\.id) == [1, 2, 3, 4, 5, 2])
        #expect(reports.map(\.quality) == [nil, "360p", "4000000", nil, nil, "360p"])
        #expect((reports[2].audio, reports[2].subtitles) == ("de,en", "all"))
        #expect((reports[3].all, reports[4].recordFor) == (true, 1800))
    }

    @Test func theChoiceOutlivesTheProcess() throws {
        let desk = try Desk(maxActive: 8)
        let orders = [Self.order(), Self.small, Self.german, Self.all, Self.recording]
        _ = try desk.add(orders)
        try desk.transfer("main.m3u8").has(100, segments: 3, of: 10)
        desk.pass(2)
        let before = desk.listing
        desk.manager.perform { $0.stop() }
        let next = try Desk(after: desk, maxActive: 8, isStarted: false)
        #expect(next.listing.map(\.quality) == before.map(\.quality))
        #expect(next.listing.last.map { [$0.segments, $0.totalSegments] } == [3, 10])
        next.manager.perform { $0.start() }
        next.catchUp()
        #expect(next.source.transfers.map(\.order.renditions) == orders.map(\.renditions))
    }

    // What the first version has left: the tables get the new columns, and its downloads go on.
    @Test func aDatabaseOfTheFirstVersionIsTakenOver() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        desk.manager.perform { $0.stop() }
        try desk.inDatabase { db in
            for column in [
                "quality", "audio", "subtitles", "everything", "record_for", "segments", "total_segments", "feed",
                "episode", "last", "at_once", "failing_since", "failed_first", "title",
            ] { try db.execute(sql: "ALTER TABLE download DROP COLUMN \(column)") }
            try db.execute(sql: "DROP TABLE usage")
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier NOT LIKE '1:%'; PRAGMA user_version = 1")
        }
        let next = try Desk(after: desk, maxActive: 1)
        #expect(next.log.lines(.error).isEmpty)
        #expect(next.running == ["a"])
        #expect(next.waiting == ["b"])
        #expect(next.source.transfers[0].order.renditions == RenditionChoice())
    }

    @Test(arguments: [
        (order { ($0.first, $0.recordFor) = (5, 5) }, "cannot download the first bytes of "),
        (order { ($0.first, $0.renditions.isEverything) = (5, true) }, "cannot download the first bytes of "),
        (order { $0.recordFor = 0 }, "cannot record https://example.org/main.m3u8 for 0 seconds: "),
        (order { $0.recordFor = .max }, "cannot record https://example.org/main.m3u8 for "),
    ])
    func whatMakesNoSenseIsRefused(order: DownloadOrder, message: String) throws {
        let error = #expect(throws: DownloadError.self) { try Desk().add([order]) }
        #expect(error?.kind == .invalid && error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }

    // MARK: How far it is

    @Test func itsProgressAndWhatIsLeftGoBySegments() throws {
        let desk = try Desk()
        _ = try desk.add([Self.order()])
        let transfer = try desk.transfer("main.m3u8")
        // The playlist's own length is not the presentation's.
        transfer.has(1000, of: 1000)
        desk.pass(1)
        for second in 1...20 {
            transfer.has(Int64(second) * 100_000, segments: Int64(second), of: 100)
            desk.pass(1)
        }
        let report = desk["main.m3u8"]
        #expect((report.segments, report.totalSegments, report.total) == (20, 100, nil))
        // Eighty segments are left, one comes each second.
        #expect((70...90).contains(report.eta ?? 0), "\(report.eta ?? 0)")
    }

    @Test func whatIsToBeSaidOfItIsItsMessageInTheEnd() throws {
        let desk = try Desk()
        _ = try desk.add([Self.order()])
        var progress = DownloadProgress()
        (progress.bytes, progress.total, progress.segments, progress.totalSegments) = (500, 500, 5, 5)
        progress.note = "1080p, audio en"
        try desk.transfer("main.m3u8").end(.completed(progress))
        #expect(desk["main.m3u8"].message == "1080p, audio en")
        #expect(desk["main.m3u8"].state == .completed)
    }

    // MARK: Recordings

    @Test func aRecordingIsNamedByItsBeginningAlsoInTheNextProcess() throws {
        let desk = try Desk()
        desk.restorePoints.has("main.m3u8", [0, 100])
        _ = try desk.add([Self.recording])
        #expect(try desk.transfer("main.m3u8").order.recordedFrom == 1_700_000_000)
        desk.pass(60)
        desk.manager.perform { $0.stop() }
        let next = try Desk(after: desk)
        #expect(try next.transfer("main.m3u8").order.recordedFrom == 1_700_000_000)
        #expect(
            next.restorePoints.notedURLs == [
                "https://example.org/main.m3u8?reelcache-recording=20231114T221320Z"
            ])
    }

    /// Of a time that has passed nothing can be recorded.
    @Test(arguments: [false, true]) func aRecordingWithoutASegmentThatIsRetriedBeginsNow(isCancelled: Bool) throws {
        let desk = try Desk()
        _ = try desk.add([Self.recording])
        if isCancelled {
            try desk.transfer("main.m3u8").has(100, segments: 9, of: nil)
            desk.pass(2)
            try desk.act(.cancel, "main.m3u8")
        } else {
            try desk.transfer("main.m3u8").fail(.final, "the origin answered 404")
        }
        desk.pass(7200)
        try desk.act(.retry, "main.m3u8")
        #expect(try desk.transfer("main.m3u8").order.recordedFrom == Int64(desk.clock.now))
        #expect(desk["main.m3u8"].segments == nil)
        #expect(desk.restorePoints.notedURLs.count == 2)
    }

    @Test func aRecordingWithSegmentsThatIsRetriedIsTheSame() throws {
        let desk = try Desk()
        _ = try desk.add([Self.recording])
        try desk.transfer("main.m3u8").has(100, segments: 9, of: nil)
        try desk.transfer("main.m3u8").fail(.network, "connection refused")
        desk.pass(60)
        // This attempt finds no stream.
        try desk.transfer("main.m3u8").fail(.final, "the origin answered 404")
        desk.pass(60)
        try desk.act(.retry, "main.m3u8")
        #expect(try desk.transfer("main.m3u8").order.recordedFrom == 1_700_000_000)
        #expect(desk["main.m3u8"].segments == 9)
    }
}

extension FakeTransfer {
    /// A presentation is so far.
    func has(_ bytes: Int64, segments: Int64, of totalSegments: Int64?) {
        var progress = DownloadProgress()
        (progress.bytes, progress.segments, progress.totalSegments) = (bytes, segments, totalSegments)
        has(progress)
    }
}
