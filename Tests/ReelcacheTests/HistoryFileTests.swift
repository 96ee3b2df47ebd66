import Activity
import Foundation
import TestSupport
import Testing

@testable import Reelcache

/// The file of the counters' history on a disk without room.
@Suite struct HistoryFileTests {
    private static let periods = {
        var history = History()
        for minute in 0..<600 {
            history.add(
                HistorySample(
                    time: 1_700_000_000 + 60 * Int64(minute), elapsed: 60_000, totals: HistoryCounts(), size: 1,
                    limit: 2))
        }
        return history.slots
    }()

    @Test(.enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
    func fileWhoseBeginningDoesNotFitIsBegunAgain() throws {
        let disk = try SmallDisk(size: 1 << 20)
        let file = HistoryFile(in: disk.path)
        #expect(try file.read().periods.isEmpty)
        let filler = disk.path + "/filler"
        #expect(FileManager.default.createFile(atPath: filler, contents: nil))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: filler))
        var length: UInt64 = 0
        while (try? handle.write(contentsOf: Data(count: 4096))) != nil { length += 4096 }
        // There is room for the header, and for the first slots perhaps.
        try handle.truncate(atOffset: length - 4096)
        try handle.close()
        #expect(throws: HistoryFile.Fault.self) { try file.write([:]) { Self.periods } }
        #expect(try file.read().periods.isEmpty)

        try FileManager.default.removeItem(atPath: filler)
        try file.write([:]) { Self.periods }
        let read = try file.read()
        #expect(read.periods == Self.periods && read.damaged == 0)
    }
}
