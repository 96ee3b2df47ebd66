import Foundation
import TestSupport
import Testing

/// `kill -9` while the cache fills: what the next start serves is right.
@Suite struct CrashTests {
    private let cache: TemporaryDirectory
    private let origin: ScriptedOrigin
    private let film = Media(seed: 11, size: 24 << 20)

    init() throws {
        cache = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", film)
    }

    private var url: String { origin.url("/film.mp4") }

    @Test func killedAgainAndAgainWhileFillingItServesTheRightBytes() throws {
        var random = SplitMix64.forTest("killedAgainAndAgainWhileFillingItServesTheRightBytes")
        for _ in 1...5 {
            let proxy = try ProxyProcess(cacheDirectory: cache.path)
            let start = Int64.random(in: 0..<film.size - (1 << 20), using: &random)
            let count = Int64.random(in: 1..<film.size - start, using: &random)
            let player = try RawClient(port: proxy.port)
            try player.send(player.request(ProxyProcess.target(url), range: "bytes=\(start)-"))
            #expect(try player.readHead().status == 206)
            let bytes = try player.readBody(exactly: Int(count))
            #expect(film.firstMismatch(bytes, at: start) == nil)
            #expect(try proxy.process.killNow() == .signalled(SIGKILL))
        }

        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        for _ in 1...2 {
            let whole = try proxy.get(url)
            #expect(film.difference(whole.body, from: 0..<film.size) == nil)
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// What a checkpoint has saved outlives the crash, also where the origin is gone.
    @Test func whatWasSavedBeforeTheKillIsServedWithoutTheOrigin() throws {
        let saved: Range<Int64> = 0..<(4 << 20)
        let first = try ProxyProcess(cacheDirectory: cache.path)
        #expect(try first.get(url, range: saved).status == 206)
        try waitForCheckpoint(of: first)
        #expect(try first.process.killNow() == .signalled(SIGKILL))
        origin.stop()

        let second = try ProxyProcess(cacheDirectory: cache.path)
        let again = try second.get(url, range: saved)
        #expect(again.status == 206)
        #expect(film.difference(again.body, from: saved) == nil)
        #expect(try second.process.terminate() == .exited(0))
    }

    /// Asks until the counter moves: a checkpoint tells nobody.
    private func waitForCheckpoint(of proxy: ProxyProcess) throws {
        let end = ContinuousClock.now + .patience
        while try checkpoints(of: proxy) == 0 { try #require(ContinuousClock.now < end, "there was no checkpoint") }
    }

    private func checkpoints(of proxy: ProxyProcess) throws -> Int {
        struct Stats: Decodable {
            struct Cache: Decodable { let checkpoints: Int }
            let cache: Cache
        }
        return try JSONDecoder().decode(Stats.self, from: Data(try proxy.get("/stats").body)).cache.checkpoints
    }
}
