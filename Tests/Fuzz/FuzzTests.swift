import Foundation
import TestSupport
import Testing

/// The short form of fuzzing: the kept corpus, and some thousand mutations of it. `scripts/fuzz` is the long one.
@Suite struct FuzzTests {
    static let names = FuzzTarget.all.map(\.name)

    @Test(arguments: names) func keptInputsAreHandled(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        for input in try Self.corpus(target) { try Self.run(target, input) }
    }

    @Test(arguments: names) func mutatedInputsAreHandled(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        var mutator = Mutator(try Self.corpus(target), random: SplitMix64.forTest("fuzz \(name)"))
        for _ in 0..<400 { try Self.run(target, mutator.next()) }
    }

    @Test func eachFolderOfTheCorpusHasItsTarget() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpusPath)
        #expect(Set(folders).subtracting(Self.names) == [])
    }

    private static func run(_ target: FuzzTarget, _ input: [UInt8]) throws {
        do { try target.run(input) } catch let violation as Violation {
            Issue.record("\(target.name): \(violation); the input is \(Data(input).base64EncodedString()) in base64")
        }
    }

    private static let corpusPath = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus").path

    private static func corpus(_ target: FuzzTarget) throws -> [[UInt8]] {
        let folder = corpusPath + "/" + target.name
        let kept = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return target.seeds.map { Array($0.utf8) }
            + (try kept.sorted().map { [UInt8](try Data(contentsOf: URL(filePath: folder + "/" + $0))) })
    }
}
