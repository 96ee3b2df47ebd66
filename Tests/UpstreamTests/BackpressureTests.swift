import TestSupport
import Testing
import Upstream

@Suite struct BackpressureTests {
    private let origin: ScriptedOrigin
    private let media = Media(seed: 4, size: 4_000_003)

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/a.mp4", media)
    }

    // Some bytes are refused again and again; each byte is taken once.
    @Test(arguments: [false, true])
    func refusedBytesComeAgainAfterResume(isChunked: Bool) throws {
        origin.script("/a.mp4") { $0.chunkedEncoding = isChunked }
        let upstreams = try Upstreams()
        let recorder = Recorder(allowance: 0)
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), recorder)
        var rounds = 0
        while recorder.state.read({ $0.endings.isEmpty }) {
            try recorder.state.wait(for: "a refusal or the end") {
                $0.refusals > rounds || !$0.endings.isEmpty ? () : nil
            }
            rounds = recorder.state.read(\.refusals)
            recorder.state.update { $0.allowance = 100_000 }
            running.onLoop { $0.resume() }
        }
        #expect(try recorder.outcome() == nil)
        #expect(recorder.received(media))
        #expect(rounds > 20)
        #expect(running.onLoop { $0.bodyBytesReceived } == media.size)
    }

    @Test func pausedTransferTakesNothingUntilResumed() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder { transfer, step in if step == .head { transfer.pause() } }
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), recorder)
        _ = try recorder.head()
        // The other transfer goes all its way meanwhile.
        #expect(try upstreams.fetch(origin.url("/a.mp4")).error == nil)
        #expect(recorder.body.isEmpty)
        #expect(running.onLoop { $0.isPaused })
        running.onLoop { $0.resume() }
        #expect(try recorder.outcome() == nil)
        #expect(recorder.received(media))
    }

    @Test func pauseFromInsideBodyTakesThoseBytesAndNoMore() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder { transfer, step in
            if step == .body, transfer.bodyBytesReceived == 0 { transfer.pause() }
        }
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), recorder)
        let first = try recorder.state.wait(for: "bytes") { $0.body.isEmpty ? nil : $0.body.count }
        #expect(try upstreams.fetch(origin.url("/a.mp4")).error == nil)
        #expect(recorder.body.count == first)
        #expect(running.onLoop { $0.bodyBytesReceived } == Int64(first))
        running.onLoop { $0.resume() }
        #expect(try recorder.outcome() == nil)
        #expect(recorder.received(media))
    }

    @Test func pauseAndResumeFromOutsideAtEachTurnLoseNothing() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder()
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), recorder)
        while recorder.state.read({ $0.endings.isEmpty }) {
            running.onLoop { $0.pause() }
            running.onLoop { $0.resume() }
            running.onLoop {
                $0.pause(); $0.resume(); $0.resume()
            }
        }
        #expect(try recorder.outcome() == nil)
        #expect(recorder.received(media))
    }

    // The origin cannot send what nobody reads: what a paused transfer costs is bounded.
    @Test func pausedTransferStopsTheOrigin() throws {
        let large = Media(seed: 5, size: 1 << 30)
        origin.serve("/large.mp4", large)
        let upstreams = try Upstreams()
        let recorder = Recorder { transfer, step in if step == .head { transfer.pause() } }
        let running = upstreams.start(UpstreamRequest(url: origin.url("/large.mp4")), recorder)
        _ = try recorder.head()
        #expect(try upstreams.fetch(origin.url("/a.mp4")).error == nil)
        #expect(origin.bytesSent("/large.mp4") < 64 << 20)
        running.cancel(recorder)
    }

    // Another transfer's stall is the clock here: when that has timed out, so would the paused one have.
    @Test func pausedTransferDoesNotStall() throws {
        let upstreams = try Upstreams(UpstreamSettings(stallTimeout: 2))
        let recorder = Recorder { transfer, step in if step == .head { transfer.pause() } }
        let running = upstreams.start(UpstreamRequest(url: origin.url("/a.mp4")), recorder)
        _ = try recorder.head()
        origin.serve("/held.mp4", media)
        origin.hold("/held.mp4")
        for _ in 0..<2 {
            #expect(try upstreams.fetch(origin.url("/held.mp4")).error == .timedOut(host: "127.0.0.1", phase: .body))
        }
        #expect(recorder.state.read { $0.endings.isEmpty })
        running.onLoop { $0.resume() }
        #expect(try recorder.outcome() == nil)
        #expect(recorder.received(media))
    }

    @Test func emptyBodyEndsAlsoWhilePaused() throws {
        origin.serve("/empty", bytes: [])
        let recorder = Recorder { transfer, step in if step == .head { transfer.pause() } }
        let upstreams = try Upstreams()
        upstreams.start(UpstreamRequest(url: origin.url("/empty")), recorder)
        #expect(try recorder.outcome() == nil)
    }
}
