import HTTPModel
import TestSupport
import Testing
import Upstream

/// Heads that no origin should send.
@Suite struct HostileHeadTests {
    private func expectRefused(
        _ origin: CannedOrigin, _ upstreams: Upstreams, because reason: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let (recorder, error) = try upstreams.fetch(origin.url)
        #expect(error == .protocolViolation(detail: reason), sourceLocation: sourceLocation)
        #expect(recorder.heads.isEmpty && recorder.body.isEmpty, sourceLocation: sourceLocation)
    }

    private static let folded = "the head has a folded field line"

    /// libcurl 7.88.1 appends such a line to the last field of the handle's exchange before, which it has freed: with
    /// handles that are used again, the process dies here.
    @Test func foldedFirstLineAfterAnotherAnswer() throws {
        let proper = try CannedOrigin(
            "HTTP/1.1 200 OK\r\nX-Last: \(String(repeating: "x", count: 200))\r\nContent-Length: 0\r\n\r\n")
        let folded = try CannedOrigin(
            "HTTP/1.1 200 OK\r\n folded: \(String(repeating: "y", count: 2000))\r\nContent-Length: 0\r\n\r\n")
        let upstreams = try Upstreams()
        for _ in 0..<20 {
            #expect(try upstreams.fetch(proper.url).error == nil)
            guard case .protocolViolation(let detail) = try upstreams.fetch(folded.url).error else {
                Issue.record("a folded head was taken")
                return
            }
            #expect(detail.contains("folded"))
        }
    }

    @Test(arguments: ["X-Folded: a\r\n b\r\n", "X-Folded: a\r\n\tb\r\n", "X-Folded: a\r\n \r\n"])
    func foldedLine(_ lines: String) throws {
        try expectRefused(
            CannedOrigin("HTTP/1.1 200 OK\r\n\(lines)Content-Length: 0\r\n\r\n"), Upstreams(), because: Self.folded)
    }

    /// What curl would hand on is coded, and would be stored as if it were not.
    @Test(arguments: ["gzip, chunked", "chunked, gzip", "gzip", "identity", "chunked, chunked", "x", ""])
    func transferCoding(_ codings: String) throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(codings)\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        try expectRefused(origin, Upstreams(), because: "Transfer-Encoding: \(codings)")
    }

    @Test func severalTransferCodingLines() throws {
        let origin = try CannedOrigin(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        try expectRefused(origin, Upstreams(), because: "Transfer-Encoding: gzip, chunked")
    }

    @Test(arguments: ["chunked", "Chunked", " chunked\t"])
    func chunkedIsFine(_ coding: String) throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        let (recorder, error) = try Upstreams().fetch(origin.url)
        #expect(error == nil && recorder.body == Array("abc".utf8))
    }

    @Test func manyFields() throws {
        let fields = String(repeating: "a:b\r\n", count: 256)
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\n\(fields)\r\n")
        let (recorder, error) = try Upstreams().fetch(origin.url)
        #expect(error == nil && recorder.heads.first?.fields.lines.count == 256)
        try expectRefused(
            CannedOrigin("HTTP/1.1 200 OK\r\n\(fields)a:b\r\n\r\n"), Upstreams(),
            because: "the head of the response has more than 256 fields")
    }

    @Test func longHead() throws {
        let fields = String(repeating: "a: \(String(repeating: "b", count: 995))\r\n", count: 32)
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\n\(fields)\r\n")
        let (_, error) = try Upstreams().fetch(origin.url)
        #expect(error == nil)
        try expectRefused(
            CannedOrigin("HTTP/1.1 200 OK\r\n\(fields)a: \(String(repeating: "b", count: 995))\r\n\r\n"), Upstreams(),
            because: "the head of the response is larger than 32768 bytes")
    }

    /// Interim responses and redirects count too: nobody sends many of them.
    @Test func manyInterimResponses() throws {
        let interim = String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", count: 300)
        try expectRefused(
            CannedOrigin(interim + "HTTP/1.1 200 OK\r\n\r\n"), Upstreams(),
            because: "the head of the response has more than 256 fields")
    }

    /// RFC 9110 §5.5: bytes that are not ASCII are opaque. A tag that would be sent back as others identifies nothing.
    @Test func bytesThatAreNotUTF8StayDistinct() throws {
        let fields = try [UInt8](0xE8...0xE9).map { byte throws -> HeaderFields in
            let head = ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"", "\"\r\nX-Name: \u{E9}, caf", "\r\n\r\n"]
            let origin = try CannedOrigin(bytes: Array(head.map { Array($0.utf8) }.joined(separator: [byte])))
            return try #require(try Upstreams().fetch(origin.url).0.heads.first).fields
        }
        #expect(fields.map { $0["ETag"] } == [nil, nil])
        #expect(fields.map { $0["X-Name"] } == ["\u{C3}\u{A9}, caf\u{E8}", "\u{C3}\u{A9}, caf\u{E9}"])
    }

    // MARK: Trailers

    /// The body of a chunked answer with these trailers is there, and then the transfer fails.
    private func expectRefused(
        trailers: String, because reason: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let origin = try CannedOrigin(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\(trailers)\r\n")
        let (recorder, error) = try Upstreams().fetch(origin.url)
        #expect(
            error == .protocolViolation(detail: reason) && recorder.heads.count == 1, sourceLocation: sourceLocation)
    }

    /// Curl keeps each of them: 40 MB of the shortest took 456 MB of memory.
    @Test func manyTrailers() throws {
        try expectRefused(
            trailers: String(repeating: "a:b\r\n", count: 256),
            because: "the head of the response has more than 256 fields")
        try expectRefused(
            trailers: String(repeating: "a: \(String(repeating: "b", count: 1000))\r\n", count: 40),
            because: "the head of the response is larger than 32768 bytes")
    }

    /// Curl joins them to one line, again with each piece that comes: its work grows with the square.
    @Test(arguments: [" ", "\t"]) func foldedTrailer(fold: String) throws {
        try expectRefused(trailers: "a: b\r\n\(fold)c\r\n", because: Self.folded)
    }

    /// What looks like another head there is none.
    @Test func statusLineAmongTrailers() throws {
        let origin = try CannedOrigin(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nHTTP/1.1 500: No\r\nA: b\r\n\r\n")
        let (recorder, error) = try Upstreams().fetch(origin.url)
        #expect(error == nil && recorder.heads.map(\.status) == [200] && recorder.body == Array("abc".utf8))
    }

    // MARK: Names

    /// To curl these are other fields than those which they look like: of the first one the framing of the chunks would
    /// be stored as the body.
    @Test(arguments: [
        "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Content-Length : 5", "Content Length: 5",
        "Content Range: bytes 0-1/2", "Content-Encoding : gzip",
    ])
    func nameThatIsTakenForFraming(_ line: String) throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nX-First: a\r\n\(line)\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        let name = String(line.prefix { $0 != ":" })
        try expectRefused(origin, Upstreams(), because: "the name of the field \"\(name)\" is not a token")
    }

    /// As clients do. The fields around it stay.
    @Test(arguments: ["Protected by Some Shield : yes", "Server : x", ": 5", "Content-L\u{E8}ngth: 5", "(note): 1"])
    func lineWithAnotherNameThatIsNotATokenIsDropped(_ line: String) throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nX-First: a\r\n\(line)\r\nX-Last: b\r\n\r\nabc")
        let (recorder, error) = try Upstreams().fetch(origin.url)
        #expect(error == nil && recorder.body == Array("abc".utf8))
        #expect(recorder.heads.first?.fields.lines.map(\.name) == ["X-First", "X-Last"])
    }
}
