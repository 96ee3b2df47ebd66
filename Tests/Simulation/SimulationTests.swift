import Foundation
import TestSupport
import Testing

/// Every schedule from a seed (docs/dev/robustness.md). `Tests/Simulation/simulate` runs more of them.
@Suite struct SimulationTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// `REELCACHE_SEEDS`: how many, from the first on.
    private static let count = environment["REELCACHE_SEEDS"].flatMap { UInt64($0) } ?? 40
    /// `REELCACHE_SEED`: the first. With one seed alone, all that happens is printed, as it is where something must not
    /// be.
    private static let first = environment["REELCACHE_SEED"].flatMap { UInt64($0) } ?? 1
    private static let parts = 8 as UInt64
    /// Only then are the orders of sets and dictionaries the same in each run.
    static let isReproducible = environment["SWIFT_DETERMINISTIC_HASHING"] != nil

    @Test(arguments: 0..<parts) func nothingThatMustNotBe(part: UInt64) throws {
        for seed in stride(from: Self.first + part, to: Self.first + Self.count, by: Int(Self.parts)) {
            // A trap says nothing of its seed.
            if Self.environment["REELCACHE_SEED"] != nil { FileHandle.standardError.write(Data("runs \(seed)\n".utf8)) }
            let world = try World(seed: seed)
            var isTold = Self.count == 1 || Self.environment["TRACE"] != nil
            do { try world.run() } catch {
                Issue.record("seed \(seed): \(error)")
                isTold = true
            }
            if isTold { print(world.trace.joined(separator: "\n")) }
        }
    }

    @Test(.enabled(if: isReproducible)) func aSeedIsASchedule() throws {
        // The last is of another seed.
        let digests = try (0..<4 as Range<UInt64>).map { run in
            let world = try World(seed: Self.first + run / 3)
            try? world.run()
            return world.digest
        }
        // `simulate` compares those of several processes.
        print("digest \(digests[0])")
        #expect(Set(digests[..<3]).count == 1)
        #expect(digests[3] != digests[0])
    }
}
