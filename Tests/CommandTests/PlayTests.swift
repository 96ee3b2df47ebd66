import Foundation
import TestSupport
import Testing

/// `reelcache play` with players that are scripts.
@Suite struct PlayTests {
    private let origin: ScriptedOrigin
    private let directory: TemporaryDirectory
    private let film = Media(seed: 90, size: 300_000)

    init() throws {
        (origin, directory) = (try ScriptedOrigin(), try TemporaryDirectory())
        origin.serve("/film.mp4", film)
        try FileManager.default.createDirectory(atPath: directory.file("bin"), withIntermediateDirectories: true)
        // What holds a player until the test lets it end.
        #expect(mkfifo(directory.file("gate"), 0o600) == 0)
    }

    private var url: String { origin.url("/film.mp4") }
    private var cache: String { directory.file("cache") }
    private var environment: [String: String?] { ["PATH": "\(directory.file("bin")):/usr/bin:/bin"] }

    /// A player that says what it is given, and then does more.
    ///
    /// Another process writes it: a file that this one has open for writing may be open in any child that is just being
    /// started, and then it cannot be run (ETXTBSY).
    private func install(_ name: String, _ script: String = "") throws {
        let text = "#!/bin/bash\nprintf '\(name)'; printf ' %s' \"$@\"; echo\n\(script)\n"
        let made = try ChildProcess.run(
            "/bin/sh", ["-c", "printf %s \"$0\" > \"$1\" && chmod 755 \"$1\"", text, directory.file("bin/\(name)")])
        #expect(made.exit == .exited(0), "\(made)")
    }

    private static let waits = "read -r line < $GATE; exit ${line:-0}"

    /// - Returns: arguments with which nothing of this machine is in the way.
    private func arguments(_ more: [String]) -> [String] {
        ["play", url, "--cache-dir", cache, "--listen", "127.0.0.1:0", "--allow", "127.0.0.1"] + more
    }

