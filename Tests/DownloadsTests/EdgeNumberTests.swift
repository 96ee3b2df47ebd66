import Downloads
import Foundation
import GRDB
import Testing

/// Numbers in the database that no process has written: a row either counts as damaged or can be worked with.
@Suite struct EdgeNumberTests {
    private static let columns = [
        "id", "first", "connections", "limit_rate", "place", "ended", "bytes", "total", "network_failures",
        "busy_failures", "retry_at", "added", "started",
        "finished", "record_for", "segments", "total_segments", "everything", "quality", "audio", "subtitles",
    ]
    private static let values = [
        "\(Int64.min)", "\(Int64.max)", "\(Int64.max - 1)", "9007199254740992", "-1", "0", "1", "1.7e308", "-1.7e308",
        "9e999", "NULL", "'x'", "x'00ff'",
    ]

    /// A download in each state, and another of each that is not touched.
    private func desk() throws -> Desk {
        let desk = try Desk(maxActive: 8)
        try desk.add("completed", "failed", "cancelled", "delayed", "paused", "running", "untouched")
        try desk.transfer("completed").complete()
        try desk.transfer("failed").fail(.final, "404")
        try desk.act(.cancel, "cancelled")
        try desk.transfer("delayed").fail(.busy(retryAfter: 60))
        try desk.act(.pause, "paused")
        try desk.transfer("running").has(44, of: 100)
        desk.catchUp()
        return desk
    }

    @Test(arguments: columns) func aNumberIsDamageOrCanBeWorkedWith(column: String) throws {
        let names = ["completed", "failed", "cancelled", "delayed", "paused", "running"]
        for value in Self.values {
            let desk = try desk()
            desk.manager.perform { $0.stop() }
            for name in names {
                // What the schema refuses is not there.
                try? desk.inDatabase {
                    try $0.execute(
                        sql: "UPDATE download SET \(column) = \(value) WHERE url = ?", arguments: [Desk.url(name)])
                }
            }
            let next = try Desk(after: desk)
            try next.add("new", "running", "failed")
            next.pass(1)
            for transfer in next.source.running { transfer.fail(.network) }
            next.pass(1)
            for transfer in next.source.running { transfer.fail(.busy(retryAfter: .greatestFiniteMagnitude)) }
            next.pass(4000)
            for report in next.listing where report.state == .waiting || report.state == .paused {
                _ = try? next.change(.ids([report.id]), DownloadChange(position: .max))
                _ = try? next.change(.ids([report.id]), DownloadChange(position: 0))
            }
            for action in DownloadChange.Action.allCases {
                _ = try? next.change(.all, DownloadChange(action: action, limitRate: 1 << 60))
            }
            for transfer in next.source.running { transfer.has(.max, of: .max) }
            next.pass(1)
            _ = (next.summary, next.history())
            _ = try JSONEncoder().encode(next.listing)
            #expect(next.listing.contains { Desk.name($0) == "new" && $0.id > 0 }, "\(column) = \(value)")
            #expect(Set(next.listing.map(\.id)).count == next.listing.count)
        }
    }

    @Test func aLastNumberThatCannotBeIsNotGoneOnFrom() throws {
        let desk = try Desk()
        try desk.add("a", "b")
        desk.manager.perform { $0.stop() }
        for last in ["\(Int64.max)", "\(Int64.min)", "-1", "0"] {
            try desk.inDatabase {
                try $0.execute(sql: "UPDATE sqlite_sequence SET seq = \(last) WHERE name = 'download'")
            }
            let next = try Desk(after: desk)
            #expect(next.listing.map(\.id).max() ?? 0 < 100, "\(last)")
            next.manager.perform { $0.stop() }
        }
        let next = try Desk(after: desk)
        #expect(try next.add("c") == [3])
    }
}
