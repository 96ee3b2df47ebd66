import Testing
import TestSupport

@Suite struct MediaTests {
    @Test func bytesOfAnyRangeAgreeWithByteAt() {
        let media = Media(seed: 7, size: 1000)
        for start: Int64 in 0..<17 {
            for end in start..<40 {
                #expect(media.bytes(start..<end) == (start..<end).map { media.byte(at: $0) })
            }
        }
    }

    @Test func offsetsBeyondFourGiBDifferFromThoseBelow() {
        let media = Media(seed: 7, size: 100_000_000_000)
        let far: Int64 = 1 << 32
        #expect(media.bytes(far..<far + 64) != media.bytes(0..<64))
        #expect(media.bytes(99_999_999_990..<100_000_000_000).count == 10)
    }

    @Test func firstMismatchFindsEachSingleWrongByte() {
        let media = Media(seed: 3, size: 200_000)
        let bytes = media.bytes(5..<150_005)
        #expect(media.firstMismatch(bytes, at: 5) == nil)
        for index in [0, 1, 7, 65_535, 65_536, 149_999] {
            var wrong = bytes
            wrong[index] ^= 1
            #expect(media.firstMismatch(wrong, at: 5) == Int64(5 + index))
        }
    }

    @Test func firstMismatchIsTheSizeWhenThereAreBytesPastIt() {
        let media = Media(seed: 3, size: 100)
        #expect(media.firstMismatch(media.bytes(90..<110), at: 90) == 100)
        #expect(media.firstMismatch([1], at: 200) == 200)
        #expect(media.firstMismatch([], at: 100) == nil)
    }

    @Test func differenceTellsMissingBytesFromWrongOnes() {
        let media = Media(seed: 3, size: 100)
        #expect(media.difference(media.bytes(10..<20), from: 10..<20) == nil)
        #expect(media.difference(media.bytes(10..<19), from: 10..<20) == "9 bytes instead of 10")
        #expect(media.difference(media.bytes(11..<21), from: 10..<20) == "wrong from offset 10 on")
    }

    @Test func contentShiftedByAnyAmountIsAMismatch() {
        let media = Media(seed: 3, size: 10_000_000)
        for shift: Int64 in [1, 8, 4096, 65_536, 4_194_304] {
            #expect(media.firstMismatch(media.bytes(shift..<shift + 64), at: 0) != nil)
        }
    }

    @Test func seedsGiveDifferentContent() {
        #expect(Media(seed: 1, size: 64).allBytes != Media(seed: 2, size: 64).allBytes)
    }
}