    private func play(_ more: String..., environment: [String: String?] = [:]) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(arguments(more), environment: self.environment.merging(environment) { $1 })
    }

    private func start(_ more: String...) throws -> ChildProcess {
        try ReelcacheCommand.start(
            arguments(more), environment: environment.merging(["GATE": directory.file("gate")]) { $1 })
    }

    /// Lets the player end with this code.
    private func release(_ code: Int) throws {
        let gate = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file("gate")))
        try gate.write(contentsOf: Data("\(code)\n".utf8))
        try gate.close()
    }

    /// The port of the proxy that a player was given, by the line that it says.
    private func port(_ line: String) throws -> Int {
        let match = try #require(line.firstMatch(of: #/http://127\.0\.0\.1:(\d+)/http/127/#), "\(line)")
        return try #require(Int(match.1))
    }

    @Test func thePlayerGetsTheURLAndItsArgumentsAndSaysHowItEnded() async throws {
        try await blocking {
            try install("mpv", Self.waits)
            let command = try start("--", "--fs", "--start=1 2")
            let line = try command.waitForLine(containing: "mpv ")
            #expect(line.hasPrefix("mpv --fs --start=1 2 http://127.0.0.1:") && line.hasSuffix("/film.mp4"), "\(line)")
            let response = try RawClient.get(port: port(line), path: ProxyProcess.target(url))
            #expect(response.status == 200 && response.body == film.allBytes)
            try release(7)
            #expect(try command.waitForExit() == .exited(7))
            #expect(command.stderr == "")
            // What was played is cached, and the cache is closed.
            let shown = try ReelcacheCommand.run(["ls", "--cache-dir", cache])
            #expect(shown.stdout.contains("complete"), "\(shown)")
        }
    }

    @Test func aRunningProxyIsUsed() async throws {
        try await blocking {
            try install("mpv", "exit 3")
            let proxy = try ProxyProcess(cacheDirectory: cache)
            let outcome = try play()
            #expect(outcome.exit == .exited(3) && outcome.stdout == "mpv \(proxy.url(url))\n", "\(outcome)")
            #expect(try proxy.get("/healthz").status == 200)
            // The URL that a player opens is understood as well.
            let again = try ReelcacheCommand.run(
                ["play", proxy.url(url), "--cache-dir", cache], environment: environment)
            #expect(again.stdout == "mpv \(proxy.url(url))\n", "\(again)")
        }
    }

    /// Such as the household's, whose cache this user cannot open.
    @Test func aProxyOfAnotherCacheIsUsed() async throws {
        try await blocking {
            try install("mpv", "exit 3")
            let proxy = try ProxyProcess(cacheDirectory: directory.file("household"))
            let outcome = try ReelcacheCommand.run(
                ["play", url, "--cache-dir", cache, "--listen", "127.0.0.1:\(proxy.port)"], environment: environment)
            #expect(outcome.exit == .exited(3) && outcome.stdout == "mpv \(proxy.url(url))\n", "\(outcome)")
            #expect(outcome.stderr == "")
            // It also says why it refuses a URL.
            let refused = try ReelcacheCommand.run(
                ["play", "http://192.168.1.9/a.mp4", "--cache-dir", cache, "--listen", "127.0.0.1:\(proxy.port)"],
                environment: environment)
            #expect(refused.exit == .exited(3) && refused.stdout.hasPrefix("mpv "), "\(refused)")
            #expect(refused.stderr.hasPrefix("reelcache: the proxy at \(proxy.baseURL) answers 403"), "\(refused)")
        }
    }

    /// By a proxy of the command's own, and by one that runs already.
    @Test(arguments: [false, true]) func theNextEpisodeIsDownloadedWhileOnePlays(isRunning: Bool) async throws {
        try await blocking {
            let size: Int64 = 2_000_000
            for number in 1...2 { origin.serve("/e-\(number).mp4", Media(seed: UInt64(number), size: size)) }
            try install("mpv", "curl -s -o /dev/null \"$1\"; \(Self.waits)")
            let proxy = try isRunning ? ProxyProcess(cacheDirectory: cache) : nil
            // Whatever the configuration says of it.
            let file = directory.file("r.yaml")
            try "rules:\n- path: /e-*\n  prefetch_next: false\n".write(
                toFile: file, atomically: true, encoding: .utf8)
            let command = try ReelcacheCommand.start(
                [
                    "play", "--prefetch-next", origin.url("/e-1.mp4"), "--cache-dir", cache, "--listen", "127.0.0.1:0",
                    "--allow", "127.0.0.1", "--config", file,
                ], environment: environment.merging(["GATE": directory.file("gate")]) { $1 })
            _ = try command.waitForLine(containing: "mpv ")
            try origin.waitUntil("the next episode") { $0.bytesSent("/e-2.mp4") == size }
            try release(0)
            #expect(try command.waitForExit() == .exited(0), "\(command.stderr)")
            let shown = try ReelcacheCommand.run(["ls", "--cache-dir", cache])
            #expect(shown.stdout.contains("/e-2.mp4"), "\(shown)")
            withExtendedLifetime(proxy) {}
        }
    }

    /// Such as one of an earlier version, or of another user.
    @Test func theFilmPlaysAlthoughTheProxyDownloadsNoNextEpisode() async throws {
        try await blocking {
            try install("mpv")
            let proxy = try ProxyProcess(cacheDirectory: cache)
            try FileManager.default.removeItem(atPath: "\(cache)/control-token")
            let outcome = try ReelcacheCommand.run(
                ["play", url, "--prefetch-next", "--cache-dir", cache], environment: environment)
            #expect(outcome.exit == .exited(0) && outcome.stdout == "mpv \(proxy.url(url))\n", "\(outcome)")
            #expect(outcome.stderr.hasPrefix("reelcache: the next item will not be downloaded: "), "\(outcome)")
        }
    }

    @Test func aProxyOfSomeoneElseDecidesAboutTheNextEpisodeItself() async throws {
        try await blocking {
            try install("mpv")
            let proxy = try ProxyProcess(cacheDirectory: directory.file("household"))
            let outcome = try ReelcacheCommand.run(
                ["play", url, "--prefetch-next", "--cache-dir", cache, "--listen", "127.0.0.1:\(proxy.port)"],
                environment: environment)
            #expect(outcome.exit == .exited(0) && outcome.stdout == "mpv \(proxy.url(url))\n", "\(outcome)")
            #expect(outcome.stderr.contains("its own setting prefetch_next decides"), "\(outcome)")
        }
    }

    @Test func thePlayerIsTheOneThatIsNamed() async throws {
        try await blocking {
            for name in ["mpv", "vlc", "ffplay", "mine"] { try install(name) }
            let file = directory.file("r.yaml")
            try "player: [vlc, --loop]\n".write(toFile: file, atomically: true, encoding: .utf8)
            func name(_ arguments: [String], _ variables: [String: String?] = [:]) throws -> String {
                let outcome = try ReelcacheCommand.run(
                    self.arguments(arguments), environment: environment.merging(variables) { $1 })
                #expect(outcome.exit == .exited(0), "\(outcome)")
                return String(outcome.stdout.prefix { $0 != ":" })
            }
            #expect(try name([]) == "mpv http")
            #expect(try name(["--config", file]) == "vlc --loop http")
            #expect(try name(["--config", file], ["REELCACHE_PLAYER": "ffplay"]) == "ffplay http")
            #expect(try name(["--config", file, "--player", directory.file("bin/mine")]) == "mine http")
            try FileManager.default.removeItem(atPath: directory.file("bin/mpv"))
            #expect(try name(["--player", "vlc"]) == "vlc http")
        }
    }

    @Test func aPlayerThatIsMissingIsOneLine() async throws {
        try await blocking {
            for (arguments, line) in [
                ([], "no player is installed: install mpv"),
                (["--player", "none"], "the player none is not installed"),
            ] {
                let outcome = try ReelcacheCommand.run(
                    self.arguments(arguments), environment: ["PATH": directory.file("bin")])
                #expect(outcome.failureLine?.hasPrefix("reelcache: \(line)") == true, "\(outcome)")
            }
            // Nothing was begun.
            #expect(!FileManager.default.fileExists(atPath: cache))
        }
    }

    @Test(
        arguments: [
            (["play"], "write the URL to play, or --feed"), (["play", "a", "--feed", "b"], "either a URL or --feed"),
            (["play", "ftp://a/b", "--cache-dir", "/none"], nil),
            (["play", "http://a/b", "--player", "mpv --fs"], "'mpv --fs' is a program with arguments"),
            (["play", "http://a/b", "--listen", "x"], "--listen: cannot listen on 'x'"),
        ] as [([String], String?)])
    func wrongUsageIsSaid(arguments: [String], said: String?) async throws {
        try await blocking {
            let outcome = try ReelcacheCommand.run(arguments, environment: environment)
            #expect(outcome.exit == .exited(said == nil ? 1 : 2) && outcome.stdout == "", "\(outcome)")
            if let said { #expect(outcome.stderr.contains(said), "\(outcome)") }
        }
    }

    @Test func aPortThatIsTakenIsNamed() async throws {
        try await blocking {
            try install("mpv")
            let outcome = try ReelcacheCommand.run(
                ["play", url, "--cache-dir", cache, "--listen", "127.0.0.1:\(origin.port)"], environment: environment)
            #expect(
                outcome.failureLine?.hasPrefix(
                    "reelcache: another program uses 127.0.0.1:\(origin.port): choose another address with --listen")
                    == true, "\(outcome)")
        }
    }

    @Test func whatTheProxyRefusesIsSaidWhenThePlayerHasFailed() async throws {
        try await blocking {
            try install("mpv", "exit 2")
            let outcome = try ReelcacheCommand.run(
                ["play", url, "--cache-dir", cache, "--listen", "127.0.0.1:0"], environment: environment)
            #expect(outcome.exit == .exited(2))
            #expect(
                outcome.stderr.contains(
                    " answers 403: 127.0.0.1 is at the private address 127.0.0.1; to fetch from it, add 127.0.0.1 to allow"
                )
                    && outcome.stderr.split(separator: "\n").count == 1, "\(outcome)")
            #expect(origin.requestCount("/film.mp4") == 0)
        }
    }

    // MARK: Signals

    @Test func aSignalThatEndsThePlayerIsTold() async throws {
        try await blocking {
            try install("mpv", "kill -KILL $$")
            #expect(try play().exit == .exited(128 + SIGKILL))
        }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT]) func whatIsSentToTheCommandGoesToThePlayer(signal: Int32)
        async throws
    {
        try await blocking {
            // It writes its own text and waits. Bash itself ignores SIGQUIT.
            try install("mpv", "exec tail -f \"$0\"")
            let command = try start()
            try command.waitForLine(containing: "exec tail")
            command.signal(signal)
            #expect(try command.waitForExit() == .exited(128 + signal))
        }
    }

    /// Its proxy reads no configuration again, and SIGHUP would end the player.
    @Test func aReloadLeavesThePlayerAlone() async throws {
        try await blocking {
            try install("mpv", Self.waits)
            let command = try start()
            try command.waitForLine(containing: "mpv ")
            let reload = try ReelcacheCommand.run(["reload", "--cache-dir", cache])
            let line = try #require(reload.failureLine, "\(reload)")
            #expect(line.contains("process \(command.pid)") && line.contains("reelcache serve"), "\(line)")
            let file = directory.file("r.yaml")
            let edit = try ReelcacheCommand.run(
                ["config", "edit", "--config", file], environment: ["EDITOR": "true", "REELCACHE_CACHE_DIR": cache])
            #expect(edit.exit == .exited(0) && !edit.stdout.contains("reload"), "\(edit)")
            try release(7)
            #expect(try command.waitForExit() == .exited(7))
        }
    }

    /// Only the foreground process group may read from a terminal.
    @Test func thePlayerHasTheTerminal() async throws {
        try await blocking {
            try install("mpv", "trap 'echo interrupted; exit 9' INT; read -r line; echo \"key $line\"; read -r line")
            let command = try TerminalProcess.reelcache(arguments([]), environment: environment, columns: 200)
            try command.waitForLine(containing: "mpv ")
            try command.type("q\n")
            try command.waitForLine(containing: "key q")
            try command.interrupt()
            #expect(try command.waitForExit() == .exited(9))
            #expect(command.lines.filter { $0.contains("interrupted") }.count == 1, "\(command.lines)")
        }
    }

    // MARK: Other clients

    @Test(arguments: [true, false]) func otherClientsAreWaitedFor(areInterrupted: Bool) async throws {
        try await blocking {
            try install("mpv", Self.waits)
            let command = try start()
            let port = try port(try command.waitForLine(containing: "mpv "))
            let client = try RawClient(port: port)
            #expect(try client.get("/healthz").status == 200)
            try release(4)
            let line = try command.waitForLine(containing: "the player has ended", on: .stderr)
            #expect(line.contains("1 other connection to http://127.0.0.1:\(port) is open"), "\(line)")
            #expect(try client.get(ProxyProcess.target(url)).body == film.allBytes)
            if areInterrupted { command.signal(SIGINT) } else { client.close() }
            #expect(try command.waitForExit() == .exited(4))
            #expect(command.stderr.split(separator: "\n").count == 1)
        }
    }
}
