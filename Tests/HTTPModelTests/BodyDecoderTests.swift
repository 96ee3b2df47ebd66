import HTTPModel
import TestSupport
import Testing

@Suite struct BodyDecoderTests {
    private static let next = "GET /next HTTP/1.1\r\n\r\n"

    private static let bodies: [(BodyFraming, String, String)] = [
        (.empty, "", ""),
        (.length(5), "hello", "hello"),
        (.chunked, "0\r\n\r\n", ""),
        (.chunked, "5\r\nhello\r\n0\r\n\r\n", "hello"),
        (.chunked, "5\r\nhello\r\n1\r\n \r\n0005\r\nworld\r\n000\r\n\r\n", "hello world"),
        (.chunked, "a\r\n0123456789\r\nA\r\n0\r\n\r\n12345\r\n0\r\n\r\n", "01234567890\r\n\r\n12345"),
        // Extensions and trailers
        (.chunked, "5;a\r\nhello\r\n5 \t ; a=b;c=\"\u{E9};\"\r\nworld\r\n0;last\r\n\r\n", "helloworld"),
        (.chunked, "1\r\na\r\n0\r\nX-Sum: 1 2\t\r\nContent-Length: 7\r\nX:\r\n\r\n", "a"),
        (
            .chunked,
            "1;" + String(repeating: "x", count: 252) + "\r\na\r\n0\r\nX:" + String(repeating: "x", count: 8184)
                + "\r\n\r\n", "a"
        ),
    ]

    @Test(arguments: bodies)
    func bodyEndsWhereTheNextRequestBegins(framing: BodyFraming, text: String, content: String) throws {
        let result = try Decoded((text + Self.next).utf8, framing)
        #expect(result.content == Array(content.utf8))
        #expect(result.consumed == text.utf8.count)
    }

    @Test(arguments: bodies)
    func bodyIsTheSameHoweverItIsCut(framing: BodyFraming, text: String, content: String) throws {
        let bytes = Array((text + Self.next).utf8)
        for step in [1, 2, 3, 7] {
            let result = try Decoded(bytes, framing, step: step)
            #expect(result.content == Array(content.utf8))
            #expect(result.consumed == text.utf8.count)
        }
    }

    @Test(arguments: bodies)
    func bodyIsIncompleteUpToItsLastByte(framing: BodyFraming, text: String, content: String) throws {
        let bytes = Array(text.utf8)
        for count in bytes.indices {
            #expect(try Decoded(bytes[..<count], framing).consumed == nil, "after \(count) bytes")
            #expect(!bytes[..<count].withUnsafeBytes { BodyDecoder(framing).ends(within: $0) })
        }
        #expect(bytes.withUnsafeBytes { BodyDecoder(framing).ends(within: $0) })
    }

    @Test(arguments: [
        // Sizes
        (400, "\r\n"), (400, ";a\r\n"), (400, " 5\r\n"), (400, "+5\r\n"), (400, "-5\r\n"), (400, "0x5\r\n"),
        (400, "5g\r\n"), (400, "5_0\r\n"), (400, "5.0\r\n"),
        (400, "5 \r\n"), (400, "5 5\r\n"), (400, "5,5\r\n"), (400, "5\n"), (400, "5\r5"), (400, "5;a\n"),
        (400, "5;a\rb"), (400, "5;\u{0}"), (400, "G"),
        (400, "8000000000000000\r\n"), (400, "10000000000000005\r\n"), (400, "ffffffffffffffff\r\n"),
        (400, "fffffffffffffffff\r\n"),
        (400, String(repeating: "0", count: 257)), (400, "1;" + String(repeating: "x", count: 255)),
        // Ends of chunks
        (400, "5\r\nhello0"), (400, "5\r\nhello\n"), (400, "5\r\nhello\rX"), (400, "5\r\nhello!\r\n"),
        (400, "5\r\nhell\r\n0\r\n\r\n"), (400, "0\r\n\n"),
        // Trailers
        (400, "0\r\nX\r\n"), (400, "0\r\n: x\r\n"), (400, "0\r\n X: x\r\n"), (400, "0\r\nX : x\r\n"),
        (400, "0\r\nX: x\n"), (400, "0\r\nX: \u{0}"),
        (400, "0\r\nGET / HTTP/1.1\r\n"), (400, "0\r\n\rX"), (431, "0\r\nX:" + String(repeating: "x", count: 8191)),
        (431, "0\r\n" + String(repeating: "X: x\r\n", count: 1400)),
    ])
    func faultIsFoundAndNamed(status: Int, text: String) throws {
        for step in [Int.max, 1, 5] {
            let fault = #expect(throws: RequestFault.self) { try Decoded(text.utf8, .chunked, step: step) }
            #expect(fault?.status == status)
            #expect(fault?.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 } == true)
        }
        #expect(!Array(text.utf8).withUnsafeBytes { BodyDecoder(.chunked).ends(within: $0) })
    }

    @Test func hugeChunkIsNotTakenForAnother() throws {
        var decoder = BodyDecoder(.chunked)
        let line = Array("0FFFFFFFFFFFFFFF\r\n".utf8)
        #expect(try line.withUnsafeBytes { try decoder.next(in: $0) } == .incomplete)
        #expect(try Array("x".utf8).withUnsafeBytes { try decoder.next(in: $0) } == .content(0..<1))
        #expect(decoder.remaining == nil)
    }

    @Test func remainingBytesAreKnownWhereTheLengthIs() throws {
        var decoder = BodyDecoder(.length(5))
        #expect(decoder.remaining == 5)
        #expect(try Array("he".utf8).withUnsafeBytes { try decoder.next(in: $0) } == .content(0..<2))
        #expect(decoder.remaining == 3)
        #expect(BodyDecoder(.chunked).remaining == nil)
        #expect(BodyDecoder(.empty).remaining == 0)
    }

    @Test func arbitraryBytesNeverTrapAndNeverChangeTheirMind() {
        var random = SplitMix64.forTest("arbitraryChunks")
        let awkward = Array("\r\n\r\n0123;: aAfX".utf8)
        for _ in 0..<3000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in awkward.randomElement(using: &random)! }
            let whole = Result { try Decoded(bytes, .chunked) },
                single = Result { try Decoded(bytes, .chunked, step: 1) }
            switch (whole, single) {
            case (.success(let a), .success(let b)):
                #expect(a.content == b.content && a.consumed == b.consumed, "\(bytes)")
            case (.failure(let a), .failure(let b)): #expect(a as? RequestFault == b as? RequestFault, "\(bytes)")
            default: Issue.record("it depends on how they are cut: \(bytes)")
            }
        }
    }
}

/// What a decoder finds in bytes that it is given so many at a time.
private struct Decoded {
    var content: [UInt8] = []
    /// Where the body ends; nil where it does not.
    var consumed: Int?

    init(_ bytes: some Collection<UInt8>, _ framing: BodyFraming, step: Int = .max) throws {
        let bytes = Array(bytes)
        var decoder = BodyDecoder(framing), position = 0, end = min(step, bytes.count)
        while true {
            // From a copy of exactly the bytes, so that reading beyond them traps in a debug build.
            let part = Array(bytes[position..<end])
            switch try part.withUnsafeBytes({ try decoder.next(in: $0) }) {
            case .content(let range):
                content += part[range]
                position += range.upperBound
            case .incomplete:
                position = end
                if end == bytes.count { return }
                end = min(end + step, bytes.count)
            case .end(let count):
                consumed = position + count
                return
            }
        }
    }
}
