import HTTPModel
import Testing

@testable import CachePolicy

/// The first answer about a resource: which bytes it brings, and whether they are kept.
@Suite struct FirstAnswerTests {
    private static func answer(_ status: Int, length: Int64? = nil, range: String? = nil) -> OriginAnswer {
        OriginAnswer(
            status: status, fields: [], contentLength: length,
            contentRange: range.flatMap { ContentRange(parsing: "bytes " + $0) })
    }

    private static func first(_ answer: OriginAnswer, requested: ByteRangeSpec? = nil) throws(FirstAnswer.Problem)
        -> FirstAnswer
    {
        try FirstAnswer(answer, requested: requested, longest: 1000)
    }

    @Test(
        arguments: [
            // What was asked for, the answer, the bytes that come, and the length of the whole.
            (nil, answer(200, length: 100), 0..<100, 100), (nil, answer(200), 0..<Int64.max, nil),
            (nil, answer(404, length: 9), 0..<9, 9), (nil, answer(416, range: "*/9"), 0..<Int64.max, nil),
            (nil, answer(206, range: "0-9/100"), 0..<10, 100),
            // RFC 9110 §14.2: a range may be ignored.
            (.bounded(first: 10, last: 19), answer(200, length: 100), 0..<100, 100),
            (.bounded(first: 10, last: 19), answer(206, range: "10-19/100"), 10..<20, 100),
            // §15.3.7: less than was asked for, and of a whole that is not told (§14.4).
            (.bounded(first: 10, last: 19), answer(206, range: "10-14/*"), 10..<15, nil),
            // More than was asked for.
            (.bounded(first: 10, last: 19), answer(206, length: 90, range: "10-99/100"), 10..<20, 100),
            (.from(10), answer(206, range: "10-99/100"), 10..<100, 100),
            (.suffix(10), answer(206, range: "90-99/100"), 90..<100, 100),
            (.suffix(200), answer(206, range: "0-99/100"), 0..<100, 100),
            (.suffix(10), answer(206, range: "80-99/100"), 80..<100, 100),
            (.suffix(10), answer(206, range: "90-99/*"), 90..<100, nil),
        ] as [(ByteRangeSpec?, OriginAnswer, Range<Int64>, Int64?)])
    func firstAnswerBringsTheseBytes(
        requested: ByteRangeSpec?, answer: OriginAnswer, range: Range<Int64>, total: Int64?
    ) throws {
        let first = try Self.first(answer, requested: requested)
        #expect(first.range == range && first.total == total)
    }

    @Test(
        arguments: [
            // RFC 9110 §15.3.7.1
            (nil, answer(206), "a 206 without a usable Content-Range"),
            (nil, answer(206, range: "*/100"), "a 206 without a usable Content-Range"),
            (nil, answer(206, range: "1-9/100"), "it answers with bytes 1-9, which were not requested"),
            (
                .bounded(first: 10, last: 19), answer(206, range: "11-19/100"),
                "it answers with bytes 11-19, which were not requested"
            ),
            (
                .bounded(first: 10, last: 19), answer(206, length: 9, range: "10-19/100"),
                "a 206 whose Content-Length contradicts its Content-Range"
            ),
            (.from(10), answer(206, range: "0-99/100"), "it answers with bytes 0-99, which were not requested"),
            (.suffix(10), answer(206, range: "90-98/100"), "it answers with bytes 90-98, which were not requested"),
            (.suffix(10), answer(206, range: "91-99/100"), "it answers with bytes 91-99, which were not requested"),
            // Of a length that nobody has.
            (nil, answer(200, length: 1001), "a length of 1001 bytes is more than can be handled"),
            (nil, answer(206, range: "0-9/1001"), "a length of 1001 bytes is more than can be handled"),
            (.from(1000), answer(206, range: "1000-1000/*"), "a length of 1001 bytes is more than can be handled"),
        ] as [(ByteRangeSpec?, OriginAnswer, String)])
    func whatWasNotAskedForIsUnusable(requested: ByteRangeSpec?, answer: OriginAnswer, why: String) {
        #expect(throws: FirstAnswer.Problem.unusable(why)) { try Self.first(answer, requested: requested) }
    }

    @Test(
        arguments: [
            // A condition tells versions apart: whether it is kept then, and without one.
            (answer(200, length: 100), true, true), (answer(200), true, true),
            // RFC 9110 §15.3.7.3: parts without a validator belong together with nothing.
            (answer(206, range: "0-9/100"), true, false),
            // A part of an unknown whole is nobody's but the one's who asked for it.
            (answer(206, range: "0-9/*"), false, false),
        ] as [(OriginAnswer, Bool, Bool)])
    func whatCannotBeGoneOnWithIsKeptOnlyAsAWhole(answer: OriginAnswer, withCondition: Bool, without: Bool) throws {
        let first = try Self.first(answer)
        #expect(first.isKept(.store, condition: "\"v1\"") == withCondition)
        #expect(first.isKept(.store, condition: nil) == without)
        #expect(!first.isKept(.pass(.noStore), condition: "\"v1\""))
    }

    @Test(
        arguments: [
            // The answer, whether a part was asked for, and whether what it brings comes in no other way.
            (answer(200, length: 100), false, false), (answer(200, length: 100), true, true),
            (answer(200), false, true), (answer(206, range: "0-9/100"), true, false),
            (answer(206, range: "0-9/*"), true, true),
        ] as [(OriginAnswer, Bool, Bool)])
    func originWithoutRangesBringsItInNoOtherWay(answer: OriginAnswer, isPartRequested: Bool, isUnresumable: Bool)
        throws
    {
        let first = try Self.first(answer)
        let decide = { first.isUnresumable(isStored: $0, condition: $1, isPartRequested: isPartRequested) }
        #expect(decide(true, "\"v1\"") == isUnresumable)
        #expect(decide(true, nil) && decide(false, "\"v1\""))
    }

    @Test(
        arguments: [
            ("0-99/100", 0), ("1-99/100", 64), ("63-99/100", 64), ("64-99/100", 64), ("65-99/100", 128),
        ] as [(String, Int64)])
    func whatIsKeptBeginsWithAWholeChunk(range: String, start: Int64) throws {
        let geometry = try #require(ChunkGeometry(chunkSize: 4096))
        let scaled = try #require(ContentRange(parsing: "bytes " + range)?.range).lowerBound * 64
        let answer = OriginAnswer(
            status: 206, fields: [], contentLength: nil,
            contentRange: ContentRange(range: scaled..<scaled + 10_000, total: 100_000))
        let first = try FirstAnswer(answer, requested: .from(scaled), longest: .max)
        #expect(first.start(geometry) == start * 64)
    }
}
