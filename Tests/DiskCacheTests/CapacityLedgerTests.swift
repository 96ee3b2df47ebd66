import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite struct CapacityLedgerTests {
    /// File systems in user space and on the network tell what they like.
    @Test(
        arguments: [(0, 4096, 0), (1000, 4096, 4_096_000), (.max, 1, .max), (.max, .max, .max), (1 << 60, 4096, .max)]
            as [(UInt, UInt, Int64)])
    func sizesOfDisksAreHeldWithinBounds(blocks: UInt, size: UInt, bytes: Int64) {
        #expect(FileSystem.bytes(blocks, of: size) == bytes)
    }

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func ledger(limit: Int64 = 80_000_000, minFree: Int64 = 0) -> CapacityLedger {
        CapacityLedger(directory: directory.path, limit: limit, minFree: minFree)
    }

    @Test func reservedBytesAreCountedUntilTheyAreReleased() {
        let ledger = ledger()
        #expect(ledger.reserve(5000))
        #expect(ledger.reserve(3000))
        #expect(ledger.dataSize == 8000)
        ledger.release(5000)
        #expect(ledger.dataSize == 3000)
        ledger.setIndex(bytes: 100)
        #expect(ledger.size == 3100)
        #expect(ledger.dataSize == 3000)
    }

    @Test func reservationIsAllOrNothing() {
        let ledger = ledger(limit: 16_000_000)
        #expect(!ledger.reserve(16_000_001))
        #expect(ledger.dataSize == 0)
        while ledger.reserve(1_000_000) {}
        let full = ledger.dataSize
        #expect(!ledger.reserve(1_000_000))
        #expect(ledger.dataSize == full)
        ledger.release(1_000_000)
        #expect(ledger.reserve(1_000_000))
    }

    @Test func indexCountsAgainstTheLimit() {
        let ledger = ledger(limit: 16_000_000)
        ledger.setIndex(bytes: 15_999_999)
        #expect(!ledger.reserve(4096))
    }

    @Test func whatIsThereAlreadyCountsAgainstTheLimit() {
        let ledger = ledger(limit: 16_000_000)
        ledger.adopt(data: 20_000_000)
        #expect(!ledger.reserve(1))
        #expect(ledger.shortage >= 4_000_000)
    }

    @Test func diskThatIsTooFullTakesNothing() {
        let ledger = ledger(minFree: 1 << 60)
        #expect(!ledger.reserve(1))
        #expect(ledger.shortage > 0)
    }

    /// The disk has room for some of it: the allowance of the moment is used up, and the disk is asked again.
    @Test func allowanceIsRenewedWhileTheDiskHasRoom() {
        let ledger = ledger(limit: 1 << 40)
        for _ in 0..<20 { #expect(ledger.reserve(16 << 20)) }
    }

    @Test func enoughRoomIsNoShortage() {
        let ledger = ledger(limit: 16_000_000)
        #expect(ledger.shortage == 0)
        while ledger.reserve(100_000) {}
        let shortage = ledger.shortage
        #expect(shortage > 0)
        ledger.release(shortage)
        #expect(ledger.shortage == 0)
        #expect(ledger.reserve(100_000))
    }

    /// A limit far beyond the disk: what is kept free is a part of the disk, and not of the limit.
    @Test(.enabled(if: SmallDisk.obstacle == nil, "no small disk can be mounted here: \(SmallDisk.obstacle ?? "")"))
    func aDiskSmallerThanTheLimitMayBeFilled() throws {
        let disk = try SmallDisk(size: 24_000_000)
        let ledger = CapacityLedger(directory: disk.path, limit: 1_000_000_000, minFree: 4_000_000)
        #expect(ledger.shortage == 0)
        #expect(ledger.reserve(12_000_000))
        #expect(ledger.shortage == 0)
        while ledger.reserve(100_000, isToBeWritten: true) {}
        #expect((1...4_000_000).contains(ledger.shortage))
    }

    @Test(arguments: [(0, 0), (1, 4096), (4095, 4096), (4096, 4096), (4097, 8192)] as [(Int64, Int64)])
    func bytesTakeWholeBlocks(bytes: Int64, blocks: Int64) {
        #expect(CapacityLedger.rounded(bytes) == blocks)
    }

    @Test func limitHoldsUnderManyThreads() throws {
        let seed = SplitMix64.forTest("limitHoldsUnderManyThreads")
        let limit: Int64 = 16_000_000
        let ledger = ledger(limit: limit)
        let held = try concurrently(8) { thread in
            var random = seed
            for _ in 0...thread { _ = random.next() }
            var held: [Int64] = []
            var refusals = 0
            for _ in 0..<20_000 {
                if !held.isEmpty, Int.random(in: 0..<5, using: &random) < 2 {
                    ledger.release(held.remove(at: Int.random(in: held.indices, using: &random)))
                } else {
                    let bytes = Int64.random(in: 1...100_000, using: &random)
                    if ledger.reserve(bytes) { held.append(bytes) } else { refusals += 1 }
                }
                guard ledger.size <= limit else { throw Unexpected("a size of \(ledger.size)") }
            }
            guard refusals > 0 else { throw Unexpected("nothing was refused") }
            return held.reduce(0, +)
        }
        #expect(ledger.dataSize == held.reduce(0, +))
    }
}
