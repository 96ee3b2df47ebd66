import Foundation
import Testing
import TestSupport

@Suite struct SupportTests {
    @Test func temporaryDirectoryGoesWithItsObject() throws {
        var directory: TemporaryDirectory? = try TemporaryDirectory()
        let path = try #require(directory?.path)
        try Data([1]).write(to: URL(fileURLWithPath: directory!.file("a")))
        #expect(FileManager.default.fileExists(atPath: path + "/a"))
        directory = nil
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func equalSeedsGiveEqualNumbers() {
        var first = SplitMix64(seed: 42), second = SplitMix64(seed: 42)
        #expect((0..<100).allSatisfy { _ in first.next() == second.next() })
    }

    /// The first outputs of the reference implementation for seed 1234567.
    @Test func numbersAreThoseOfTheReference() {
        var random = SplitMix64(seed: 1_234_567)
        #expect([random.next(), random.next()] == [6_457_827_717_110_365_317, 3_203_168_211_198_807_973])
    }

    @Test func concurrentBodiesRunAllAtOnce() throws {
        let arrived = Monitor(0)
        let values = try concurrently(50) { index in
            arrived.update { $0 += 1 }
            try arrived.wait(for: "all 50") { $0 == 50 ? () : nil }
            return index
        }
        #expect(values == Array(0..<50))
    }

    @Test func errorOfAConcurrentBodyIsThrown() {
        #expect(throws: SystemError("two", 2)) {
            try concurrently(5) { if $0 >= 2 { throw SystemError($0 == 2 ? "two" : "more", 2) } }
        }
    }

    @Test func threadsValueReachesAnAsyncTest() async throws {
        #expect(try await onThread { 7 } == 7)
        await #expect(throws: SystemError.self) { try await onThread { throw SystemError("x", 1) } }
    }
}
