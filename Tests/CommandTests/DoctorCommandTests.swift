import Foundation
import TestSupport
import Testing

/// `reelcache doctor`, with each thing that can be made to go wrong.
@Suite struct DoctorCommandTests {
    private let origin: ScriptedOrigin
    private let directory: TemporaryDirectory
    private let film = Media(seed: 92, size: 5000)

    init() throws {
        (origin, directory) = (try ScriptedOrigin(), try TemporaryDirectory())
        origin.serve("/film.mp4", film)
    }

    private var cache: String { directory.file("cache") }

    /// What it says, by the name of the check.
    private struct Report {
        let outcome: ChildProcess.Outcome
        let lines: [String]

        init(_ outcome: ChildProcess.Outcome) { (self.outcome, lines) = (outcome, outcome.lines) }

        func has(_ severity: String, _ text: String) -> Bool {
            lines.contains { $0.hasPrefix(severity) && $0.contains(text) }
        }

        var problems: [String] { lines.filter { $0.hasPrefix("problem") } }
    }

    private func doctor(_ arguments: [String] = [], _ environment: [String: String?] = [:]) throws -> Report {
        let ours: [String: String?] = [
            "REELCACHE_LISTEN": "127.0.0.1:0", "REELCACHE_CACHE_DIR": cache, "REELCACHE_MIN_FREE": "1MB",
        ]
        let outcome = try ReelcacheCommand.run(["doctor"] + arguments, environment: ours.merging(environment) { $1 })
        #expect(outcome.stderr == "", "\(outcome)")
        return Report(outcome)
    }

    /// The program in a file of its own. Another process writes it: one that this process has open for writing cannot be
    /// run while any other child is being started (ETXTBSY).
    private func copiedProgram() throws -> String {
        let copy = directory.file("reelcache")
        let outcome = try ChildProcess.run("/bin/cp", [try ReelcacheCommand.path(), copy])
        try #require(outcome.exit == .exited(0), "\(outcome)")
        return copy
    }

