import Foundation
import TestSupport
import Testing

/// A proxy behind a balancer or a service manager that is stopped and started again.
@Suite struct RestartTests {
    private let directory: TemporaryDirectory
    private let origin: ScriptedOrigin
    private let film = Media(seed: 31, size: 1 << 20)

    init() throws {
        directory = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", film)
    }

    private var arguments: [String] { ["serve", "--cache-dir", directory.file("cache"), "--allow", "127.0.0.1"] }

    private func serve(_ arguments: String...) throws -> ProxyProcess {
        try ProxyProcess(cacheDirectory: directory.file("cache"), arguments: arguments)
    }

    // MARK: Draining

    /// A player in the middle of a film whose origin has stalled.
    private func stalledPlayer(of proxy: ProxyProcess) throws -> RawClient {
        origin.script("/film.mp4") { $0.stallAfter = 500_000 }
        let player = try RawClient(port: proxy.port)
        try player.send(player.request(ProxyProcess.target(origin.url("/film.mp4"))))
        _ = try player.readHead()
        #expect(try player.readBody(exactly: 500_000).count == 500_000)
        return player
    }

    private static func waitUntilDraining(_ proxy: ProxyProcess) throws {
        try eventually("draining") { try proxy.get("/healthz").status == 503 }
    }

    @Test func runningResponseEndsWithinItsHour() throws {
        let proxy = try serve("--drain-time", "1h")
        let player = try stalledPlayer(of: proxy)
        proxy.process.signal(SIGTERM)
        try Self.waitUntilDraining(proxy)
        let health = try proxy.get("/healthz")
        #expect(health.text == "draining\n")
        // Others are served meanwhile.
        let part = try proxy.get(origin.url("/film.mp4"), range: 0..<100_000)
        #expect(part.status == 206 && film.difference(part.body, from: 0..<100_000) == nil)
        #expect(proxy.process.exit == nil)
        origin.release("/film.mp4")
        let rest = try player.readBody(exactly: Int(film.size) - 500_000)
        #expect(film.difference(rest, from: 500_000..<film.size) == nil)
        #expect(try proxy.process.waitForExit() == .exited(0))
        #expect(proxy.process.stderr == "")
    }

    @Test func secondSignalEndsItAtOnce() throws {
        let proxy = try serve("--drain-time", "1h")
        let player = try stalledPlayer(of: proxy)
        proxy.process.signal(SIGTERM)
        try Self.waitUntilDraining(proxy)
        proxy.process.signal(SIGINT)
        #expect(try proxy.process.waitForExit() == .exited(0))
        #expect(throws: RawClient.ResponseError.self) { try player.readBody(exactly: 1) }
    }

    /// What a check of a balancer has to see before the proxy is gone. A busy machine may miss the two seconds that it
    /// has for that, but not each time.
    @Test func balancerSeesThatAnIdleProxyDrains() throws {
        let isSeen = try (1...5).contains { _ in
            let proxy = try serve("--trusted", "127.0.0.1")
            proxy.process.signal(SIGTERM)
            let isSeen = (try? Self.waitUntilDraining(proxy)) != nil
            #expect(try proxy.process.waitForExit() == .exited(0))
            return isSeen
        }
        #expect(isSeen)
    }

    // MARK: Sockets of a service manager

    @Test func restartRefusesNoConnection() throws {
        let socket = try PassedSocket()
        var proxy = try start(socket)
        let isOver = Monitor(false)
        let clients = try (0..<4).map { _ in
            try Background {
                var served = 0
                while !isOver.read({ $0 }) || served == 0 {
                    // Each on a connection of its own, as a balancer opens them.
                    let response = try RawClient.get(port: socket.port, path: "/healthz")
                    if response.status == 200 { served += 1 }
                }
                return served
            }
        }
        for _ in 0..<3 {
            #expect(try proxy.terminate() == .exited(0))
            // Nobody accepts now, but the connections are made: this one too.
            let waiting = try RawClient(port: socket.port)
            try waiting.send(waiting.request("/healthz"))
            proxy = try start(socket)
            #expect(try waiting.readResponse().text == "ok\n")
        }
        isOver.update { $0 = true }
        for client in clients { #expect(try client.value() > 0) }
        #expect(try proxy.terminate() == .exited(0))
    }

    private func start(_ socket: PassedSocket) throws -> ChildProcess {
        let proxy = try socket.start(arguments + ["--listen", "127.0.0.1:1", "--log-level", "notice"])
        try proxy.waitForLine(containing: "serves at http://127.0.0.1:\(socket.port),")
        try proxy.waitForLine(containing: "serving on the socket of the service manager", on: .stderr)
        return proxy
    }

    @Test func severalSocketsAreRefusedInOneLine() throws {
        let proxy = try PassedSocket().start(arguments, count: 2)
        #expect(try proxy.waitForExit() == .exited(1))
        #expect(proxy.stderr.contains("keep one ListenStream") && proxy.stderr.filter { $0 == "\n" }.count == 1)
    }

    /// Those that are meant for another process, such as a shell that was started with one.
    @Test func socketOfAnotherProcessIsNotTaken() throws {
        let proxy = try ProxyProcess(
            cacheDirectory: directory.file("cache"), environment: ["LISTEN_PID": "1", "LISTEN_FDS": "1"])
        #expect(try proxy.get("/healthz").status == 200)
    }

    // MARK: Settings

    @Test func badSettingsAreRefusedInOneLine() throws {
        for (flags, reason) in [
            (["--trusted", "balancer.example"], "write it like 192.168.1.5 or 192.168.1.0/24"),
            (["--max-requests-per-client", "5"], "write it like 100/s, 600/min or 5000/h"),
            (["--max-connections", "0"], "write a number from 1 to 1000000"),
            (["--drain-time", "25h"], "write a time from 0s to 1d"),
            (["--proxy-protocol"], "add the balancer's address to trusted"),
        ] {
            let outcome = try ReelcacheCommand.run(arguments + ["--listen", "127.0.0.1:0"] + flags)
            #expect(outcome.exit != .exited(0) && outcome.stderr.contains(reason), "\(flags): \(outcome.stderr)")
        }
    }
}
