import HTTPModel
import TestSupport
import Testing
import Upstream

@Suite struct TransferTests {
    private let origin: ScriptedOrigin
    private let media = Media(seed: 1, size: 3_000_001)

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/a.mp4", media, lastModified: "Mon, 06 Jan 2025 08:00:00 GMT")
    }

    @Test func wholeResourceArrives() throws {
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"))
        #expect(error == nil)
        #expect(recorder.received(media))
        #expect(try recorder.head().contentLength == media.size)
    }

    @Test(arguments: [
        (UpstreamRequest.Span.bounded(10..<11), Int64(10)..<11), (.bounded(65_536..<262_144), 65_536..<262_144),
        (.from(2_999_990), 2_999_990..<3_000_001), (.suffix(5), 2_999_996..<3_000_001),
    ])
    func rangesAreByteEqual(_ span: UpstreamRequest.Span, _ expected: Range<Int64>) throws {
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"), span: span)
        #expect(error == nil)
        let head = try recorder.head()
        #expect(head.status == 206)
        #expect(head.contentRange == ContentRange(range: expected, total: media.size))
        #expect(head.contentLength == Int64(expected.count))
        #expect(recorder.received(media, expected))
    }

    @Test func headHasTheFieldsInTheirOrder() throws {
        let (recorder, _) = try Upstreams().fetch(origin.url("/a.mp4"), method: .head)
        let head = try recorder.head()
        #expect(head.status == 200)
        #expect(head.fields["etag"] == "\"v1\"")
        #expect(head.fields["Last-Modified"] == "Mon, 06 Jan 2025 08:00:00 GMT")
        #expect(head.fields["Content-Type"] == "video/mp4")
        #expect(head.finalURL == origin.url("/a.mp4"))
        #expect(head.receivedAt > 1_700_000_000)
        // Of a HEAD the length is told and no byte comes.
        #expect(head.contentLength == media.size)
        #expect(recorder.body.isEmpty)
        #expect(origin.requests("/a.mp4").map(\.method) == ["HEAD"])
    }

    @Test func requestGoesOutAsGiven() throws {
        var fields = HeaderFields()
        fields.append("If-Range", "\"v1\"")
        fields.append("X-Empty", "")
        fields.append("User-Agent", "player/2")
        fields.append("Accept-Encoding", "gzip")
        fields.append("X-Split", "a\r\nX-Smuggled: b")
        _ = try Upstreams().fetch(origin.url("/a.mp4"), span: .bounded(0..<10), fields: fields)
        let headers = try #require(origin.requests("/a.mp4").first).headers
        #expect(headers["Range"] == "bytes=0-9")
        #expect(headers["If-Range"] == "\"v1\"")
        #expect(headers["X-Empty"] == "")
        #expect(headers["User-Agent"] == "player/2")
        #expect(headers.all("Accept-Encoding") == ["identity"])
        #expect(headers["X-Smuggled"] == nil)
    }

    @Test func userAndPasswordInTheURLAreNotSent() throws {
        let (recorder, error) = try Upstreams().fetch(
            "http://user:secret@127.0.0.1:\(origin.port)/a.mp4", span: .bounded(0..<1))
        #expect(error == nil)
        #expect(origin.requests("/a.mp4").first?.headers["Authorization"] == nil)
        #expect(try recorder.head().finalURL == origin.url("/a.mp4"))
    }

    @Test func claimedGzipStaysRaw() throws {
        origin.script("/a.mp4") { $0.gzipEncoded = true }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"))
        #expect(error == nil)
        #expect(try recorder.head().fields["Content-Encoding"] == "gzip")
        #expect(recorder.received(media))
    }

    @Test func chunkedBodyHasNoLengthAndEndsWell() throws {
        origin.script("/a.mp4") { $0.chunkedEncoding = true }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"))
        #expect(error == nil)
        #expect(try recorder.head().contentLength == nil)
        #expect(recorder.received(media))
    }

    @Test func bodyThatEndsWithTheConnectionEndsWell() throws {
        origin.script("/a.mp4") { $0.closeDelimited = true }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"))
        #expect(error == nil)
        #expect(recorder.received(media))
    }

    @Test func errorStatusIsAResponse() throws {
        let (recorder, error) = try Upstreams().fetch(origin.url("/nowhere"))
        #expect(error == nil)
        #expect(try recorder.head().status == 404)
        #expect(!recorder.body.isEmpty)
    }

    @Test func sequentialRequestsShareAConnection() throws {
        let upstreams = try Upstreams()
        for _ in 0..<3 {
            let (recorder, error) = try upstreams.fetch(origin.url("/a.mp4"), span: .bounded(0..<100_000))
            #expect(error == nil)
            #expect(recorder.received(media, 0..<100_000))
        }
        #expect(origin.snapshot.connectionCount == 1)
    }

    @Test func hundredTransfersAtOnceKeepTheirBytesApart() throws {
        let upstreams = try Upstreams()
        let recorders = (0..<100).map { _ in Recorder() }
        for (index, recorder) in recorders.enumerated() {
            let start = Int64(index) * 20_000
            upstreams.start(
                UpstreamRequest(url: origin.url("/a.mp4"), span: .bounded(start..<start + 300_000)), recorder)
        }
        for (index, recorder) in recorders.enumerated() {
            #expect(try recorder.outcome() == nil)
            let start = Int64(index) * 20_000
            #expect(recorder.received(media, start..<start + 300_000))
        }
        #expect(upstreams.openTransfers == 0)
    }

    // A delegate that is told of the end can start the next transfer there and then.
    @Test func transferStartedWhenAnotherEnds() throws {
        let upstreams = try Upstreams()
        let second = Recorder()
        let url = origin.url("/a.mp4")
        let client = upstreams.client
        let first = Recorder { _, step in
            if step == .end { _ = client.value.start(UpstreamRequest(url: url, span: .suffix(7)), delegate: second) }
        }
        upstreams.start(UpstreamRequest(url: url, span: .bounded(0..<7)), first)
        #expect(try second.outcome() == nil)
        #expect(second.received(media, media.size - 7..<media.size))
    }

    @Test func transferStartedInsideAnothersBody() throws {
        let upstreams = try Upstreams()
        let second = Recorder()
        let url = origin.url("/a.mp4")
        let hasStarted = Monitor(false)
        let client = upstreams.client
        let first = Recorder { _, step in
            guard step == .body, !hasStarted.update({ exchange(&$0, with: true) }) else { return }
            _ = client.value.start(UpstreamRequest(url: url, span: .suffix(7)), delegate: second)
        }
        upstreams.start(UpstreamRequest(url: url), first)
        #expect(try first.outcome() == nil)
        #expect(try second.outcome() == nil)
        #expect(second.received(media, media.size - 7..<media.size))
    }

    @Test func blockingFetchGetsAStatusAndABody() throws {
        let (status, body) = try BlockingFetch.get(url: origin.url("/a.mp4"), timeout: 20)
        #expect(status == 200)
        #expect(body == media.allBytes)
        #expect(throws: UpstreamError.badURL("ftp://127.0.0.1/")) {
            try BlockingFetch.get(url: "ftp://127.0.0.1/", timeout: 20)
        }
    }

    /// The origin never ends its answer, so both of these would wait for ever otherwise.
    @Test func blockingFetchEndsWhereTheRestIsNotWanted() throws {
        origin.script("/a.mp4") { $0.stallAfter = 1000 }
        var received: [UInt8] = []
        let head = try BlockingFetch(origin.url("/a.mp4")).perform { head, bytes in
            received += bytes
            return received.count < 1000 ? .more : .enough
        }
        #expect(head.status == 200 && head.length == media.size && received == media.bytes(0..<1000))

        var fetch = BlockingFetch(origin.url("/a.mp4"))
        var isWanted = true
        fetch.isWanted = { isWanted }
        #expect(throws: UpstreamError.interrupted) {
            try fetch.perform { _, _ in
                isWanted = false
                return .more
            }
        }
    }
}

private func exchange<Value>(_ value: inout Value, with new: Value) -> Value {
    defer { value = new }
    return value
}
