import Foundation
import TestSupport
import Testing

/// `reelcache serve` from its first line to its exit status.
@Suite struct ServeTests {
    private let cache: TemporaryDirectory
    private let origin: ScriptedOrigin
    private let film = Media(seed: 7, size: 8 << 20)

    init() throws {
        cache = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", film)
    }

    private func serve(_ arguments: String...) throws -> ProxyProcess {
        try ProxyProcess(cacheDirectory: cache.path, arguments: arguments)
    }

    @Test func itPrintsWhereItServesAndAnswersThere() throws {
        let proxy = try serve()
        try proxy.process.waitForLine(containing: "To play through it: mpv \(proxy.baseURL)/https/")
        let health = try proxy.get("/healthz")
        #expect(health.status == 200 && health.text == "ok\n")

        let range: Range<Int64> = 1_000_000..<1_200_000
        let part = try proxy.get(origin.url("/film.mp4"), range: range)
        #expect(part.status == 206)
        #expect(film.difference(part.body, from: range) == nil)
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// sd_notify(3). What is started after the service finds it.
    @Test func aServiceManagerHearsThatItServes() throws {
        let path = cache.file("notify")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let socket = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(socket) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        let proxy = try ProxyProcess(
            cacheDirectory: cache.file("cache"), environment: ["NOTIFY_SOCKET": path])
        var message = [UInt8](repeating: 0, count: 100)
        let count = recv(socket, &message, message.count, 0)
        #expect(String(decoding: message.prefix(max(0, count)), as: UTF8.self) == "READY=1")
        #expect(try proxy.get("/healthz").status == 200)
    }

    /// One that is gone, and what is no address.
    @Test(arguments: ["/nowhere/notify", "@reelcache-test-nobody", "", "relative", String(repeating: "/a", count: 200)])
    func withoutAServiceManagerItServesAllTheSame(socket: String) throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path, environment: ["NOTIFY_SOCKET": socket])
        #expect(try proxy.get("/healthz").status == 200 && proxy.process.stderr == "")
    }

    /// Empty, cut and with one other character.
    @Test(arguments: ["", "{\"entries\": [", "{\"checksum\": \"1\", \"entries\": []}"])
    func aDamagedFileOfAliasesIsNamedAndSetAside(text: String) throws {
        let file = cache.file("aliases.json")
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        let proxy = try serve()
        #expect(try proxy.get("/healthz").status == 200)
        #expect(try proxy.process.terminate() == .exited(0))
        let lines = proxy.process.stderr.split(separator: "\n")
        #expect(lines.count == 1 && lines[0].contains("\(file) cannot be read"), "\(lines)")
        #expect(try String(contentsOfFile: file + ".damaged", encoding: .utf8) == text)
    }

    @Test(arguments: [SIGTERM, SIGINT]) func aSignalEndsItWithStatus0(signal: Int32) throws {
        let proxy = try serve()
        let idle = try RawClient(port: proxy.port)
        #expect(try idle.get("/healthz").status == 200)

        proxy.process.signal(signal)

        #expect(try proxy.process.waitForExit() == .exited(0))
        #expect(proxy.process.stderr == "")
        #expect(try idle.isClosedByPeer())
    }

    /// Each of the signals while a player is in the middle of a film that comes too slowly to end in time.
    @Test(arguments: [SIGTERM, SIGINT]) func aSignalCutsATransferThatTakesTooLong(signal: Int32) throws {
        origin.script("/film.mp4") { $0.bytesPerSecond = 100_000 }
        let proxy = try serve()
        let player = try RawClient(port: proxy.port)
        try player.send(player.request(ProxyProcess.target(origin.url("/film.mp4"))))
        #expect(try player.readHead().headers["Content-Length"] == "\(film.size)")
        var received = try player.readBody(exactly: 20_000)

        proxy.process.signal(signal)

        // The player must learn that this is not the film's end.
        #expect {
            while case let piece = try player.readBody(upTo: 1 << 20), !piece.isEmpty { received += piece }
        } throws: { error in
            if case RawClient.ResponseError.truncated(_, expected: film.size) = error { true } else { false }
        }
        #expect(film.firstMismatch(received, at: 0) == nil)
        // At this pace five seconds bring 500 kB; on a busy machine they are more.
        #expect(received.count < film.size / 2)
        #expect(try proxy.process.waitForExit() == .exited(0))
    }

    @Test func aTransferThatCanEndInTimeDoes() throws {
        origin.script("/film.mp4") { $0.stallAfter = 1 << 20 }
        let proxy = try serve("--log-level", "info", "--drain-time", "1h")
        let player = try RawClient(port: proxy.port)
        try player.send(player.request(ProxyProcess.target(origin.url("/film.mp4"))))
        _ = try player.readHead()
        var received = try player.readBody(exactly: 1 << 20)

        proxy.process.signal(SIGTERM)
        try proxy.process.waitForLine(containing: "stopping", on: .stderr)
        origin.release("/film.mp4")

        while case let piece = try player.readBody(upTo: 1 << 20), !piece.isEmpty { received += piece }
        #expect(film.difference(received, from: 0..<film.size) == nil)
        #expect(try proxy.process.waitForExit() == .exited(0))
    }

    @Test func whatWasPlayedIsThereAfterARestartWithoutTheOrigin() throws {
        let first = try serve()
        #expect(try first.get(origin.url("/film.mp4")).status == 200)
        #expect(try first.process.terminate() == .exited(0))
        origin.stop()

        let second = try serve()
        let again = try second.get(origin.url("/film.mp4"))
        #expect(again.headers["Cache-Status"]?.hasPrefix("reelcache; hit;") == true)
        #expect(film.difference(again.body, from: 0..<film.size) == nil)
    }
}
