import TestSupport
import Testing
import Upstream

/// Heads that no origin should send.
@Suite struct HostileHeadTests {
    private func expectRefused(_ origin: CannedOrigin, _ upstreams: Upstreams, because reason: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let (recorder, error) = try upstreams.fetch(origin.url)
        #expect(error == .protocolViolation(detail: reason), sourceLocation: sourceLocation)
        #expect(recorder.heads.isEmpty && recorder.body.isEmpty, sourceLocation: sourceLocation)
    }

    private static let folded = "the head has a folded field line"

    /// libcurl 7.88.1 appends such a line to the last field of the handle's exchange before, which it has freed: with handles that are used
    /// again, the process dies here.
    @Test func foldedFirstLineAfterAnotherAnswer() throws {
        let proper = try CannedOrigin("HTTP/1.1 200 OK\r\nX-Last: \(String(repeating: "x", count: 200))\r\nContent-Length: 0\r\n\r\n")
        let folded = try CannedOrigin("HTTP/1.1 200 OK\r\n folded: \(String(repeating: "y", count: 2000))\r\nContent-Length: 0\r\n\r\n")
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
        try expectRefused(CannedOrigin("HTTP/1.1 200 OK\r\n\(lines)Content-Length: 0\r\n\r\n"), Upstreams(), because: Self.folded)
    }

    /// What curl would hand on is coded, and would be stored as if it were not.
    @Test(arguments: ["gzip, chunked", "chunked, gzip", "gzip", "identity", "chunked, chunked", "x", ""])
    func transferCoding(_ codings: String) throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(codings)\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        try expectRefused(origin, Upstreams(), because: "Transfer-Encoding: \(codings)")
    }

    @Test func severalTransferCodingLines() throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
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
        try expectRefused(CannedOrigin("HTTP/1.1 200 OK\r\n\(fields)a:b\r\n\r\n"), Upstreams(), because: "the head of the response has more than 256 fields")
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
        try expectRefused(CannedOrigin(interim + "HTTP/1.1 200 OK\r\n\r\n"), Upstreams(), because: "the head of the response has more than 256 fields")
    }
}
