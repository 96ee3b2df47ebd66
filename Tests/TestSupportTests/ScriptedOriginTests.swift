import Foundation
import Testing
import TestSupport

private let media = Media(seed: 1, size: 1_000_000)

/// An origin that serves `media` at `/a.mp4`.
private func makeOrigin(_ change: (inout ScriptedOrigin.Behaviour) -> Void = { _ in }) throws -> ScriptedOrigin {
    let origin = try ScriptedOrigin()
    origin.serve("/a.mp4", media, lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
    origin.script("/a.mp4", change)
    return origin
}

@Suite struct OriginServesTests {
    @Test func getWithoutRangeIsTheWhole() throws {
        let origin = try makeOrigin()
        let response = try RawClient.get(port: origin.port, path: "/a.mp4")
        #expect(response.status == 200)
        #expect(response.headers["content-length"] == "1000000")
        #expect(response.headers["etag"] == "\"v1\"")
        #expect(response.headers["content-type"] == "video/mp4")
        #expect(response.headers["accept-ranges"] == "bytes")
        #expect(media.difference(response.body, from: 0..<1_000_000) == nil)
    }

    @Test(
        arguments: [
            ("bytes=0-9", 206, "bytes 0-9/1000000", 0..<10),
            ("bytes=5-", 206, "bytes 5-999999/1000000", 5..<1_000_000),
            ("bytes=-10", 206, "bytes 999990-999999/1000000", 999_990..<1_000_000),
            ("bytes=-2000000", 206, "bytes 0-999999/1000000", 0..<1_000_000),
            ("bytes=999999-9999999", 206, "bytes 999999-999999/1000000", 999_999..<1_000_000),
            ("bytes=1000000-", 416, "bytes */1000000", 0..<0),
            ("bytes=2000000-3000000", 416, "bytes */1000000", 0..<0),
            ("bytes=-0", 416, "bytes */1000000", 0..<0),
            ("bytes=9-0", 200, nil, 0..<1_000_000),
            ("bytes=0-1,5-6", 200, nil, 0..<1_000_000),
            ("seconds=0-9", 200, nil, 0..<1_000_000),
            ("bytes=+1-9", 200, nil, 0..<1_000_000),
        ] as [(String, Int, String?, Range<Int64>)])
    func rangeIsAnsweredPerRFC9110(field: String, status: Int, contentRange: String?, body: Range<Int64>) throws {
        let origin = try makeOrigin()
        let response = try RawClient.get(port: origin.port, path: "/a.mp4", range: field)
        #expect(response.status == status)
        #expect(response.headers["Content-Range"] == contentRange)
        #expect(media.difference(response.body, from: body) == nil)
    }

    @Test func loggedRangeIsHalfOpenAndAsAsked() throws {
        let origin = try makeOrigin()
        for field in ["bytes=0-9", "bytes=5-", "bytes=-10", "bytes=0-9999999", "bytes=2000000-"] {
            _ = try RawClient.get(port: origin.port, path: "/a.mp4?token=1", range: field)
        }
        #expect(
            origin.requests("/a.mp4").map(\.range) == [0..<10, 5..<1_000_000, 999_990..<1_000_000, 0..<10_000_000, nil])
        #expect(origin.requests("/a.mp4?token=1").count == 5)
    }

    @Test func headHasTheFieldsOfGetAndNoBody() throws {
        let origin = try makeOrigin()
        let client = try RawClient(port: origin.port)
        let head = try client.get("/a.mp4", range: "bytes=0-9", method: "HEAD")
        #expect(head.status == 200 && head.headers["Content-Length"] == "1000000" && head.body.isEmpty)
        #expect(try client.get("/a.mp4", range: "bytes=0-0").status == 206)
        #expect(origin.requests("/a.mp4").map(\.connection) == [0, 0])
        #expect(origin.requests("/a.mp4").map(\.bodyBytesSent) == [0, 1])
        let allFinished = origin.requests("/a.mp4").allSatisfy(\.finished)
        #expect(allFinished)
    }

    @Test func resourceBeyondFourGiBIsServedSparsely() throws {
        let origin = try ScriptedOrigin()
        let huge = Media(seed: 5, size: 100_000_000_000)
        origin.serve("/huge", huge)
        let range: Range<Int64> = 99_999_999_000..<100_000_000_000
        let response = try RawClient.get(port: origin.port, path: "/huge", range: range.rangeField)
        #expect(response.headers["Content-Range"] == "bytes 99999999000-99999999999/100000000000")
        #expect(huge.difference(response.body, from: range) == nil)
    }

    @Test(
        arguments: [
            (["If-None-Match": "\"v1\""], 304), (["If-None-Match": "\"x\", W/\"v1\""], 304),
            (["If-None-Match": "*"], 304),
            (["If-None-Match": "\"v2\""], 200), (["If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 304),
            (["If-Modified-Since": "Sun, 06 Nov 1994 08:49:36 GMT"], 200),
            (["If-Modified-Since": "Tue, 14 Jan 2025 00:00:00 GMT"], 304),
            (["If-None-Match": "\"v2\"", "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 200),
            (["Range": "bytes=0-9", "If-Range": "\"v1\""], 206), (["Range": "bytes=0-9", "If-Range": "\"v2\""], 200),
            (["Range": "bytes=0-9", "If-Range": "W/\"v1\""], 200),
            (["Range": "bytes=0-9", "If-Range": "Sun, 06 Nov 1994 08:49:37 GMT"], 206),
            (["Range": "bytes=0-9", "If-Range": "Sun, 06 Nov 1994 08:49:38 GMT"], 200),
        ] as [([String: String], Int)])
    func conditionIsHeeded(fields: [String: String], status: Int) throws {
        let origin = try makeOrigin()
        let response = try RawClient.get(port: origin.port, path: "/a.mp4", headers: fields.map { ($0.key, $0.value) })
        #expect(response.status == status)
        if status == 304 { #expect(response.body.isEmpty && response.headers["ETag"] == "\"v1\"") }
    }

    @Test func weakTagNeverMatchesIfRange() throws {
        let origin = try makeOrigin { $0.etag = "W/\"v1\"" }
        let response = try RawClient.get(
            port: origin.port, path: "/a.mp4", range: "bytes=0-9", headers: [("If-Range", "W/\"v1\"")])
        #expect(response.status == 200)
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let origin = try makeOrigin()
        origin.serve("/list", bytes: Array("#EXTM3U\n".utf8))
        let client = try RawClient(port: origin.port)
        let responses = try client.pipeline([
            client.request("/a.mp4", range: "bytes=0-9"), client.request("/list"), client.request("/none"),
            client.request("/list", method: "HEAD"),
        ])
        #expect(responses.map(\.status) == [206, 200, 404, 200])
        #expect(responses[1].text == "#EXTM3U\n")
        #expect(origin.snapshot.connectionCount == 1)
    }

    @Test func requestBodyIsLogged() throws {
        let origin = try ScriptedOrigin()
        origin.script("/post") { ($0.status, $0.body) = (201, Array("ok".utf8)) }
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/post", headers: [("Content-Length", "5")], method: "POST") + "hello")
        #expect(try client.readResponse().status == 201)
        let chunked = client.request("/post", headers: [("Transfer-Encoding", "chunked")], method: "PUT")
        try client.send(chunked + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
        #expect(try client.readResponse().text == "ok")
        #expect(origin.requests("/post").map { String(decoding: $0.body, as: UTF8.self) } == ["hello", "abcde"])
    }

    @Test func hundredClientsAtOnceReadTheRightBytes() throws {
        let origin = try makeOrigin()
        var random = SplitMix64.forTest("hundredClientsAtOnceReadTheRightBytes")
        let ranges: [Range<Int64>] = (0..<100).map { _ in
            let start = Int64.random(in: 0..<900_000, using: &random)
            return start..<start + Int64.random(in: 1..<100_000, using: &random)
        }
        let differences = try concurrently(100) { index in
            let response = try RawClient.get(port: origin.port, path: "/a.mp4", range: ranges[index].rangeField)
            return media.difference(response.body, from: ranges[index])
        }
        #expect(differences.compactMap { $0 } == [])
        #expect(origin.requestCount("/a.mp4") == 100)
        #expect(origin.bytesSent("/a.mp4") == ranges.reduce(0) { $0 + Int64($1.count) })
    }

    @Test func threeHundredHeldConnectionsAreReleasedTogether() throws {
        let origin = try makeOrigin { $0.holdHead = true }
        let statuses = try Background {
            try concurrently(300) { _ in try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=0-9").status
            }
        }
        try origin.waitForRequests("/a.mp4", count: 300)
        origin.release("/a.mp4")
        #expect(try statuses.value() == Array(repeating: 206, count: 300))
    }
}

@Suite struct OriginAnswersTests {
    @Test func scriptedStatusComesWithItsBodyAndSoManyTimes() throws {
        let origin = try makeOrigin {
            ($0.status, $0.statusTimes, $0.body, $0.retryAfter) = (503, 2, Array("busy".utf8), 7)
        }
        let client = try RawClient(port: origin.port)
        for _ in 0..<2 {
            let response = try client.get("/a.mp4", range: "bytes=0-9")
            #expect(response.status == 503 && response.text == "busy" && response.headers["Retry-After"] == "7")
        }
        let response = try client.get("/a.mp4", range: "bytes=0-9")
        #expect(
            response.status == 206 && response.headers["Retry-After"] == nil && response.body == media.bytes(0..<10))
    }

    @Test func redirectNamesItsLocation() throws {
        let origin = try makeOrigin { $0.redirect = "http://elsewhere/b.mp4" }
        let response = try RawClient.get(port: origin.port, path: "/a.mp4")
        #expect(response.status == 302 && response.headers["Location"] == "http://elsewhere/b.mp4")
        origin.script("/a.mp4") { $0.status = 308 }
        #expect(try RawClient.get(port: origin.port, path: "/a.mp4").status == 308)
    }

    @Test func ignoredRangeIsAnsweredWithTheWhole() throws {
        let origin = try makeOrigin { $0.ignoresRange = true }
        let response = try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=5-9")
        #expect(response.status == 200 && response.body.count == 1_000_000 && response.headers["Accept-Ranges"] == nil)
    }

    @Test(
        arguments: [
            (.shifted(by: 1), "bytes 11-20/1000000"), (.endShifted(by: -1), "bytes 10-18/1000000"),
            (.total(5), "bytes 10-19/5"),
            (.unknownTotal, "bytes 10-19/*"), (.missing, nil), (.value("nonsense"), "nonsense"),
        ] as [(ScriptedOrigin.ContentRangeFault, String?)])
    func contentRangeIsWrongAsScripted(fault: ScriptedOrigin.ContentRangeFault, value: String?) throws {
        let origin = try makeOrigin { $0.wrongContentRange = fault }
        let response = try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=10-19")
        #expect(
            response.status == 206 && response.headers["Content-Range"] == value
                && response.body == media.bytes(10..<20))
    }

    @Test func withoutValidatorsNoConditionHolds() throws {
        let origin = try makeOrigin { $0.noValidators = true }
        let response = try RawClient.get(port: origin.port, path: "/a.mp4", headers: [("If-None-Match", "\"v1\"")])
        #expect(response.status == 200 && response.headers["ETag"] == nil && response.headers["Last-Modified"] == nil)
    }

    @Test func changeComesAfterSoManyRequests() throws {
        let other = Media(seed: 2, size: 500)
        let origin = try makeOrigin { $0.changeAfterRequests = (2, other, "\"v2\"") }
        let client = try RawClient(port: origin.port)
        let totals = try (0..<4).map { _ in try client.get("/a.mp4", range: "bytes=0-9").headers["Content-Range"] }
        #expect(totals == ["bytes 0-9/1000000", "bytes 0-9/1000000", "bytes 0-9/500", "bytes 0-9/500"])
        let response = try client.get("/a.mp4", headers: [("If-None-Match", "\"v1\"")])
        #expect(response.headers["ETag"] == "\"v2\"" && response.body == other.allBytes)
    }

    @Test func scriptedFieldReplacesTheOriginsOwn() throws {
        let origin = try makeOrigin {
            $0.headers = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("content-type", "audio/ogg")]
            $0.gzipEncoded = true
        }
        let response = try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=0-9")
        #expect(response.headers.all("set-cookie") == ["a=1", "b=2"])
        #expect(response.headers.all("Content-Type") == ["audio/ogg"])
        #expect(response.headers["Content-Encoding"] == "gzip" && response.body == media.bytes(0..<10))
    }

    @Test func chunkedBodyHasNoLengthAndKeepsTheConnection() throws {
        let origin = try makeOrigin { $0.chunkedEncoding = true }
        let client = try RawClient(port: origin.port)
        for _ in 0..<2 {
            let response = try client.get("/a.mp4")
            #expect(response.headers["Content-Length"] == nil && response.headers["Transfer-Encoding"] == "chunked")
            #expect(media.difference(response.body, from: 0..<1_000_000) == nil)
        }
        #expect(try client.get("/a.mp4", method: "HEAD").body.isEmpty)
        #expect(try client.get("/a.mp4", range: "bytes=3-4").body == media.bytes(3..<5))
        #expect(origin.snapshot.connectionCount == 1)
    }

    @Test func closeDelimitedBodyEndsWithTheConnection() throws {
        let origin = try makeOrigin { $0.closeDelimited = true }
        let client = try RawClient(port: origin.port)
        let response = try client.get("/a.mp4")
        #expect(response.headers["Content-Length"] == nil && response.headers["Connection"] == "close")
        #expect(media.difference(response.body, from: 0..<media.size) == nil)
        #expect(try client.isClosedByPeer())
    }

    @Test func http10ClientGetsNoChunksAndTheEndOfTheConnection() throws {
        let origin = try makeOrigin { $0.chunkedEncoding = true }
        let client = try RawClient(port: origin.port)
        let response = try client.get("/a.mp4", version: "1.0")
        #expect(response.headers["Transfer-Encoding"] == nil)
        #expect(media.difference(response.body, from: 0..<media.size) == nil)
        #expect(try client.isClosedByPeer())
    }

    @Test(arguments: [true, false]) func endlessBodyGoesOnPastTheSize(isChunked: Bool) throws {
        let origin = try makeOrigin { ($0.endless, $0.chunkedEncoding) = (true, isChunked) }
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/a.mp4"))
        #expect(try client.readHead().status == 200)
        let expected = Media(seed: 1, size: 1_500_000)
        #expect(try expected.difference(client.readBody(exactly: 1_500_000), from: 0..<1_500_000) == nil)
        client.close()
        try origin.waitUntil("the endless response aborted") { $0.requests("/a.mp4")[0].aborted }
    }
}
