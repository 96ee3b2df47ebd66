import HTTPTransport
import TestSupport
import Testing

/// Bodies that end with their connection: HTTP/1.0 knows no other end where the length is unknown, so a cut must not
/// look like one.
@Suite struct UntilCloseTests {
    @Test func completeBodyEndsInGoodOrder() throws {
        let feed = Feed(.bytes([1, 2]), .bytes([3]), .end)
        let server = try TestServer { feed.answer($0, length: nil) }
        let client = try server.client()
        #expect(try client.get("/a", version: "1.0").body == [1, 2, 3])
        #expect(feed.endedOnce)
    }

    /// A client of HTTP/1.0 that has three bytes of a body, of which more is to come.
    private func withThreeBytes(_ body: (Feed, TestServer, RawClient) throws -> Void) throws {
        let feed = Feed(.bytes([1, 2, 3]))
        let server = try TestServer { feed.answer($0, length: nil) }
        let client = try server.client()
        try client.send(client.request("/a", version: "1.0"))
        _ = try client.readHead()
        #expect(try client.readBody(exactly: 3) == [1, 2, 3])
        try body(feed, server, client)
    }

    @Test func cutBodyIsReset() throws {
        try withThreeBytes { feed, _, client in
            feed.give(.cut)
            #expect(throws: RawClient.ResponseError.truncated(received: 3, expected: nil)) {
                try client.readBody(upTo: 1)
            }
            #expect(feed.endedOnce)
        }
    }

    /// The server stops before the body is complete.
    @Test func bodyThatTheServersEndCutsIsReset() throws {
        try withThreeBytes { _, server, client in
            server.stop(graceSeconds: 0)
            #expect(throws: RawClient.ResponseError.truncated(received: 3, expected: nil)) {
                try client.readBody(upTo: 1)
            }
        }
    }

    /// What is still on its way arrives.
    @Test func longBodyArrivesAsAWhole() throws {
        let media = Media(seed: 4, size: 3_000_000)
        let server = try TestServer { $0.respond(Response(200, length: nil), body: BytesSource(media.allBytes)) }
        let client = try server.client(receiveBuffer: 8192)
        #expect(media.difference(try client.get("/a", version: "1.0").body, from: 0..<media.size) == nil)
    }
}
