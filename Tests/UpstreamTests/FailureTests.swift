import Glibc
import EventIO
import TestSupport
import Testing
import Upstream

@Suite struct FailureTests {
    private let origin: ScriptedOrigin
    private let media = Media(seed: 7, size: 1_000_000)

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/a.mp4", media)
    }

    private func expectBroken(_ error: UpstreamError?, sourceLocation: SourceLocation = #_sourceLocation) {
        guard case .broken = error else {
            Issue.record("\(String(describing: error)) is not .broken", sourceLocation: sourceLocation)
            return
        }
        #expect(error?.isTransient == true, sourceLocation: sourceLocation)
    }

    @Test func refusedConnection() throws {
        let url = origin.url("/a.mp4")
        origin.stop()
        guard case .cannotConnect(host: "127.0.0.1", _) = try Upstreams().fetch(url).error else {
            Issue.record("connected to a stopped origin")
            return
        }
    }

    @Test(arguments: [false, true], [false, true])
    func truncatedBody(isChunked: Bool, byReset: Bool) throws {
        origin.script("/a.mp4") {
            $0.cutAfter = 500_000; $0.chunkedEncoding = isChunked; $0.cutsWithReset = byReset
        }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"))
        expectBroken(error)
        #expect(media.firstMismatch(recorder.body, at: 0) == nil)
        if !byReset { #expect(recorder.body.count == 500_000) }
    }

    @Test func closedBeforeTheHead() throws {
        origin.script("/a.mp4") { $0.closesBeforeHead = true }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a.mp4"))
        expectBroken(error)
        #expect(recorder.heads.isEmpty)
    }

    @Test func unknownHost() throws {
        #expect(
            try Upstreams().fetch("http://no-such-host.invalid/").error == .cannotResolve(host: "no-such-host.invalid"))
    }

    @Test(arguments: ["", "nonsense", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://a b/"])
    func whatIsNoHTTPURL(_ url: String) throws {
        #expect(try Upstreams().fetch(url).error == .badURL(url))
    }

    @Test func silenceBeforeTheHead() throws {
        origin.holdHeads("/a.mp4")
        #expect(
            try Upstreams(UpstreamSettings(stallTimeout: 0.2)).fetch(origin.url("/a.mp4")).error
                == .timedOut(host: "127.0.0.1", phase: .response))
    }

    @Test func silenceInTheBody() throws {
        origin.script("/a.mp4") { $0.stallAfter = 300_000 }
        // A longer one where this machine kept the origin waiting for as long.
        for stallTimeout in [0.2, 2, 20] {
            let settings = UpstreamSettings(stallTimeout: stallTimeout)
            let (recorder, error) = try Upstreams(settings).fetch(origin.url("/a.mp4"))
            guard recorder.received(media, 0..<300_000) else { continue }
            return #expect(error == .timedOut(host: "127.0.0.1", phase: .body))
        }
        Issue.record("not what comes before the silence")
    }

    // 2.9 s of body at a limit of 2 s: what counts is the silence, not the whole.
    @Test func slowBodyIsNoSilence() throws {
        origin.script("/a.mp4") { $0.bytesPerSecond = 350_000 }
        let (recorder, error) = try Upstreams(UpstreamSettings(stallTimeout: 2)).fetch(origin.url("/a.mp4"))
        #expect(error == nil)
        #expect(recorder.received(media))
    }

    @Test func handshakeThatNobodyAnswers() throws {
        let silent = try CannedOrigin(nil)
        let settings = UpstreamSettings(connectTimeout: 0.2, stallTimeout: 0.05)
        #expect(
            try Upstreams(settings).fetch("https://127.0.0.1:\(silent.port)/").error
                == .timedOut(host: "127.0.0.1", phase: .connect))
    }

    enum Impropriety: CaseIterable, Sendable {
        case twoLengths, listOfLengths, longHead, manyLines, longLine, switchOfProtocols, noHTTP

        var response: String {
            switch self {
            case .twoLengths: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"
            case .listOfLengths: "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabcd"
            case .longHead: "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 70_000))\r\n\r\n"
            case .manyLines: "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 20_000) + "\r\n"
            case .longLine: "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 200_000))\r\n\r\n"
            case .switchOfProtocols: "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
            case .noHTTP: "not HTTP at all\r\n\r\n"
            }
        }
    }

    @Test(arguments: Impropriety.allCases)
    func improperResponse(_ impropriety: Impropriety) throws {
        let canned = try CannedOrigin(impropriety.response)
        let (recorder, error) = try Upstreams().fetch(canned.url)
        guard case .protocolViolation = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(recorder.heads.isEmpty)
    }

    @Test func interimResponsesAndTrailersArePassedOver() throws {
        let canned = try CannedOrigin(
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: t\r\n\r\n")
        let (recorder, error) = try Upstreams().fetch(canned.url)
        #expect(error == nil)
        #expect(recorder.heads.map(\.status) == [200])
        #expect(recorder.heads.first?.fields["Link"] == nil)
        #expect(recorder.heads.first?.fields["X-Trailer"] == nil)
        #expect(recorder.body == Array("abc".utf8))
    }

    /// As many files are open as may be: that is nothing to say of the host.
    @Test(arguments: [EMFILE, ENFILE]) func lackOfDescriptorsIsNoFaultOfTheHost(code: Int32) throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 1, size: 1000)
        origin.serve("/a.mp4", media)
        let upstreams = try Upstreams()
        let makeSocket = upstreams.onLoop { client in
            let former = LoopBound(MakeSocket(make: client.makeSocket), on: client.loop)
            client.makeSocket = { _, _, _ in
                errno = code
                return -1
            }
            return former
        }
        let error = try upstreams.fetch(origin.url("/a.mp4")).error
        #expect(error == .outOfDescriptors(host: "127.0.0.1") && error?.isTransient == true)
        upstreams.onLoop { $0.makeSocket = makeSocket.value.make }
        #expect(try upstreams.fetch(origin.url("/a.mp4")).recorder.received(media))
    }

    private struct MakeSocket { let make: (Int32, Int32, Int32) -> Int32 }
}
