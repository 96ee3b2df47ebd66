import HTTPModel
import TestSupport
import Testing
import Upstream

/// Gives a body as a test lets it, and hears of the answer.
private final class Uploader: TransferDelegate, Sendable {
    struct State: Sendable {
        var left: ArraySlice<UInt8> = []
        /// What is given so far ends with these.
        var isWhole = false
        var waits = 0
        var given = 0
        var cancelsAt = Int.max
    }

    let state = Monitor(State())
    let answer = Recorder()

    init(_ bytes: [UInt8], isWhole: Bool = true, cancelsAt: Int = .max) {
        state.update { $0 = State(left: bytes[...], isWhole: isWhole, cancelsAt: cancelsAt) }
    }

    func transfer(_ transfer: any Transfer, fillUpload buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
        let (step, isCancelled) = state.update { state -> (UploadStep, Bool) in
            let piece = state.left.prefix(buffer.count)
            buffer.copyBytes(from: piece)
            state.left = state.left.dropFirst(piece.count)
            state.given += piece.count
            if piece.isEmpty && !state.isWhole { state.waits += 1 }
            return (!piece.isEmpty ? .bytes(piece.count) : state.isWhole ? .end : .wait, state.given >= state.cancelsAt)
        }
        if isCancelled { transfer.cancel() }
        return step
    }

    func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        answer.transfer(transfer, receivedHead: head)
    }

    func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        answer.transfer(transfer, receivedBody: bytes)
    }

    func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        answer.transfer(transfer, finishedWith: error)
    }
}

@Suite struct UploadTests {
    private let origin: ScriptedOrigin
    private let body = Media(seed: 77, size: 5_000_000).bytes(0..<5_000_000)

    init() throws {
        origin = try ScriptedOrigin()
        origin.script("/in") { ($0.status, $0.body) = (201, Array("made".utf8)) }
    }

    private func request(
        _ content: UpstreamRequest.Content, method: String = "POST", path: String = "/in",
        fields: HeaderFields = HeaderFields()
    ) -> UpstreamRequest {
        var request = UpstreamRequest(url: origin.url(path), method: .other(method), fields: fields)
        request.content = content
        return request
    }

    private func start(_ upstreams: Upstreams, _ request: UpstreamRequest, _ uploader: Uploader) -> Running {
        let client = upstreams.client, loop = upstreams.loop
        return loop.sync { Running(transfer: .init(client.value.start(request, delegate: uploader), on: loop)) }
    }

    // MARK: Framing

