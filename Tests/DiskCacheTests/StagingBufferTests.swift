import TestSupport
import Testing

@testable import DiskCache

@Suite struct StagingBufferTests {
    /// Against an array, with appends and removals of random sizes.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func bufferHoldsWhatAnArrayWould(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let buffer = StagingBuffer()
        var model: [UInt8] = []
        for _ in 0..<200 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                buffer.removeAll()
                model.removeAll()
            case 1...4:
                let count = Int.random(in: 0...model.count, using: &random)
                buffer.removeFirst(count)
                model.removeFirst(count)
            default:
                let bytes = (0..<Int.random(in: 0...5000, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                bytes.withUnsafeBytes { buffer.append($0) }
                model += bytes
            }
            #expect(buffer.count == model.count && buffer.isEmpty == model.isEmpty)
            #expect(Array(buffer.bytes) == model)
        }
    }

    @Test func emptiedBufferKeepsItsStorage() {
        let buffer = StagingBuffer()
        let bytes = [UInt8](repeating: 7, count: 300_000)
        bytes.withUnsafeBytes { buffer.append($0) }
        let place = buffer.bytes.baseAddress
        buffer.removeFirst(bytes.count)
        bytes.withUnsafeBytes { buffer.append($0) }
        #expect(buffer.bytes.baseAddress == place)
    }
}