    @Test func whatIsWellIsALineEach() async throws {
        try await blocking {
            let report = try doctor()
            #expect(report.outcome.exit == .exited(0) && report.problems == [], "\(report)")
            let checks = report.lines.compactMap { $0.split(separator: " ", maxSplits: 1).last?.prefix { $0 != ":" } }
                .map { $0.drop { $0 == " " } }
            #expect(
                checks == [
                    "configuration", "cache", "file system", "space", "holes", "reflinks", "open files", "clock",
                    "port", "proxy", "names", "certificates", "environment",
                ], "\(report)")
            #expect(!FileManager.default.fileExists(atPath: cache))
            #expect(origin.snapshot.requests.isEmpty)
        }
    }

    @Test func jsonSaysTheSame() async throws {
        try await blocking {
            struct Found: Decodable { let check, severity, text: String, advice: String? }
            struct Reported: Decodable { let ok: Bool, findings: [Found] }
            let (lines, json) = (
                try doctor([origin.url("/film.mp4")]), try doctor([origin.url("/film.mp4"), "--json"])
            )
            #expect(lines.outcome.exit == .exited(1) && json.outcome.exit == .exited(1))
            let report = try JSONDecoder().decode(Reported.self, from: Data(json.outcome.stdout.utf8))
            #expect(!report.ok && report.findings.count == lines.lines.count)
            #expect(report.findings.last?.severity == "problem" && report.findings.last?.advice != nil)
        }
    }

    @Test func aMistakeInTheConfigurationIsAProblem() async throws {
        try await blocking {
            let report = try doctor([], ["REELCACHE_MAX_SIZE": "much"])
            #expect(report.outcome.exit == .exited(1))
            #expect(report.has("problem", "configuration: REELCACHE_MAX_SIZE: 'much' is not a size"), "\(report)")
            // The rest is looked at all the same.
            #expect(report.has("ok", "names"), "\(report)")
        }
    }

    @Test func aProgramOfAResolverThatIsMissingIsAWarning() async throws {
        try await blocking {
            let file = directory.file("resolvers.yaml")
            try """
            resolvers:
            - host: video.example
              command: [sh]
            - host: other.example
              command: [no-such-program, --get-url]
            """.write(toFile: file, atomically: true, encoding: .utf8)
            let report = try doctor(["--config", file])
            #expect(report.outcome.exit == .exited(0), "\(report)")
            #expect(report.has("warning", "resolvers: cannot run no-such-program: pages do not play"), "\(report)")
        }
    }

    @Test func aPageIsThatOfTheMediaThatItsResolverFinds() async throws {
        try await blocking {
            let (page, file) = ("http://page.invalid/watch", directory.file("resolvers.yaml"))
            for (command, severity, text) in [
                ("echo \(origin.url("/film.mp4")) #", "ok", "resolver: sh finds media at 127.0.0.1"),
                ("echo \(origin.url("/film.mp4")) #", "ok", "origin: answers 206, 5.00 kB"),
                ("echo nothing here >&2; exit 3 #", "problem", "the resolver sh failed with exit code 3: nothing here"),
                ("echo one; echo two #", "problem", "resolver: the resolver sh "),
            ] {
                try "resolvers:\n- host: page.invalid\n  command: [sh, -c, '\(command)']\n"
                    .write(toFile: file, atomically: true, encoding: .utf8)
                let report = try visit(page, ["REELCACHE_CONFIG": file])
                #expect(report.has(severity, text) && !report.has("problem", "does not resolve"), "\(report)")
                #expect(report.outcome.exit == .exited(severity == "ok" ? 0 : 1))
            }
        }
    }

    // MARK: The disk

    /// What it had stored last is in the log of the index alone.
    @Test func aCacheWhoseProxyWasKilledIsNotEmpty() async throws {
        try await blocking {
            let proxy = try ProxyProcess(cacheDirectory: cache)
            #expect(try proxy.get(ProxyProcess.target(origin.url("/film.mp4"))).status == 200)
            try eventually("what was stored is in the index") {
                let stored = try proxy.get("/api/v1/resources").text
                return stored.contains("\"is_complete\":true")
            }
            _ = try proxy.process.killNow()
            let report = try doctor()
            #expect(report.outcome.exit == .exited(0), "\(report)")
            #expect(report.has("ok", "in its log, as the last proxy was killed"), "\(report)")
            #expect(report.has("", " cached, at most ") && !report.has("", " 0 bytes cached"), "\(report)")
            _ = try ReelcacheCommand.run(["ls", "--cache-dir", cache])
            #expect(try !doctor().has("", "in its log"))
        }
    }

    @Test(.enabled(if: SmallDisk.obstacle == nil)) func aTinyDiskIsAProblem() async throws {
        try await blocking {
            let disk = try SmallDisk(size: 8 << 20)
            let report = try doctor(["--cache-dir", disk.path])
            #expect(report.has("problem", "space: ") && report.has("warning", "file system: tmpfs"), "\(report)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
            try disk.setReadOnly(true)
            #expect(try doctor(["--cache-dir", disk.path]).has("problem", "is read-only"))
        }
    }

    @Test(.enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0))
    func aDirectoryOfAnotherUserIsAProblem() async throws {
        try await blocking {
            try FileManager.default.createDirectory(atPath: cache, withIntermediateDirectories: true)
            #expect(chmod(directory.path, 0o755) == 0 && chmod(cache, 0o755) == 0)
            let program = try copiedProgram()
            func report(_ path: String) throws -> Report {
                let report = Report(
                    try ChildProcess.run(
                        "/usr/bin/setpriv",
                        ["--reuid=65534", "--regid=65534", "--clear-groups", program, "doctor", "--cache-dir", path],
                        environment: ReelcacheCommand.neutral.merging(["REELCACHE_LISTEN": "127.0.0.1:0"]) { $1 }))
                #expect(report.outcome.exit == .exited(1), "\(report)")
                return report
            }
            #expect(try report(cache).has("problem", "\(cache) is not writable, and belongs to user 0"))
            #expect(try report(cache + "/more/deep").has("problem", "created, because \(cache) is not writable"))
            #expect(chmod(cache, 0o700) == 0)
            #expect(try report(cache + "/more").has("problem", "cannot be reached: Permission denied"))
        }
    }

    /// With such a one, neither the proxy nor a command starts.
    @Test func aTokenThatOthersMayHaveReadIsAProblem() async throws {
        try await blocking {
            _ = try ProxyProcess(cacheDirectory: cache).process.terminate()
            #expect(try doctor().problems == [])
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: cache + "/control-token")
            let report = try doctor()
            #expect(report.has("problem", "others may have read \(cache)/control-token"), "\(report)")
            #expect(report.outcome.exit == .exited(1))
        }
    }

    @Test func whatIsNoDirectoryIsAProblem() async throws {
        try await blocking {
            try Data().write(to: URL(fileURLWithPath: cache))
            let report = try doctor()
            #expect(report.has("problem", "\(cache) is not a directory"), "\(report)")
            // And one that others can look into is odd.
            #expect(chmod(directory.path, 0o755) == 0)
            #expect(try doctor(["--cache-dir", directory.path]).has("warning", "other users can look into"))
        }
    }

    // MARK: The machine

    @Test func aClockBeforeTheProgramIsAProblem() async throws {
        try await blocking {
            let program = try copiedProgram()
            let future = Date(timeIntervalSinceNow: 30 * 86_400)
            try FileManager.default.setAttributes([.modificationDate: future], ofItemAtPath: program)
            let outcome = try ChildProcess.run(
                program, ["doctor", "--cache-dir", cache], environment: ReelcacheCommand.neutral)
            #expect(Report(outcome).has("problem", "clock: it shows"), "\(outcome)")
        }
    }

    @Test func fewFilesAndAProxyInTheEnvironmentAreSaid() async throws {
        try await blocking {
            let outcome = try ChildProcess.run(
                "/bin/sh",
                ["-c", "ulimit -n 100; exec \"$0\" doctor --cache-dir \"$1\"", try ReelcacheCommand.path(), cache],
                environment: ReelcacheCommand.neutral.merging([
                    "http_proxy": "http://me:secret@proxy:3128", "no_proxy": nil, "NO_PROXY": nil,
                ]) { $1 })
            #expect(Report(outcome).has("problem", "open files: at most 100"), "\(outcome)")
            #expect(Report(outcome).has("warning", "environment: http_proxy is set"), "\(outcome)")
            #expect(!outcome.stdout.contains("secret"))
        }
    }

    @Test func certificatesThatAreNoneAreAProblem() async throws {
        try await blocking {
            try Data("nothing".utf8).write(to: URL(fileURLWithPath: directory.file("own.pem")))
            for (name, said) in [("own.pem", "has no certificate in PEM form"), ("none.pem", "cannot be read")] {
                let report = try doctor([], ["REELCACHE_CA_FILE": directory.file(name)])
                #expect(report.has("problem", "certificates: \(directory.file(name)) \(said)"), "\(report)")
            }
        }
    }

    // MARK: The proxy

    @Test func whoHasThePortIsNamed() async throws {
        try await blocking {
            let taken = try doctor([], ["REELCACHE_LISTEN": "127.0.0.1:\(origin.port)"])
            // A child of this process that is being started may have the socket too, and /proc/net/tcp, which is read in
            // pieces, can lack a socket while many others come and go.
            #expect(
                taken.problems.contains {
                    $0.contains(/port: (.+ \(process \d+\)|another program) has 127\.0\.0\.1:\d+; stop it/)
                }, "\(taken)")
            let other = try ProxyProcess(cacheDirectory: directory.file("other"))
            let report = try doctor([], ["REELCACHE_LISTEN": "127.0.0.1:\(other.port)"])
            #expect(report.has("problem", "a proxy of another cache has 127.0.0.1:\(other.port)"), "\(report)")
            let strange = try doctor([], ["REELCACHE_LISTEN": "192.0.2.1:7335"])
            #expect(strange.has("problem", "cannot listen at 192.0.2.1:7335: "), "\(strange)")
        }
    }

    @Test func theRunningProxyIsFound() async throws {
        try await blocking {
            let proxy = try ProxyProcess(cacheDirectory: cache)
            #expect(try proxy.get(ProxyProcess.target(origin.url("/film.mp4"))).status == 200)
            let report = try doctor([], ["REELCACHE_LISTEN": "127.0.0.1:\(proxy.port)"])
            #expect(!report.has("", " 0 bytes cached") && report.has("", " cached, at most "), "\(report)")
            #expect(report.has("ok", "port: the proxy listens at") && report.has("ok", "proxy: version"), "\(report)")
            #expect(
                try doctor([], ["REELCACHE_LISTEN": "127.0.0.1:1"]).has("warning", "not where the configuration says"))
        }
    }

    @Test func aProxyOfAnotherVersionIsSaid() async throws {
        try await blocking {
            // What a proxy says, in the mouth of an older one.
            let proxy = try ProxyProcess(cacheDirectory: cache)
            let stats = try proxy.get("/stats").text
            let version = try #require(stats.firstMatch(of: #/"version": "([^"]+)"/#)).1
            origin.serve("/healthz", bytes: Array("ok\n".utf8), contentType: "text/plain")
            let old = stats.replacing("\"version\": \"\(version)\"", with: "\"version\": \"0.0.9\"")
            origin.serve("/stats", bytes: Array(old.utf8), contentType: "application/json")
            let lock = try Owner(directory.file("other"), url: origin.url(""))
            let report = try doctor(["--cache-dir", directory.file("other")])
            #expect(report.has("warning", "version 0.0.9 is running, but this is \(version)"), "\(report)")
            origin.script("/healthz") { $0.status = 500 }
            #expect(
                try doctor(["--cache-dir", directory.file("other")]).has(
                    "problem", "does not answer: /healthz answers 500"))
            lock.release()
        }
    }

    /// Has the lock of a cache, and says where it serves.
    private final class Owner {
        private let descriptor: Int32

        init(_ directory: String, url: String) throws {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            try #require(chmod(directory, 0o700) == 0)
            let file = directory + "/LOCK"
            try Data("{\"pid\":\(getpid()),\"url\":\"\(url)\"}".utf8).write(to: URL(fileURLWithPath: file))
            descriptor = open(file, O_RDWR | O_CLOEXEC)
            try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        }

        func release() { close(descriptor) }
    }

    // MARK: A URL

    private func visit(_ url: String, _ environment: [String: String?] = [:]) throws -> Report {
        try doctor([url], ["REELCACHE_ALLOW": "127.0.0.1"].merging(environment) { $1 })
    }

    @Test func aURLThatPlaysIsWell() async throws {
        try await blocking {
            let proxy = try ProxyProcess(cacheDirectory: cache)
            let url = origin.url("/film.mp4")
            for argument in [url, proxy.url(url)] {
                let report = try visit(argument)
                #expect(report.outcome.exit == .exited(0), "\(report)")
                #expect(report.has("ok", "origin: answers 206, 5.00 kB, with byte ranges and a validator"), "\(report)")
                #expect(report.has("ok", "player's URL: \(proxy.url(url)) answers 206"), "\(report)")
            }
        }
    }

    /// The upstream proxy is for the origin alone, and looks up its name.
    @Test func onlyTheOriginIsReachedThroughTheUpstreamProxy() async throws {
        try await blocking {
            let way = try ScriptedProxy(.http, to: origin.port), url = "http://film.invalid/film.mp4?token=abc"
            let environment = ["REELCACHE_UPSTREAM_PROXY": "http://127.0.0.1:\(way.port)"]
            let proxy = try ProxyProcess(cacheDirectory: cache, environment: environment)
            let report = try visit(url, environment)
            #expect(report.outcome.exit == .exited(0) && report.problems == [], "\(report)")
            #expect(report.has("ok", "host: film.invalid is looked up by 127.0.0.1:\(way.port)"), "\(report)")
            #expect(report.has("ok", "player's URL: \(proxy.url("http://film.invalid/film.mp4"))"), "\(report)")
            #expect(Set(way.requests.map(\.line)) == ["GET \(url)"])
            let refused = try visit("http://192.168.1.9/a.mp4", environment)
            #expect(refused.has("problem", "host: 192.168.1.9 is at the private address"), "\(refused)")
        }
    }

    @Test func aPrivateHostGetsTheLineThatAllowsIt() async throws {
        try await blocking {
            let report = try doctor([origin.url("/film.mp4")])
            #expect(
                report.has("problem", "host: 127.0.0.1 is at the private address")
                    && report.has("problem", "allow: [127.0.0.1]"))
            #expect(origin.requestCount("/film.mp4") == 0)
            // This process may, and the proxy that runs may not.
            let proxy = try ProxyProcess(cacheDirectory: cache, allow: nil)
            let refused = try visit(origin.url("/film.mp4"))
            #expect(
                refused.has("problem", "the proxy answers 403 to \(proxy.url(origin.url("/film.mp4")))"), "\(refused)")
        }
    }

    @Test func whatTheOriginLacksIsSaid() async throws {
        try await blocking {
            let url = origin.url("/film.mp4")
            origin.script("/film.mp4") { ($0.ignoresRange, $0.noValidators) = (true, true) }
            let poor = try visit(url)
            #expect(
                poor.has("warning", "it ignores byte ranges") && poor.has("warning", "neither ETag nor"), "\(poor)")
            #expect(poor.outcome.exit == .exited(0))
            origin.script("/film.mp4") { $0.status = 403 }
            #expect(try visit(url).has("problem", "origin: it answers 403"))
            #expect(try visit(url.replacing("http:", with: "https:")).has("problem", "TLS"))
            let secret = try visit(url + "?token=abc")
            #expect(!secret.outcome.stdout.contains("abc"), "\(secret)")
            origin.stop()
            #expect(try visit(url).has("problem", "cannot connect"))
            #expect(try visit("ftp://a/b").has("problem", "URL: "))
        }
    }

    @Test func whatTheSettingsForbidIsSaid() async throws {
        try await blocking {
            let url = origin.url("/film.mp4")
            #expect(try visit(url, ["REELCACHE_OFFLINE": "true"]).has("warning", "offline is set"))
            #expect(try visit(url, ["REELCACHE_ANY_ORIGIN": "false"]).has("problem", "is not served"))
            let file = directory.file("r.yaml")
            try "rules:\n- bypass: true\n".write(toFile: file, atomically: true, encoding: .utf8)
            #expect(try visit(url, ["REELCACHE_CONFIG": file]).has("warning", "makes it bypass the cache"))
        }
    }
}
