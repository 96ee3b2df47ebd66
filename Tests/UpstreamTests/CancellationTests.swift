import TestSupport
import Testing
import Upstream

@Suite struct CancellationTests {
    private let origin: ScriptedOrigin

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/endless.mp4", Media(seed: 6, size: 1 << 40))
        origin.script("/endless.mp4") { $0.endless = true }
    }

    private var request: UpstreamRequest { UpstreamRequest(url: origin.url("/endless.mp4")) }

    private func expectClosed(_ upstreams: Upstreams, _ recorder: Recorder) throws {
        try origin.waitUntil("the connection's end") { $0.requests.first?.aborted == true && $0.openConnections == 0 }
        #expect(upstreams.openTransfers == 0)
        #expect(recorder.state.read { $0.callsAfterCancel == 0 && $0.endings.isEmpty })
    }

    @Test(arguments: [Recorder.Step.head, .body, .refusal])
    func cancelInsideACall(_ step: Recorder.Step) throws {
        let upstreams = try Upstreams()
        let marks = Monitor<Recorder?>(nil)
        let recorder = Recorder(allowance: step == .refusal ? 0 : .max) { transfer, now in
            guard now == step else { return }
            transfer.cancel()
            transfer.cancel()
            marks.read { $0 }?.state.update { $0.isCancelled = true }
        }
        marks.update { $0 = recorder }
        defer { marks.update { $0 = nil } }
        upstreams.start(request, recorder)
        try recorder.state.wait(for: "the cancellation") { $0.isCancelled ? () : nil }
        try expectClosed(upstreams, recorder)
    }

    @Test func cancelEndlessResponseFromOutside() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder(keepsBody: false)
        let running = upstreams.start(request, recorder)
        try origin.waitUntil("some MiB") { $0.bytesSent("/endless.mp4") > 8 << 20 }
        running.cancel(recorder)
        try expectClosed(upstreams, recorder)
    }

    @Test func cancelWhilePaused() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder(allowance: 0)
        let running = upstreams.start(request, recorder)
        try recorder.state.wait(for: "a refusal") { $0.refusals > 0 ? () : nil }
        running.cancel(recorder)
        try expectClosed(upstreams, recorder)
    }

    @Test func cancelBetweenResumeAndItsEffect() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder(allowance: 0)
        let running = upstreams.start(request, recorder)
        try recorder.state.wait(for: "a refusal") { $0.refusals > 0 ? () : nil }
        running.onLoop { transfer in
            transfer.resume()
            transfer.cancel()
            recorder.state.update { $0.isCancelled = true }
        }
        try expectClosed(upstreams, recorder)
    }

    @Test func cancelBeforeAnythingHappened() throws {
        let upstreams = try Upstreams()
        let recorder = Recorder()
        let request = request
        upstreams.onLoop { client in
            client.start(request, delegate: recorder).cancel()
            client.start(UpstreamRequest(url: "nonsense"), delegate: recorder).cancel()
            recorder.state.update { $0.isCancelled = true }
        }
        #expect(upstreams.openTransfers == 0)
        // Another transfer on the same loop ends after what the first would have done.
        origin.serve("/small", bytes: [1])
        #expect(try upstreams.fetch(origin.url("/small")).error == nil)
        #expect(recorder.state.read { $0.callsAfterCancel == 0 && $0.endings.isEmpty })
    }

    @Test func oneTransferCancelsAnotherFromItsCall() throws {
        let upstreams = try Upstreams()
        let victim = Recorder(allowance: 0)
        let running = upstreams.start(request, victim)
        try victim.state.wait(for: "a refusal") { $0.refusals > 0 ? () : nil }
        origin.serve("/small", bytes: [1, 2, 3])
        let killer = Recorder { _, step in
            guard step == .body else { return }
            running.transfer.value.cancel()
            victim.state.update { $0.isCancelled = true }
        }
        upstreams.start(UpstreamRequest(url: origin.url("/small")), killer)
        #expect(try killer.outcome() == nil)
        try origin.waitUntil("the victim's end") { $0.requests("/endless.mp4").first?.aborted == true }
        #expect(victim.state.read { $0.callsAfterCancel == 0 && $0.endings.isEmpty })
    }

    @Test func shutdownCancelsAllAndClosesConnections() throws {
        let upstreams = try Upstreams()
        let recorders = (0..<5).map { _ in Recorder(keepsBody: false) }
        for recorder in recorders { upstreams.start(request, recorder) }
        for recorder in recorders { _ = try recorder.head() }
        upstreams.onLoop { $0.shutdown() }
        try origin.waitUntil("the connections' end") { $0.openConnections == 0 }
        #expect(upstreams.openTransfers == 0)
        #expect(recorders.allSatisfy { $0.state.read(\.endings).isEmpty })
        let late = Recorder()
        let running = upstreams.start(request, late)
        #expect(running.onLoop { ($0 as? CurlTransfer)?.delegate == nil })
    }
}
