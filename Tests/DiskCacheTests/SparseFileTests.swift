import Foundation
import Glibc
import TestSupport
import Testing

@testable import DiskCache

@Suite struct SparseFileTests {
    private let directory: TemporaryDirectory
    private let media = Media(seed: 16, size: 1 << 20)

    init() throws { directory = try TemporaryDirectory() }

    private func file(length: Int64? = 1 << 20) throws -> SparseFile {
        try SparseFile(path: directory.file("f"), length: length, creating: true)
    }

    private func write(_ range: Range<Int64>, to file: some GenerationBytes) throws {
        try media.bytes(range).withUnsafeBytes { try file.write($0, at: range.lowerBound) }
    }

    private func read(_ range: Range<Int64>, of file: some GenerationBytes) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: range.count)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
        return Array(bytes[..<count])
    }

    @Test func writtenBytesAreReadBackAndMapped() throws {
        let file = try file()
        let range: Range<Int64> = 12_345..<500_000
        try write(range, to: file)
        #expect(media.difference(try read(range, of: file), from: range) == nil)
        #expect(media.difference(Array(try file.mapping(at: range.lowerBound).bytes(range)), from: range) == nil)
    }

    /// What is wanted of a part once is copied, what is wanted again is mapped; after a while it is as if never wanted.
    @Test(.enabled(if: TemporaryDirectory.usuallyReadsAtOnce, "this file system reads nothing at once"))
    func partIsMappedFromTheSecondTimeOn() throws {
        let file = try file(), range: Range<Int64> = 4096..<70_000
        try write(range, to: file)
        #expect(try file.mappingOfSecondUse(at: 4096) == nil)
        var bytes = [UInt8](repeating: 0, count: range.count)
        #expect(bytes.withUnsafeMutableBytes { file.readAtOnce(into: $0, at: 4096) })
        #expect(media.difference(bytes, from: range) == nil)
        #expect(try file.mappingOfSecondUse(at: 60_000) != nil && file.mappingOfSecondUse(at: 4096) != nil)
        file.dropMappings(usedUntil: .max)
        #expect(try file.mappingOfSecondUse(at: 4096) == nil)
    }

    @Test func whatIsNotThereIsNotReadAtOnce() throws {
        let file = try file()
        #expect(Glibc.truncate(file.path, 5000) == 0)
        var bytes = [UInt8](repeating: 0, count: 4096)
        #expect(bytes.withUnsafeMutableBytes { file.readAtOnce(into: $0, at: 4096) } == false)
    }

    @Test func fileOfUnknownLengthGrowsUnderItsMapping() throws {
        let file = try file(length: nil)
        try write(0..<media.size, to: file)
        #expect(media.difference(Array(try file.mapping(at: 0).bytes(0..<media.size)), from: 0..<media.size) == nil)
        try file.truncate(to: media.size)
        #expect(try read(media.size - 10..<media.size + 10, of: file).count == 10)
    }

    @Test func newFileTakesNoBlocks() throws {
        _ = try file(length: 1 << 40)
        #expect(allocatedBytes(directory.file("f")) == 0)
    }

    @Test func fileThatExistsIsNotMadeAgain() throws {
        _ = try file()
        #expect(throws: StoreError.self) { try file() }
    }

    @Test func fileThatIsMissingIsAnErrorThatNamesIt() {
        do {
            _ = try SparseFile(path: directory.file("none"), length: 1, creating: false)
            Issue.record("it opened")
        } catch {
            #expect("\(error)" == "open \(directory.file("none")): No such file or directory")
        }
    }

    @Test func writtenBytesAreResident() throws {
        let file = try file()
        try write(0..<media.size, to: file)
        #expect(file.isResident(0..<media.size))
        #expect(file.isResident(5..<6))
        #expect(file.isResident(media.size - 1..<media.size))
        #expect(file.isResident(10..<10))
    }

    @Test func bytesThatLeftThePageCacheAreNotResidentUntilTheyAreWarmed() throws {
        let file = try file()
        try write(0..<media.size, to: file)
        try file.sync()
        #expect(posix_fadvise(file.descriptor!, 0, 0, POSIX_FADV_DONTNEED) == 0)
        // Where the cache directory is in memory nothing ever leaves.
        guard !file.isResident(0..<media.size) else { return }
        try file.warm(100_000..<300_000)
        #expect(file.isResident(100_000..<300_000))
    }

    @Test func warmingATruncatedFileIsAnError() throws {
        let file = try file()
        try write(0..<media.size, to: file)
        try file.truncate(to: 600_000)
        try file.warm(0..<600_000)
        let error = #expect(throws: StoreError.self) { try file.warm(500_000..<700_000) }
        #expect(error.map { "\($0)" } == "pread \(directory.file("f")): Input/output error")
    }

    /// A pipe answers as a file does whose file system maps none.
    @Test func fileThatCannotBeMappedSaysSo() throws {
        #expect(mkfifo(directory.file("pipe"), 0o600) == 0)
        let file = try SparseFile(path: directory.file("pipe"), length: media.size, creating: false)
        let error = #expect(throws: StoreError.self) { try file.mapping(at: 0) }
        #expect(error?.isUnmappable == true)
    }

    @Test func copyHasTheBytesOfTheFile() throws {
        let file = try file(), range: Range<Int64> = 100_000..<300_000
        try write(0..<media.size, to: file)
        let copy = try file.copy(range)
        withExtendedLifetime(copy) { #expect(media.difference(Array(copy.bytes(range)), from: range) == nil) }
        try file.truncate(to: 200_000)
        #expect(throws: StoreError.self) { try file.copy(range) }
    }

    @Test func holeGivesItsBlocksBackAndReadsAsZeros() throws {
        let file = try file()
        try write(0..<media.size, to: file)
        try file.sync()
        try file.punchHole(65_536..<131_072)
        #expect(allocatedBytes(directory.file("f")) == media.size - 65_536)
        #expect(try read(65_536..<131_072, of: file).allSatisfy { $0 == 0 })
        for range in [0..<65_536, 131_072..<media.size] as [Range<Int64>] {
            #expect(media.difference(try read(range, of: file), from: range) == nil)
        }
        // The length stays.
        #expect(try read(media.size - 1..<media.size + 5, of: file).count == 1)
    }

    @Test func fileInMemoryHasNoName() throws {
        let file = MemoryBytes()
        try write(0..<media.size, to: file)
        #expect(media.difference(try read(0..<media.size, of: file), from: 0..<media.size) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }

    /// The pages of what was released would be zeros.
    @Test func whatIsReleasedFromMemoryIsNotRead() throws {
        let file = MemoryBytes()
        try write(0..<media.size, to: file)
        file.punchHole(0..<1 << 20)
        #expect(throws: StoreError.self) { try file.mapping(at: 0) }
        #expect(try file.mapping(at: 1 << 20).range.lowerBound == 1 << 20)
    }
}

@Suite struct BlockingPoolTests {
    /// Otherwise the first command that needs one would end the process, and all that it sends.
    @Test(
        .disabled(
            if: ProcessInfo.processInfo.environment["TSAN_OPTIONS"] != nil, "the sanitizer itself needs address space"))
    func threadThatTheSystemRefusesIsAnErrorOfTheOpening() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            try OpenStore(directory).close()
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            let (before, statm) = (limit, try String(contentsOfFile: "/proc/self/statm", encoding: .utf8))
            // Not enough for the stacks of all.
            let pages = try #require(statm.split(separator: " ").first.flatMap { rlim_t($0) })
            limit.rlim_cur = pages * rlim_t(getpagesize()) + 7 << 20
            setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            #expect(throws: StoreError.self) { try OpenStore(directory) }
            limit = before
            setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            try OpenStore(directory).close()
        }
    }

    @Test func poolRunsEverything() throws {
        let pool = BlockingPool("test", threads: 4)
        try pool.start()
        let done = Monitor(Set<Int>())
        _ = try concurrently(4) { thread in
            for item in 0..<500 { pool.run { done.update { _ = $0.insert(thread * 500 + item) } } }
        }
        try done.wait(for: "all work") { $0.count == 2000 ? () : nil }
        pool.stop()
    }

    @Test func workWaitsForAFreeThreadAndNotForOthers() throws {
        let pool = BlockingPool("test", threads: 2)
        try pool.start()
        let gate = Monitor(false), done = Monitor(0)
        pool.run { try? gate.wait(for: "the gate") { $0 ? () : nil } }
        // The other thread does all this meanwhile.
        for _ in 0..<100 { pool.run { done.update { $0 += 1 } } }
        try done.wait(for: "the work behind") { $0 == 100 ? () : nil }
        gate.update { $0 = true }
        pool.stop()
    }

    @Test func stopWaitsForQueuedWorkAndTakesNoMore() throws {
        let pool = BlockingPool("test", threads: 1)
        try pool.start()
        let gate = Monitor(false), done = Monitor(0)
        pool.run { try? gate.wait(for: "the gate") { $0 ? () : nil } }
        for _ in 0..<100 { pool.run { done.update { $0 += 1 } } }
        let atStop = try concurrently(2) { thread in
            if thread == 1 { gate.update { $0 = true } } else { pool.stop() }
            return thread == 1 ? nil : done.read { $0 }
        }
        #expect(atStop[0] == 100)
        pool.run { done.update { $0 += 1000 } }
        pool.stop()
        #expect(done.read { $0 } == 100)
    }
}
