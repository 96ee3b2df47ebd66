import Foundation
import TestSupport
import Testing

/// `reelcache config check` and `show`, and what other commands make of the file.
@Suite struct ConfigTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// - Returns: its path.
    private func write(_ text: String, to name: String = "r.yaml") throws -> String {
        let file = URL(fileURLWithPath: directory.file(name))
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    private func config(_ arguments: String..., environment: [String: String?] = [:]) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(["config"] + arguments, environment: environment)
    }

    private func object(_ outcome: ChildProcess.Outcome) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any])
    }

    // MARK: check

    @Test func aGoodFileIsOk() throws {
        let file = try write("max_size: 2GB\n")
        for outcome in [
            try config("check", file), try config("check", "--config", file),
            try config("check", environment: ["REELCACHE_CONFIG": file]),
        ] {
            #expect(
                outcome.exit == .exited(0) && outcome.stdout == "\(file): ok\n" && outcome.stderr == "", "\(outcome)")
        }
    }

    @Test func eachProblemIsALine() throws {
        let file = try write("max_sise: 2GB\nthreads: 0\nthreads: 1\n")
        let lines = [
            "\(file):1:1: max_sise: is not a setting; did you mean max_size?",
            "\(file):2:10: threads: 0 is out of range; write a number from 1 to 256",
            "\(file):3:1: threads: is repeated, first on line 2; remove one of them",
        ]
        let outcome = try config("check", file)
        #expect(
            outcome.exit == .exited(1) && outcome.stdout == lines.map { "\($0)\n" }.joined() && outcome.stderr == "",
            "\(outcome)")
    }

    @Test func aProblemInARuleNamesTheRuleAndItsKey() throws {
        let file = try write(
            "rules:\n  - host: a.example\n    ttl: 1d\n  - path: vod\n    tll: 1d\n    headers: {Host: b}\nmounts: {/tv: https://o/}\n"
        )
        let outcome = try config("check", file)
        #expect(
            outcome.exit == .exited(1)
                && outcome.lines == [
                    "\(file):4:11: rules[1].path: 'vod' is not a path pattern; begin it with / or *, such as /vod/* or *.mp4",
                    "\(file):5:5: rules[1].tll: is not a key of a rule; did you mean ttl?",
                    "\(file):6:15: rules[1].headers.Host: the proxy writes Host itself; remove it",
                    "\(file):7:10: mounts: '/tv' is not a mount path: begin and end it with /, such as /tv/",
                ], "\(outcome)")
        let problems = try #require(try object(try config("check", "--json", file))["problems"] as? [[String: Any]])
        #expect(
            problems.map { $0["key"] as? String } == [
                "rules[1].path", "rules[1].tll", "rules[1].headers.Host", "mounts",
            ])
        #expect(problems.map { $0["line"] as? Int } == [4, 5, 6, 7])
    }

    @Test func jsonSaysTheSame() throws {
        let good = try config("check", "--json", try write(""))
        #expect(good.exit == .exited(0))
        #expect(
            try object(good) as NSDictionary == ["file": directory.file("r.yaml"), "ok": true, "problems": [Any]()])

        let bad = try config("check", "--json", try write("listen: x"))
        #expect(bad.exit == .exited(1) && bad.stderr == "")
        let problem: [String: Any] = [
            "line": 1, "column": 9, "key": "listen",
            "message": "cannot listen on 'x'; write HOST:PORT, such as 127.0.0.1:7335",
        ]
        #expect(
            try object(bad) as NSDictionary == ["file": directory.file("r.yaml"), "ok": false, "problems": [problem]])
    }

    @Test func aFileThatIsNotThereIsAProblem() throws {
        let file = directory.file("none.yaml")
        let outcome = try config("check", file)
        #expect(
            outcome.exit == .exited(1) && outcome.stdout == "\(file): cannot be read: No such file or directory\n"
                && outcome.stderr == "", "\(outcome)")
        #expect(try object(try config("check", "--json", file))["ok"] as? Bool == false)
    }

    @Test func withoutANameTheOneThatWouldBeReadIsChecked() throws {
        let file = try write("", to: "xdg/reelcache/reelcache.yaml")
        let environment: [String: String?] = ["REELCACHE_CONFIG": nil, "XDG_CONFIG_HOME": directory.file("xdg")]
        #expect(try config("check", environment: environment).stdout == "\(file): ok\n")
    }

    // MARK: show

    /// Each flag exists, and each variable.
    @Test(arguments: [
        [
            "listen": "127.0.0.1:1", "names": "tv.example", "cache_dir": "/films", "max_size": "1GB", "min_free": "2GB",
            "max_short_responses": "16MiB", "max_buffered": "32MiB", "allow": "a.local",
            "mounts": "/tv/=https://o.example/",
            "any_origin": "false", "tunnel": "true", "cache": "shared", "default_ttl": "1h",
            "targeted_fields": "Edge-Cache-Control", "tunnel_ports": "8443", "max_body": "100MB", "offline": "true",
            "play_pinned": "false", "fill": "whole", "ahead_segments": "5", "prefetch_next": "true",
            "ignore_reload": "true", "max_downloads": "5", "download_rate": "2MB", "linger": "1m",
            "connect_timeout": "2s", "stall_timeout": "3m", "max_fetches": "9", "max_fetches_per_host": "8",
            "threads": "3", "ca_file": "/own.pem", "log_level": "debug", "access_log": "/own.log",
            "access_log_format": "combined",
        ],
        ["any_origin": "true", "offline": "false", "ignore_reload": "false", "download_rate": "none"],
    ])
    func eachKeyIsAFlagAndAVariable(settings: [String: String]) throws {
        let odd = [
            "mounts": "--mount", "names": "--name", "tunnel_ports": "--tunnel-port",
            "targeted_fields": "--targeted-field",
        ]
        func flag(_ key: String) -> String { odd[key] ?? "--" + key.replacing("_", with: "-") }
        func variable(_ key: String) -> String { "REELCACHE_" + key.uppercased() }
        let arguments = settings.flatMap { key, value in
            switch value {
            case "true": [flag(key)]
            case "false": ["--no-" + flag(key).dropFirst(2)]
            default: [flag(key), value]
            }
        }
        let byFlags = try rows(ReelcacheCommand.run(["config", "show", "--json"] + arguments))
        let environment = settings.map { (variable($0), Optional($1)) }
        let byVariables = try rows(
            config("show", "--json", environment: Dictionary(uniqueKeysWithValues: environment)))
        for (key, value) in settings {
            #expect(byFlags[key] == Row(key: key, values: [value], origin: flag(key)))
            #expect(byVariables[key] == Row(key: key, values: [value], origin: variable(key)))
        }
    }

    private struct Row: Decodable, Equatable {
        let key: String
        let values: [String]
        let origin: String
    }

    private func rows(_ outcome: ChildProcess.Outcome) throws -> [String: Row] {
        let rows = try JSONDecoder().decode([Row].self, from: Data(outcome.stdout.utf8))
        return Dictionary(uniqueKeysWithValues: rows.map { ($0.key, $0) })
    }

    @Test func itShowsWhatHoldsAndWhoSaidSo() throws {
        let file = try write(
            "max_size: 2GB\nthreads: 2\nallow: [a.local, 10.0.0.0/8]\nrules:\n- pin: true\n- host: api.example\n  headers: {X-Key: secret}\n"
        )
        let outcome = try config(
            "show", "--config", file, "--threads", "3", "--offline",
            environment: ["REELCACHE_LOG_LEVEL": "info", "REELCACHE_CACHE_DIR": "/films"])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "")
        #expect(
            outcome.stdout.split(separator: "\n").map { $0.replacing(#/ {2,}/#, with: "  ") } == [
                "listen  127.0.0.1:7335  default",
                "names  (none)  default",
                "trusted  (none)  default",
                "proxy_protocol  false  default",
                "drain_time  5s  default",
                "max_connections  (as many as the limit of open files allows)  default",
                "max_connections_per_client  (any number)  default",
                "max_requests_per_client  (any number)  default",
                "cache_dir  /films  REELCACHE_CACHE_DIR",
                "max_size  2GB  \(file):1",
                "min_free  1GB  default",
                "max_short_responses  4MiB  default",
                "max_buffered  (a sixteenth of the memory, 16MB to 24MB)  default",
                "allow  a.local, 10.0.0.0/8  \(file):3",
                "mounts  (none)  default",
                "any_origin  true  default",
                "cache  (shared if only mounts are served, otherwise private)  default",
                "default_ttl  (10 min in a private cache, 0 s in a shared one)  default",
                "targeted_fields  CDN-Cache-Control  default", "tunnel  false  default",
                "tunnel_ports  443  default",
                "max_body  (any size)  default",
                "offline  true  --offline",
                "play_pinned  true  default",
                "fill  ahead 32MiB  default",
                "ahead_segments  3  default",
                "prefetch_next  false  default",
                "ignore_reload  (only segments that a playlist names)  default",
                "max_downloads  3  default",
                "download_rate  none  default",
                "schedule  (downloads run at any time)  default",
                "download_cap  (any number of bytes)  default",
                "download_retry_time  7d  default",
                "linger  5s  default",
                "connect_timeout  10s  default",
                "stall_timeout  30s  default",
                "max_fetches  256  default",
                "max_fetches_per_host  64  default",
                "web_origins  (none)  default",
                "secret_parameters  (none besides the built-in ones)  default",
                "threads  3  --threads",
                "ca_file  (the system's)  default",
                "log_level  info  REELCACHE_LOG_LEVEL",
                "access_log  (no log)  default",
                "access_log_format  json  default",
                "player  (mpv, vlc or ffplay, the first that is installed)  default",
                "parents  (none)  default",
                "upstream_proxy  (none)  default",
                "upstream_proxy_except  (none)  default",
                "resolvers  (none)  default",
                "on_completed  (none)  default",
                "on_failed  (none)  default",
                "rules  2 rules  \(file):4",
            ])
    }

    // MARK: Other commands

    @Test func serveWorksByTheFile() throws {
        let cache = directory.file("films")
        let file = try write(
            "listen: 127.0.0.1:0\ncache_dir: \(cache)\nmax_size: 300MB\n", to: "xdg/reelcache/reelcache.yaml")
        let environment: [String: String?] = ["REELCACHE_CONFIG": nil, "XDG_CONFIG_HOME": directory.file("xdg")]
        let serve = try ReelcacheCommand.start(["serve"], environment: environment)
        try serve.waitForLine(containing: "cache in \(cache) (at most 300 MB)")

        // They find it by the cache directory of the file.
        let stats = try ReelcacheCommand.run(["stats"], environment: environment)
        #expect(stats.exit == .exited(0) && stats.stdout.contains("of 300 MB"), "\(stats)")
        let url = try ReelcacheCommand.run(["url", "https://example.org/", "--config", file])
        #expect(
            serve.stdout.contains("serves at \(url.stdout.replacing("/https/example.org/\n", with: ","))"), "\(url)")
        // As the other commands, it takes what it has printed.
        let opened = url.stdout.trimmingCharacters(in: .newlines)
        #expect(try ReelcacheCommand.run(["url", opened, "--config", file]).stdout == url.stdout)
        #expect(try serve.terminate() == .exited(0))
    }

    @Test(arguments: [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"), (":8000", "http://127.0.0.1:8000"),
        ("[::]:8000", "http://[::1]:8000"),
    ])
    func withoutAProxyTheURLIsThatOfTheFile(listen: String, base: String) throws {
        let file = try write("listen: '\(listen)'\ncache_dir: \(directory.file("films"))\n")
        let outcome = try ReelcacheCommand.run(["url", "https://example.org/", "--config", file])
        #expect(outcome.stdout == "\(base)/https/example.org/\n" && outcome.exit == .exited(0), "\(outcome)")
    }

    @Test func withoutAProxyAndAPortThereIsNoURL() throws {
        let file = try write("listen: 127.0.0.1:0\ncache_dir: \(directory.file("films"))\n")
        let line = try #require(
            try ReelcacheCommand.run(["url", "https://example.org/", "--config", file]).failureLine)
        #expect(line.contains("listen 127.0.0.1:0"), "\(line)")
    }

    /// Nothing is begun with a configuration that is wrong.
    @Test(arguments: [["serve"], ["stats"], ["url", "https://example.org/"], ["config", "show"]])
    func everyCommandRefusesABadFile(command: [String]) throws {
        let file = try write("cache_dir: \(directory.file("films"))\nthreads: 0\ncolour: red\n")
        let outcome = try ReelcacheCommand.run(
            command + ["--config", file], environment: ["REELCACHE_MAX_SIZE": "1MB"])
        #expect(outcome.exit == .exited(2) && outcome.stdout == "")
        let starts = [
            "reelcache: \(file):2:10: threads: ", "reelcache: \(file):3:1: colour: ",
            "reelcache: REELCACHE_MAX_SIZE: '1MB' is too small; write 16MB or more",
        ]
        let lines = outcome.stderr.split(separator: "\n")
        #expect(lines.count == starts.count && zip(lines, starts).allSatisfy { $0.hasPrefix($1) }, "\(outcome.stderr)")
        #expect(!FileManager.default.fileExists(atPath: directory.file("films")))
    }

    @Test(arguments: [["serve"], ["stats"], ["url", "https://example.org/"], ["config", "show"]])
    func everyCommandRefusesAFileThatIsNotThere(command: [String]) throws {
        let line = try #require(
            try ReelcacheCommand.run(command + ["--config", directory.file("none.yaml")]).failureLine)
        #expect(line.contains(directory.file("none.yaml")) && line.contains("No such file"), "\(line)")
    }

    @Test(arguments: [
        ["config", "chek"], ["config", "check", "a", "b"], ["config", "show", "a"],
        ["config", "show", "--threads", "0"], ["config", "show", "--mount", "tv"],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(outcome.exit == .exited(2) && outcome.stdout == "" && outcome.stderr.hasPrefix("Error: "), "\(outcome)")
    }

    @Test(arguments: [["config"], ["config", "--help"], ["config", "check", "--help"], ["config", "show", "-h"]])
    func helpIsNoError(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(
            outcome.exit == .exited(0) && outcome.stderr == "" && outcome.stdout.contains("USAGE: reelcache config"),
            "\(outcome)")
    }

    // MARK: Secrets

    @Test func passwordOfTheUpstreamProxyIsNotShown() throws {
        let file = try write("upstream_proxy: socks5h://me:hunter2@127.0.0.1:1080\nparents: [http://10.0.0.5:7335]\n")
        for arguments in [["show", "--config", file], ["show", "--config", file, "--json"]] {
            let outcome = try ReelcacheCommand.run(["config"] + arguments)
            #expect(outcome.exit == .exited(0) && outcome.stdout.contains("socks5h://***@127.0.0.1:1080"), "\(outcome)")
            #expect(!outcome.stdout.contains("hunter2") && outcome.stdout.contains("http://10.0.0.5:7335"))
        }
        let rule = try write(
            "rules: [{host: cdn.example, refresh: \"https://api.example/play{path}?token=hunter2\"}]\n")
        let shown = try ReelcacheCommand.run(["config", "show", "--config", rule, "--json"])
        #expect(shown.stdout.contains("https://api.example/play{path}?token=***") && !shown.stdout.contains("hunter2"))
        let bad = try write("upstream_proxy: http://me:hunter2@\nparents: [10.0.0.5]\n")
        let outcome = try config("check", bad)
        #expect(
            outcome.exit == .exited(1)
                && outcome.stdout == """
                    \(bad):1:17: upstream_proxy: is not a proxy's address; write it like http://proxy.example:3128 or socks5h://user:password@127.0.0.1:1080
                    \(bad):2:11: parents: '10.0.0.5' is not the address of a parent; write it like http://10.0.0.5:7335

                    """,
            "\(outcome)")
    }
}
