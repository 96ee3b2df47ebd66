import Testing
import TestSupport

/// What the client makes of raw bytes, sent by an origin whose fields are scripted into lies.
@Suite struct RawClientTests {
    private func origin(_ text: String, _ headers: [(String, String)] = []) throws -> ScriptedOrigin {
        let origin = try ScriptedOrigin()
        origin.serve("/", bytes: Array(text.utf8))
        origin.script("/") { $0.headers = headers }
        return origin
    }

    @Test func lengthLargerThanTheBodyIsATruncation() throws {
        let origin = try origin("hello", [("Content-Length", "10"), ("Connection", "close")])
        #expect(throws: RawClient.ResponseError.truncated(received: 5, expected: 10)) {
            try RawClient.get(port: origin.port, path: "/")
        }
    }

    @Test func lengthSmallerThanTheBodyLeavesTheRest() throws {
        let origin = try origin("hello", [("Content-Length", "2")])
        let client = try RawClient(port: origin.port)
        #expect(try client.get("/", headers: [("Connection", "close")]).text == "he")
        #expect(try client.readUntilClosed() == Array("llo".utf8))
    }

    @Test func chunksAreDecodedWithExtensionsAndTrailer() throws {
        let body = "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n"
        let origin = try ScriptedOrigin()
        origin.script("/") {
            ($0.status, $0.body) = (200, Array(body.utf8))
            $0.headers = [("Transfer-Encoding", "chunked"), ("Content-Length", "\(body.utf8.count)")]
        }
        let client = try RawClient(port: origin.port)
        for _ in 0..<2 { #expect(try client.get("/").text == "abc0123456789") }
    }

    @Test func garbageForAChunkSizeIsMalformed() throws {
        let origin = try origin("xyz\r\n", [("Transfer-Encoding", "chunked")])
        #expect(throws: RawClient.ResponseError.malformed("chunk size xyz")) {
            try RawClient.get(port: origin.port, path: "/")
        }
    }

    @Test func interimResponseIsSkipped() throws {
        let origin = try origin("hello")
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/", headers: [("Expect", "100-continue"), ("Content-Length", "1")]) + "x")
        #expect(try client.readResponse().text == "hello")
    }

    @Test func openConnectionIsNotClosedByThePeer() throws {
        let origin = try origin("hello")
        let client = try RawClient(port: origin.port)
        #expect(try client.get("/").text == "hello")
        #expect(try !client.isClosedByPeer(within: .zero))
        origin.stop()
        #expect(try client.isClosedByPeer())
    }
}
