import Downloads
import Foundation
import TestSupport
import Testing

/// Ten thousand downloads, as a feed of many years has.
@Suite struct ManyDownloadsTests {
    private static let count = 10_000

    private static var orders: [DownloadOrder] {
        (0..<count).map { Desk.order("show/season-\($0 / 20)/episode-\($0).mp4") }
    }

    /// Bytes of memory that this process has.
    private static func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return (Int(line.filter(\.isNumber)) ?? 0) << 10
    }

    @Test func theyFitIntoMemoryAndGoInOrder() throws {
        let desk = try Desk()
        let before = try Self.residentBytes()
        let ids = try desk.add(Self.orders).map(\.id)
        #expect(ids == (1...Int64(Self.count)).map { $0 })
        #expect(try Self.residentBytes() - before < 100 << 20)

        let listing = desk.manager.snapshots.listing()
        #expect(listing.downloads.map(\.id) == ids)
        #expect((listing.summary.downloading, listing.summary.waiting) == (3, Self.count - 3))
        for _ in 0..<10 { desk.source.running.first?.complete(); desk.catchUp() }
        #expect(desk.manager.snapshots.listing().downloads.map(\.id) == Array(ids.dropFirst(10)))
        try desk.change(.ids([ids[Self.count - 1]]), DownloadChange(position: 0))
        #expect(desk.manager.snapshots.listing().downloads[3].id == ids[Self.count - 1])

        let next = try Desk(after: desk)
        #expect(
            next.manager.snapshots.listing().downloads.map(\.id) == desk.manager.snapshots.listing().downloads.map(\.id)
        )
    }

    @Test func allAreChangedAtOnce() throws {
        let desk = try Desk()
        _ = try desk.add(Self.orders)
        #expect(try desk.change(.all, DownloadChange(action: .pause)).count == Self.count)
        #expect(desk.summary.paused == Self.count)
        #expect(try desk.change(.all, DownloadChange(action: .resume)).count == Self.count)
        #expect(desk.begun.suffix(3).map { $0 } == desk.begun.prefix(3).map { $0 }, "in their old order")
        #expect(try desk.change(.all, DownloadChange(action: .cancel)).count == Self.count)
        #expect(desk.history().count == 1000)
        #expect(desk.restorePoints.released.count == 3)
        #expect((desk.summary.waiting, desk.summary.total) == (0, 0))
    }

    /// Each is one transaction: what is slow here is the disk.
    @Test func theyAreAddedOneByOne() throws {
        let desk = try Desk(hasSource: false)
        _ = try desk.add(Self.orders)
        for index in 0..<100 { try desk.add("one-\(index)") }
        #expect(desk.summary.waiting == Self.count + 100)
        #expect(desk.waiting.last == "one-99")
    }
}