    @Test func bodyOfKnownLengthArrivesWithIt() throws {
        let upstreams = try Upstreams(), uploader = Uploader(body)
        _ = start(upstreams, request(.length(Int64(body.count))), uploader)
        #expect(try uploader.answer.outcome() == nil)
        #expect(uploader.answer.heads.map(\.status) == [201] && uploader.answer.body == Array("made".utf8))
        let asked = try #require(origin.requests("/in").first)
        #expect(asked.method == "POST")
        #expect(
            asked.headers["Content-Length"] == "5000000" && asked.headers["Transfer-Encoding"] == nil
                && asked.headers["Expect"] == nil)
        let isSame = asked.body == body
        #expect(isSame)
    }

    @Test func bodyOfUnknownLengthArrivesInChunks() throws {
        let upstreams = try Upstreams(), uploader = Uploader(body)
        _ = start(upstreams, request(.unknownLength, method: "PUT"), uploader)
        #expect(try uploader.answer.outcome() == nil)
        let asked = try #require(origin.requests("/in").first)
        #expect(asked.method == "PUT")
        #expect(
            asked.headers["Content-Length"] == nil && asked.headers["Transfer-Encoding"] == "chunked"
                && asked.headers["Expect"] == nil)
        let isSame = asked.body == body
        #expect(isSame)
    }

    @Test(arguments: [(UpstreamRequest.Content.length(0), "0"), (.none, nil)] as [(UpstreamRequest.Content, String?)])
    func emptyBodyIsToldWhereItIsOne(content: UpstreamRequest.Content, length: String?) throws {
        let upstreams = try Upstreams(), uploader = Uploader([])
        _ = start(upstreams, request(content, method: "M-DELETE"), uploader)
        #expect(try uploader.answer.outcome() == nil)
        let asked = try #require(origin.requests("/in").first)
        #expect(asked.method == "M-DELETE" && asked.body.isEmpty)
        #expect(asked.headers["Content-Length"] == length && asked.headers["Transfer-Encoding"] == nil)
    }

    @Test func fieldsGoAsTheyCameButThoseOfTheBodysLength() throws {
        let upstreams = try Upstreams(), uploader = Uploader([1, 2, 3])
        var fields = HeaderFields()
        for (name, value) in [
            ("Accept-Encoding", "gzip"), ("Range", "bytes=1-2"), ("Content-Type", "a/b"), ("Content-Length", "99"),
            ("Transfer-Encoding", "chunked"), ("Host", "evil.example"),
            ("Expect", "100-continue"),
        ] { fields.append(name, value) }
        _ = start(upstreams, request(.length(3), fields: fields), uploader)
        #expect(try uploader.answer.outcome() == nil)
        let headers = try #require(origin.requests("/in").first?.headers)
        #expect(
            headers.all("Accept-Encoding") == ["gzip"] && headers.all("Range") == ["bytes=1-2"]
                && headers.all("Content-Type") == ["a/b"])
        #expect(
            headers.all("Content-Length") == ["3"] && headers["Transfer-Encoding"] == nil && headers["Expect"] == nil)
        #expect(headers.all("Host") == ["127.0.0.1:\(origin.port)"])
    }

    // MARK: Waiting

    @Test func uploadThatWaitsGoesOnWhenBytesCome() throws {
        let upstreams = try Upstreams(), uploader = Uploader([], isWhole: false)
        let running = start(upstreams, request(.length(Int64(body.count))), uploader)
        for piece in 0..<5 {
            try uploader.state.wait(for: "a wait") { $0.waits > piece ? () : nil }
            uploader.state.update { $0.left = body[piece * 1_000_000..<(piece + 1) * 1_000_000] }
            running.onLoop { $0.resumeUpload() }
        }
        #expect(try uploader.answer.outcome() == nil)
        let isSame = origin.requests("/in").first?.body == body
        #expect(isSame)
    }

    /// What the client does not send yet is no fault of the origin's.
    @Test func uploadThatWaitsIsNoStall() throws {
        let upstreams = try Upstreams(UpstreamSettings(stallTimeout: 2)), uploader = Uploader([1], isWhole: false)
        let running = start(upstreams, request(.unknownLength), uploader)
        try uploader.state.wait(for: "a wait") { $0.waits > 0 ? () : nil }
        // Others have their stalls meanwhile, twice.
        origin.serve("/held", bytes: [1])
        for _ in 0..<2 {
            origin.holdHeads("/held")
            guard case .timedOut? = try upstreams.fetch(origin.url("/held")).error else {
                Issue.record("no stall")
                return
            }
        }
        #expect(upstreams.openTransfers == 1)
        uploader.state.update { ($0.left, $0.isWhole) = ([2], true) }
        running.onLoop { $0.resumeUpload() }
        #expect(try uploader.answer.outcome() == nil)
        #expect(origin.requests("/in").first?.body == [1, 2])
    }

    @Test func originThatTakesNothingIsGivenUp() throws {
        let deaf = try CannedOrigin(nil)
        let upstreams = try Upstreams(UpstreamSettings(stallTimeout: 0.3)),
            uploader = Uploader(Array(repeating: 1, count: 32 << 20))
        var request = UpstreamRequest(url: deaf.url, method: .other("PUT"))
        request.content = .length(32 << 20)
        _ = start(upstreams, request, uploader)
        #expect(try uploader.answer.outcome() == .timedOut(host: "127.0.0.1", phase: .response))
        #expect(uploader.state.read(\.given) < 32 << 20)
    }

    @Test func pausedAnswerDoesNotHoldTheUpload() throws {
        origin.serve("/big", Media(seed: 3, size: 4_000_000))
        origin.script("/big") {
            ($0.status, $0.body, $0.answersEarly) = (200, Media(seed: 3, size: 1_000_000).bytes(0..<1_000_000), true)
        }
        let upstreams = try Upstreams(), uploader = Uploader([], isWhole: false)
        uploader.answer.state.update { $0.allowance = 100_000 }
        let running = start(upstreams, request(.unknownLength, path: "/big"), uploader)
        try uploader.answer.state.wait(for: "a refusal") { $0.refusals > 0 ? () : nil }
        uploader.state.update { ($0.left, $0.isWhole) = (body[...], true) }
        running.onLoop { $0.resumeUpload() }
        try uploader.state.wait(for: "the upload's going on") { $0.given > 0 ? () : nil }
        uploader.answer.state.update { $0.allowance = .max }
        running.onLoop { $0.resume() }
        #expect(try uploader.answer.outcome() == nil)
        #expect(uploader.answer.received(Media(seed: 3, size: 1_000_000)))
        try origin.waitUntil("the body") { [count = body.count] in $0.requests("/big").first?.body.count == count }
    }

    // MARK: Early answers and ends

    @Test func originThatAnswersEarlyTakesTheRest() throws {
        origin.script("/in") { $0.answersEarly = true }
        let upstreams = try Upstreams(), uploader = Uploader([], isWhole: false)
        let running = start(upstreams, request(.length(Int64(body.count))), uploader)
        #expect(try uploader.answer.head().status == 201)
        #expect(uploader.answer.state.read(\.endings).isEmpty)
        uploader.state.update { ($0.left, $0.isWhole) = (body[...], true) }
        running.onLoop { $0.resumeUpload() }
        #expect(try uploader.answer.outcome() == nil)
        try origin.waitUntil("the body") { [body] in $0.requests("/in").first?.body == body }
    }

    @Test func originThatRefusesEarlyEndsTheUpload() throws {
        let refusing = try CannedOrigin(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
        let upstreams = try Upstreams(), uploader = Uploader(Array(repeating: 1, count: 100_000), isWhole: false)
        var request = UpstreamRequest(url: refusing.url, method: .other("PUT"))
        request.content = .length(64 << 20)
        _ = start(upstreams, request, uploader)
        #expect(try uploader.answer.outcome() == nil)
        #expect(uploader.answer.heads.map(\.status) == [413] && uploader.answer.body == Array("too large".utf8))
    }

    /// It keeps the connection, and waits for what will not come.
    @Test func originThatRefusesEarlyEndsAnUploadThatWaits() throws {
        origin.script("/in") { ($0.status, $0.answersEarly, $0.holdHead) = (413, true, true) }
        let upstreams = try Upstreams(), uploader = Uploader([], isWhole: false)
        _ = start(upstreams, request(.length(64 << 20)), uploader)
        try uploader.state.wait(for: "a wait") { $0.waits > 0 ? () : nil }
        origin.release("/in")
        #expect(try uploader.answer.outcome() == nil)
        #expect(uploader.answer.heads.map(\.status) == [413] && uploader.answer.body == Array("made".utf8))
        try origin.waitUntil("the connection's end") { $0.openConnections == 0 }
    }

    /// It says that it closes, and the end of its answer comes when nobody sends.
    @Test(arguments: [(413, false), (413, true), (201, false), (201, true)])
    func answerEndsAlthoughTheUploadWaits(status: Int, isChunked: Bool) throws {
        origin.script("/in") {
            ($0.status, $0.answersEarly, $0.holdBody, $0.chunkedEncoding, $0.headers) = (
                status, true, true, isChunked, [("Connection", "close")]
            )
        }
        let upstreams = try Upstreams(), uploader = Uploader([1, 2, 3], isWhole: false)
        _ = start(upstreams, request(.length(64 << 20)), uploader)
        #expect(try uploader.answer.head().status == status)
        try uploader.state.wait(for: "a wait") { $0.waits > 1 ? () : nil }
        origin.release("/in")
        #expect(try uploader.answer.outcome() == nil)
        #expect(uploader.answer.body == Array("made".utf8))
        try origin.waitUntil("the connection's end") { $0.openConnections == 0 }
    }

    @Test func refusalThatStallsIsGivenUpAlthoughTheUploadWaits() throws {
        origin.script("/in") {
            ($0.status, $0.answersEarly, $0.holdBody, $0.headers) = (413, true, true, [("Connection", "close")])
        }
        // A longer one where this machine kept the origin waiting for as long.
        for stallTimeout in [0.3, 3, 30] {
            let upstreams = try Upstreams(UpstreamSettings(stallTimeout: stallTimeout)),
                uploader = Uploader([1, 2, 3], isWhole: false)
            _ = start(upstreams, request(.length(64 << 20)), uploader)
            let outcome = try uploader.answer.outcome()
            guard !uploader.answer.heads.isEmpty else { continue }
            #expect(outcome == .timedOut(host: "127.0.0.1", phase: .body))
            return #expect(uploader.answer.heads.map(\.status) == [413])
        }
        Issue.record("no head came")
    }

    @Test func originThatClosesIsAskedOnce() throws {
        let upstreams = try Upstreams()
        // A connection that could be used again.
        origin.serve("/small", bytes: [1])
        #expect(try upstreams.fetch(origin.url("/small")).error == nil)
        origin.script("/in") { $0.closesBeforeHead = true }
        let uploader = Uploader([1, 2, 3])
        _ = start(upstreams, request(.length(3)), uploader)
        guard case .broken? = try uploader.answer.outcome() else {
            Issue.record("\(String(describing: try uploader.answer.outcome()))")
            return
        }
        #expect(origin.requestCount("/in") == 1)
        // Not on the kept one, where curl repeats what finds it closed.
        #expect(origin.requests("/in").first?.connection != origin.requests("/small").first?.connection)
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectIsTheAnswer(status: Int) throws {
        origin.script("/in") { ($0.status, $0.redirect) = (status, "/elsewhere") }
        let upstreams = try Upstreams(), uploader = Uploader([1, 2, 3])
        _ = start(upstreams, request(.length(3)), uploader)
        #expect(try uploader.answer.outcome() == nil)
        #expect(
            uploader.answer.heads.first?.status == status
                && uploader.answer.heads.first?.fields["Location"] == "/elsewhere")
        #expect(origin.snapshot.requests.count == 1)
    }

    @Test(arguments: [1, 200_000])
    func cancelInTheMidstOfAnUpload(at count: Int) throws {
        let upstreams = try Upstreams(), uploader = Uploader(body, cancelsAt: count)
        _ = start(upstreams, request(.length(Int64(body.count))), uploader)
        try origin.waitUntil("the connection's end") { $0.connectionCount == 1 && $0.openConnections == 0 }
        #expect(upstreams.openTransfers == 0)
        #expect(uploader.answer.state.read { $0.endings.isEmpty && $0.heads.isEmpty })
    }

    @Test func cancelWhileAnUploadWaits() throws {
        let upstreams = try Upstreams(), uploader = Uploader([], isWhole: false)
        let running = start(upstreams, request(.unknownLength), uploader)
        try uploader.state.wait(for: "a wait") { $0.waits > 0 ? () : nil }
        running.onLoop { transfer in
            transfer.resumeUpload()
            transfer.cancel()
        }
        try origin.waitUntil("the connection's end") { $0.connectionCount == 1 && $0.openConnections == 0 }
        #expect(upstreams.openTransfers == 0)
    }
}
