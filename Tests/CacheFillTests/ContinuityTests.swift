import Testing
import TestSupport

@testable import CacheFill

private let media = Media(seed: 7, size: 300_000)

/// The last bytes of a body, for expectations to ask.
private final class Tail {
    private var continuity = Continuity()
    var length: Int64 { continuity.length }

    func note(_ bytes: [UInt8]) { bytes.withUnsafeBytes { continuity.note($0) } }
    func beginComparing() { continuity.beginComparing() }
    func continues(with bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { continuity.continues(with: $0) } }
}

/// Whether an answer continues a body, by the bytes that it repeats.
@Suite struct ContinuityTests {
    @Test(
        arguments: [
            (0, 0), (1023, 0), (1024, 1024), (65_535, 65_535), (65_536, 65_536), (65_537, 65_536), (200_000, 65_536),
        ] as [(Int64, Int64)], [700, 16_384, 65_536, 300_000] as [Int64])
    func lastBytesHaveToBeRepeated(received: (Int64, Int64), piece: Int64) {
        let (count, length) = received
        let continuity = Tail()
        for start in stride(from: 0, to: count, by: Int(piece)) {
            continuity.note(media.bytes(start..<min(count, start + piece)))
        }
        #expect(continuity.length == length)
        guard length > 0 else { return }
        continuity.beginComparing()
        for start in stride(from: count - length, to: count, by: Int(piece)) {
            #expect(continuity.continues(with: media.bytes(start..<min(count, start + piece))))
        }
        // A second answer repeats them again.
        continuity.beginComparing()
        #expect(continuity.continues(with: media.bytes(count - length..<count)))
    }

    @Test(arguments: [0, 1, 40_000, 65_535]) func oneOtherByteIsNoticed(position: Int) {
        let continuity = Tail()
        continuity.note(media.bytes(0..<100_000))
        continuity.beginComparing()
        var bytes = media.bytes(100_000 - 65_536..<100_000)
        bytes[position] ^= 1
        let halves = (Array(bytes[..<30_000]), Array(bytes[30_000...]))
        #expect(!(continuity.continues(with: halves.0) && continuity.continues(with: halves.1)))
    }

    @Test func nothingToRepeatContinues() {
        let continuity = Tail()
        continuity.beginComparing()
        #expect(continuity.continues(with: []))
    }
}
