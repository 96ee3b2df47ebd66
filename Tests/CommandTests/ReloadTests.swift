import Foundation
import TestSupport
import Testing

/// SIGHUP to a running `reelcache serve`.
@Suite struct ReloadTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var file: String { directory.file("r.yaml") }
    private var cache: String { directory.file("cache") }

    private func write(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: file)) }

    private func serve(_ text: String, _ arguments: String..., allow: String? = "127.0.0.1") throws -> ProxyProcess {
        try write(text)
        return try ProxyProcess(cacheDirectory: cache, arguments: ["--config", file] + arguments, allow: allow)
    }

    /// Changes the file, sends SIGHUP and waits for the line of the log.
    private func reload(_ proxy: ProxyProcess, _ text: String, until line: String) throws {
        try write(text)
        proxy.process.signal(SIGHUP)
        try proxy.process.waitForLine(containing: line, on: .stderr)
    }

    private func cacheLimits(_ proxy: ProxyProcess) throws -> (limit: Int, minFree: Int) {
        let stats = try JSONSerialization.jsonObject(with: Data(try proxy.get("/stats").body)) as? [String: Any]
        let cache = try #require(stats?["cache"] as? [String: Any])
        return (try #require(cache["limit"] as? Int), try #require(cache["min_free"] as? Int))
    }

    @Test func parentsAndUpstreamProxyChangeAtOnce() throws {
        let origin = try ScriptedOrigin(), parent = try ScriptedOrigin()
        defer {
            origin.stop()
            parent.stop()
        }
        let proxy = try serve("max_size: 300MB")
        let film = Media(seed: 8, size: 1000)
        for path in ["/a.mp4", "/b.mp4"] {
            origin.serve(path, film)
            parent.serve(origin.url(path), film)
        }
        let own = "http://127.0.0.1:\(parent.port)"
        try reload(proxy, "max_size: 300MB\nparents: [\(own)]", until: "parents is now \(own)")
        #expect(try proxy.get("/http/127.0.0.1:\(origin.port)/a.mp4").status == 200)
        #expect(parent.requestCount(origin.url("/a.mp4")) == 1 && origin.requestCount("/a.mp4") == 0)

        let dead = "http://me:hunter2@127.0.0.1:1"
        try reload(
            proxy, "max_size: 300MB\nupstream_proxy: \(dead)", until: "upstream_proxy is now http://***@127.0.0.1:1")
        let response = try proxy.get("/http/127.0.0.1:\(origin.port)/b.mp4")
        #expect(response.status == 502, "\(response.headers) \(origin.snapshot.requests) \(parent.snapshot.requests)")
        #expect(response.text.contains("127.0.0.1:1 (upstream_proxy)"))
        try reload(
            proxy, "max_size: 300MB\nupstream_proxy: \(dead)\nupstream_proxy_except: [127.0.0.1]",
            until: "upstream_proxy_except is now 127.0.0.1")
        #expect(try proxy.get("/http/127.0.0.1:\(origin.port)/b.mp4").status == 200)
    }

    @Test func commandChecksTheFileThatTheProxyReads() throws {
        let proxy = try serve("max_size: 300MB"), other = directory.file("other.yaml"), link = directory.file("link")
        try Data("max_size: 400MB\ncache_dir: \(cache)".utf8).write(to: URL(fileURLWithPath: other))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
        func run(_ config: String) throws -> ChildProcess.Outcome {
            try ReelcacheCommand.run(["reload", "--config", config, "--cache-dir", cache])
        }
        let same = try run(link)
        #expect(same.exit == .exited(0) && same.stderr == "", "\(same)")
        let differs = try run(other)
        #expect(differs.exit == .exited(0) && differs.stdout.hasPrefix("\(file) is valid; "), "\(differs)")
        #expect(differs.stderr.contains("the proxy reads \(file), not \(other)"), "\(differs)")
        try write("max_size: much")
        let broken = try run(other)
        #expect(broken.exit == .exited(1) && broken.stdout.hasPrefix("\(file):1"), "\(broken)")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// A service has another home than whoever has it reload.
    @Test func commandChecksTheFileThatHasAppearedForTheProxy() throws {
        let (service, own) = (directory.file("service"), directory.file("own"))
        let proxy = try ProxyProcess(
            cacheDirectory: cache, environment: ["XDG_CONFIG_HOME": service, "REELCACHE_CONFIG": nil])
        for (home, text) in [(service, "max_size: much"), (own, "max_size: 300MB")] {
            try FileManager.default.createDirectory(atPath: home + "/reelcache", withIntermediateDirectories: true)
            try text.write(toFile: home + "/reelcache/reelcache.yaml", atomically: true, encoding: .utf8)
        }
        func run(_ arguments: String...) throws -> ChildProcess.Outcome {
            try ReelcacheCommand.run(
                arguments + ["--cache-dir", cache],
                environment: ["XDG_CONFIG_HOME": own, "EDITOR": "true", "REELCACHE_CONFIG": nil])
        }
        let reload = try run("reload")
        #expect(
            reload.exit == .exited(1) && reload.stdout.hasPrefix("\(service)/reelcache/reelcache.yaml:1"), "\(reload)")
        let edit = try run("config", "edit")
        #expect(edit.exit == .exited(0) && !edit.stdout.contains("reload"), "\(edit)")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func limitsChangeAtOnce() throws {
        let proxy = try serve("max_size: 300MB\nmin_free: 1MB")
        #expect(try cacheLimits(proxy) == (300_000_000, 1_000_000))

        try reload(proxy, "max_size: 200MB\nmin_free: 2MB", until: "min_free is now 2MB (\(file):2); it was 1MB")

        #expect(proxy.process.stderr.contains("max_size is now 200MB (\(file):1); it was 300MB"))
        #expect(try cacheLimits(proxy) == (200_000_000, 2_000_000))
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func howManyDownloadsRunAndHowFastChangesAtOnce() throws {
        let proxy = try serve("download_rate: 1MB", "--max-downloads", "2")
        func settings() throws -> NSDictionary? {
            try JSONSerialization.jsonObject(with: Data(try proxy.get("/api/v1/downloads/settings").body))
                as? NSDictionary
        }
        #expect(try settings() == ["max_active": 2, "limit_rate": 1_000_000])
        try reload(
            proxy, "download_rate: none\nmax_downloads: 9", until: "download_rate is now none (\(file):1); it was 1MB")
        #expect(try settings() == ["max_active": 2])
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func theScheduleAndTheCapsChangeAtOnce() throws {
        let origin = try ScriptedOrigin()
        origin.serve("/a.mp4", Media(seed: 1, size: 100_000))
        let proxy = try serve("schedule: {else: off}\ndownload_cap: 1GB/day")
        func run(_ arguments: String...) throws -> ChildProcess.Outcome {
            try ReelcacheCommand.run(arguments + ["--cache-dir", cache])
        }
        _ = try run("prefetch", origin.url("/a.mp4"), "--detach")
        #expect(try run("downloads").lines.last == "1 waiting, the schedule lets no download run")
        #expect(origin.requestCount("/a.mp4") == 0)

        let done = try run("prefetch", origin.url("/a.mp4"), "--at-once")
        #expect(done.exit == .exited(0) && !done.stderr.contains("schedule"), "\(done)")
        #expect(origin.requestCount("/a.mp4") == 1)

        try reload(
            proxy, "schedule: {00:00-24:00: 1MB}\ndownload_cap: 1000/day",
            until: "download_cap is now 1kB/day (\(file):2); it was 1GB/day")
        #expect(
            proxy.process.stderr.contains("schedule is now 00:00-24:00=1MB (\(file):1); it was else=off"))
        origin.serve("/b.mp4", Media(seed: 2, size: 1000))
        _ = try run("prefetch", origin.url("/b.mp4"), "--detach")
        let listed = try run("downloads").lines.last ?? ""
        #expect(
            listed.firstMatch(
                of: /^1 waiting, 1kB\/day used up until (... )?00:00, fetched 100 kB today, \d+ kB this month$/) != nil,
            "\(listed)")

        try reload(proxy, "", until: "download_cap is now (any number of bytes) (default)")
        let end = try run("prefetch", origin.url("/b.mp4"))
        #expect(end.exit == .exited(0), "\(end)")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func aPrivateOriginIsAllowedAndForbiddenAgain() throws {
        let origin = try ScriptedOrigin()
        for path in ["/a.mp4", "/b.mp4"] { origin.serve(path, Media(seed: 1, size: 1000)) }
        let proxy = try serve("", allow: nil)
        #expect(try proxy.get(origin.url("/a.mp4")).status == 403)

        try reload(proxy, "allow: [127.0.0.1]", until: "allow is now 127.0.0.1")
        #expect(try proxy.get(origin.url("/a.mp4")).status == 200)

        try reload(proxy, "", until: "allow is now (none) (default); it was 127.0.0.1")
        #expect(try proxy.get(origin.url("/b.mp4")).status == 403)
        #expect(origin.requestCount("/b.mp4") == 0)
    }

    @Test func rulesChangeAtOnce() throws {
        let origin = try ScriptedOrigin()
        origin.serve("/a.mp4", Media(seed: 1, size: 1000))
        let proxy = try serve("")
        func isHit(_ path: String) throws -> Bool {
            try proxy.get(origin.url(path)).headers["Cache-Status"]?.hasPrefix("reelcache; hit;") == true
        }
        #expect(try proxy.get(origin.url("/a.mp4")).status == 200)
        #expect(try !isHit("/a.mp4?token=1"))

        try reload(
            proxy, "rules:\n  - ignore_query: [token]\n", until: "rules is now 1 rule (\(file):1); it was (none)")
        #expect(try isHit("/a.mp4?token=2"))

        try reload(proxy, "rules:\n  - ignore_query: true\n", until: "rules has changed (\(file):1): 1 rule")
        #expect(try isHit("/a.mp4?other"))

        try reload(proxy, "rules:\n  - ignore_query: soon\n", until: "the settings are unchanged")
        #expect(
            proxy.process.stderr.contains(
                "\(file):2:19: rules[0].ignore_query: is neither true nor a list of parameters"))
        #expect(try isHit("/a.mp4?other"))
    }

    @Test func offlineFillMountsAndOriginsAreTakenUp() throws {
        let (origin, film) = (try ScriptedOrigin(), Media(seed: 1, size: 1000))
        for path in ["/vod/a.mp4", "/vod/b.mp4"] { origin.serve(path, film) }
        let proxy = try serve("")
        #expect(try proxy.get(origin.url("/vod/a.mp4")).status == 200)
        #expect(try proxy.get("/tv/a.mp4").status == 404)
        let mount = origin.url("/vod/")
        let text = "offline: true\nfill: whole\nany_origin: false\nmounts: {/tv/: \(mount)}\n"
        try reload(proxy, text, until: "fill is now whole (\(file):2); it was ahead 32MiB")
        for line in [
            "mounts is now /tv/=\(mount) (\(file):4); it was (none)",
            "any_origin is now false (\(file):3); it was true",
            "offline is now true (\(file):1); it was false",
        ] {
            #expect(proxy.process.stderr.contains(line), "\(line) is not in:\n\(proxy.process.stderr)")
        }
        let response = try proxy.get("/tv/a.mp4")
        #expect(response.status == 200 && film.difference(response.body, from: 0..<film.size) == nil)
        #expect(try proxy.get("/tv/b.mp4").status == 504)
        #expect(try proxy.get(origin.url("/vod/a.mp4")).status == 403)
        #expect(try RawClient.get(port: proxy.port, path: "/https/example.org/a.mp4").status == 403)
        try reload(proxy, text, until: "read \(file) again: nothing has changed")

        try reload(proxy, "mounts: {/tv/: \(mount)}\n", until: "offline is now false")
        #expect(try proxy.get("/tv/b.mp4").status == 200)
        #expect(try proxy.get(origin.url("/vod/b.mp4")).status == 200)
        #expect(origin.snapshot.requests.map(\.target) == ["/vod/a.mp4", "/vod/b.mp4"])
    }

    /// A page of another site may have its own name resolve to this machine.
    @Test func theProxyAnswersToItsNames() throws {
        let proxy = try serve("names: [Tv.example]\n", "--name", "tv.example")
        func status(_ host: String) throws -> Int {
            let client = try RawClient(port: proxy.port)
            try client.send("GET /healthz HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            return try client.readResponse().status
        }
        #expect(
            try ["tv.example:\(proxy.port)", "TV.Example", "localhost", "127.0.0.1"].map(status) == [
                200, 200, 200, 200,
            ])
        #expect(try ["evil.example", "a.tv.example", "tv.example.org"].map(status) == [421, 421, 421])
    }

    @Test func whatABodyMayHaveChangesAtOnce() throws {
        let origin = try ScriptedOrigin()
        origin.script("/vod/in") { $0.status = 201 }
        let mounts = "mounts: {/tv/: \(origin.url("/vod/"))}\n"
        let proxy = try serve(mounts + "max_body: 3\n")
        func put(_ count: Int) throws -> Int {
            let client = try RawClient(port: proxy.port)
            let head = client.request("/tv/in", headers: [("Content-Length", "\(count)")], method: "PUT")
            try client.send(Array(head.utf8) + Array(repeating: 1, count: count))
            return try client.readResponse(method: "PUT").status
        }
        #expect(try [put(3), put(4)] == [201, 413])
        try reload(proxy, mounts + "max_body: 5\n", until: "max_body is now 5 (\(file):2); it was 3")
        #expect(try [put(5), put(6)] == [201, 413])
        try reload(proxy, mounts, until: "max_body is now (any size) (default); it was 5")
        #expect(try put(100_000) == 201)
        #expect(origin.requestCount("/vod/in") == 3)
    }

    /// A line for each request would fill the log.
    @Test func offlineNothingIsFilledAndNothingToldOfIt() throws {
        let (origin, film) = (try ScriptedOrigin(), Media(seed: 2, size: 1_000_000))
        origin.serve("/a.mp4", film)
        let proxy = try serve("fill: read\nlog_level: info\n")
        #expect(try proxy.get(origin.url("/a.mp4"), range: 0..<1000).status == 206)
        try reload(proxy, "fill: whole\nlog_level: info\noffline: true\n", until: "offline is now true")
        for _ in 0..<3 { #expect(try proxy.get(origin.url("/a.mp4"), range: 0..<1000).status == 206) }
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(!proxy.process.stderr.contains("not filled"), "\(proxy.process.stderr)")
        #expect(origin.requestCount("/a.mp4") == 1)
    }

    /// Only what is mounted is for everybody.
    @Test func beyondThisMachineAnyOriginIsWarnedOf() throws {
        let mounts = "listen: 0.0.0.0:0\nmounts: {/tv/: https://o.example/vod/}\n",
            warning = "can fetch any public URL through it"
        try write(mounts + "any_origin: false\n")
        let serve = try ReelcacheCommand.start(["serve", "--config", file, "--cache-dir", cache])
        try serve.waitForLine(containing: "/tv/ is https://o.example/vod/")
        #expect(!serve.stdout.contains("/https/HOST/PATH"))
        serve.signal(SIGHUP)
        try serve.waitForLine(containing: "nothing has changed", on: .stderr)
        #expect(!serve.stderr.contains(warning))

        try write(mounts)
        serve.signal(SIGHUP)
        try serve.waitForLine(containing: "any_origin is now true", on: .stderr)
        #expect(serve.stderr.contains(warning))
        #expect(try serve.terminate() == .exited(0))
    }

    @Test func theLogTurnsTalkative() throws {
        let proxy = try serve("")
        try reload(proxy, "log_level: info", until: "log_level is now info")
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(proxy.process.stderr.contains("stopping: SIGTERM"))
    }

    /// Of a proxy that has no flags for them.
    @Test func whatNeedsARestartIsSaid() throws {
        let before = "listen: 127.0.0.1:0\ncache_dir: \(cache)\nthreads: 1\n"
        try write(before)
        let serve = try ReelcacheCommand.start(["serve", "--config", file])
        let line = try serve.waitForLine(containing: " serves at ")

        try write(
            "listen: 127.0.0.1:1\ncache_dir: /elsewhere\nthreads: 2\nca_file: /own.pem\nlinger: 1s\nconnect_timeout: 2s\nstall_timeout: 3s\nnames: [tv.example]\n"
        )
        serve.signal(SIGHUP)
        try serve.waitForLine(
            containing: "ca_file stays (the system's): /own.pem (\(file):4) takes effect after a restart", on: .stderr)

        for line in [
            "listen stays 127.0.0.1:0: 127.0.0.1:1 (\(file):1) takes effect after a restart",
            "cache_dir stays \(cache): /elsewhere (\(file):2) takes effect after a restart",
            "threads stays 1: 2 (\(file):3) takes effect after a restart",
            "linger stays 5s: 1s (\(file):5) takes effect after a restart",
            "connect_timeout stays 10s: 2s (\(file):6) takes effect after a restart",
            "stall_timeout stays 30s: 3s (\(file):7) takes effect after a restart",
            "names stays (none): tv.example (\(file):8) takes effect after a restart",
        ] {
            #expect(serve.stderr.contains(line), "\(line) is not in:\n\(serve.stderr)")
        }
        let port = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+),/).flatMap { Int($0.1) })
        #expect(try RawClient.get(port: port, path: "/healthz").status == 200)
        // Who puts it back is not told again.
        try write(before)
        serve.signal(SIGHUP)
        try serve.waitForLine(containing: "read \(file) again: nothing has changed", on: .stderr)
        #expect(try serve.terminate() == .exited(0))
    }

    @Test(arguments: [
        (
            "log_level: info\nmax_sise: 200MB\nthreads: 0",
            [":2:1: max_sise: is not a setting; did you mean max_size?", ":3:10: threads: 0 is out of range"]
        ),
        ("log_level: info\n\tthreads: 1", [":2:1: YAML does not allow a tab"]),
    ])
    func aBadFileLeavesAllAsItWas(text: String, lines: [String]) throws {
        let proxy = try serve("")

        try reload(proxy, text, until: "the settings are unchanged")

        for line in lines {
            #expect(proxy.process.stderr.contains(file + line), "\(line) is not in:\n\(proxy.process.stderr)")
        }
        #expect(!proxy.process.stderr.contains("log_level is"))
        #expect(try proxy.get("/healthz").status == 200)
        try reload(proxy, "log_level: info", until: "log_level is now info")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func aFileThatIsGoneLeavesAllAsItWas() throws {
        let proxy = try serve("log_level: info")
        try FileManager.default.removeItem(atPath: file)
        proxy.process.signal(SIGHUP)
        try proxy.process.waitForLine(containing: "the settings are unchanged", on: .stderr)
        #expect(proxy.process.stderr.contains("cannot read the configuration \(file): No such file or directory"))
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(proxy.process.stderr.contains("stopping: SIGTERM"))
    }

    /// One that nobody named: without it the defaults would hold, under which the cache could shrink.
    @Test func aFileThatNobodyNamedAndIsGoneLeavesAllAsItWas() throws {
        let folder = directory.file("xdg/reelcache")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let found = folder + "/reelcache.yaml"
        try Data("max_size: 300MB\nmin_free: 1MB\n".utf8).write(to: URL(fileURLWithPath: found))
        let proxy = try ProxyProcess(
            cacheDirectory: cache, environment: ["REELCACHE_CONFIG": nil, "XDG_CONFIG_HOME": directory.file("xdg")])
        try FileManager.default.removeItem(atPath: found)
        proxy.process.signal(SIGHUP)
        try proxy.process.waitForLine(
            containing: "the configuration \(found) is gone; the settings are unchanged", on: .stderr)
        #expect(try cacheLimits(proxy) == (300_000_000, 1_000_000))
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(!proxy.process.stderr.contains("max_size is"))
    }

    @Test func flagsAndVariablesStillWin() throws {
        try write("")
        let proxy = try ProxyProcess(
            cacheDirectory: cache, arguments: ["--config", file, "--max-size", "300MB"],
            environment: ["REELCACHE_MIN_FREE": "1MB"])

        try reload(
            proxy, "max_size: 200MB\nmin_free: 2MB\nallow: [a.local]", until: "read \(file) again: nothing has changed")

        #expect(try cacheLimits(proxy) == (300_000_000, 1_000_000))
        #expect(try proxy.process.terminate() == .exited(0))
    }

    // MARK: SIGHUP of a terminal

    /// A proxy in the foreground of a terminal of its own.
    private func serveInTerminal(_ terminal: Terminal, prefix: [String] = []) throws -> ChildProcess {
        let serve = try ReelcacheCommand.path()
        let child = try ChildProcess(
            "/usr/bin/env",
            ["setsid", "sh", "-c", "exec \"$@\" <\(terminal.path)", "sh"] + prefix
                + [serve, "serve", "--listen", "127.0.0.1:0", "--cache-dir", cache, "--log-level", "info"],
            environment: ReelcacheCommand.neutral)
        try child.waitForLine(containing: " serves at ")
        return child
    }

    @Test func inATerminalItReloadsToo() throws {
        let terminal = try Terminal()
        let serve = try serveInTerminal(terminal)
        serve.signal(SIGHUP)
        try serve.waitForLine(containing: "nothing has changed", on: .stderr)
        #expect(try serve.terminate() == .exited(0))
    }

    @Test func itEndsWithItsTerminal() throws {
        let terminal = try Terminal()
        let serve = try serveInTerminal(terminal)
        terminal.close()
        #expect(try serve.waitForExit() == .exited(0))
        #expect(serve.stderr.contains("stopping: SIGHUP: the terminal was closed"), "\(serve.stderr)")
    }

    @Test func afterNohupItOutlivesItsTerminal() throws {
        let terminal = try Terminal()
        let serve = try serveInTerminal(terminal, prefix: ["nohup"])
        terminal.close()
        try serve.waitForLine(containing: "nothing has changed", on: .stderr)
        #expect(try serve.terminate() == .exited(0))
    }
}

/// A pseudo-terminal, closed when this object goes.
private final class Terminal {
    let path: String
    private var descriptor: Int32

    // TIOCSPTLCK and TIOCGPTN are macros that Swift does not see.
    private static let setLock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    init() throws {
        // Closed in children from the start, as openpty would not: one that has it keeps the terminal alive.
        descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (number, isLocked) = (Int32(0), Int32(0))
        guard descriptor >= 0, ioctl(descriptor, Self.setLock, &isLocked) == 0,
            ioctl(descriptor, Self.getNumber, &number) == 0
        else {
            throw SystemError("open /dev/ptmx")
        }
        path = "/dev/pts/\(number)"
    }

    deinit { close() }

    /// What the user does by closing the window.
    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }
}
