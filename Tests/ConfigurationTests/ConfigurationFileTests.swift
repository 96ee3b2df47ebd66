import Foundation
import Logging
import Reelcache
import Testing
import TestSupport

@testable import Configuration

/// What a configuration file may say, and what is said to the one who wrote something else.
@Suite struct ConfigurationFileTests {
    @Test func eachKeyIsRead() throws {
        let all = try settings(
            """
            listen: "[::1]:8000"
            names: [tv.example, nas]
            trusted: [10.0.0.5, 'fd00::/8']
            proxy_protocol: true
            drain_time: 1h
            max_connections: 4000
            max_connections_per_client: 100
            max_requests_per_client: 600/min
            cache_dir: /var/cache/films
            max_size: 1.5 GB
            min_free: 200MiB
            max_short_responses: 1MiB
            max_buffered: 100MB
            allow:
              - nas.local
              - 192.168.1.0/24
            mounts:
              /tv/: https://origin.example/vod/
            any_origin: false
            cache: private
            default_ttl: 90s
            targeted_fields: [Edge-Cache-Control, CDN-Cache-Control]
            tunnel: true
            tunnel_ports: [443, 8443]
            max_body: 7MB
            offline: true
            play_pinned: false
            fill: whole
            ahead_segments: 7
            prefetch_next: true
            ignore_reload: false
            max_downloads: 5
            download_rate: 2MB
            schedule: {"01:00-06:30": unlimited, "Sat, Sun 8:00-12:00": 2 MB, else: off}
            download_cap: [2GB/day, 40 GB/month]
            download_retry_time: 2d
            linger: 2m
            connect_timeout: 3s
            stall_timeout: 1h
            max_fetches: 100
            max_fetches_per_host: 10
            web_origins: [https://player.example]
            secret_parameters: [viewer]
            threads: 3
            ca_file: /etc/own.pem
            log_level: debug
            access_log: "-"
            access_log_format: combined
            player: [mpv, --fs]
            parents: [http://10.0.0.5:7335]
            upstream_proxy: socks5h://me:pw@10.0.0.1:1080
            upstream_proxy_except: [nas.local, 10.0.0.0/8]
            resolvers: [{host: site.example, command: [find]}]
            on_completed: [notify, done]
            on_failed: [notify]
            rules:
              - host: example.org
                ttl: 1d
            """)
        #expect(all.proxy.listen == "[::1]:8000")
        #expect(all.proxy.names == ["tv.example", "nas"])
        #expect(all.proxy.trusted == ["10.0.0.5", "fd00::/8"] && all.proxy.expectsProxyHeader)
        #expect(all.proxy.drainTime == .seconds(3600))
        #expect(all.proxy.maxConnections == 4000 && all.proxy.maxConnectionsPerClient == 100)
        #expect(all.proxy.maxRequestsPerClient == "600/min")
        #expect(all.proxy.cacheDirectory == "/var/cache/films")
        #expect(all.proxy.maxSize == 1_500_000_000 && all.proxy.minFree == 200 << 20)
        #expect(all.proxy.maxShortResponses == 1 << 20 && all.proxy.maxBuffered == 100_000_000)
        #expect(all.proxy.allow == ["nas.local", "192.168.1.0/24"])
        #expect(all.proxy.onCompleted == ["notify", "done"] && all.proxy.onFailed == ["notify"])
        #expect(all.proxy.threads == 3 && all.proxy.certificateFile == "/etc/own.pem")
        #expect(
            all.proxy.mounts == ["/tv/": "https://origin.example/vod/"] && !all.proxy.servesAnyOrigin
                && all.proxy.isOffline)
        #expect(all.proxy.cache == .private && all.proxy.defaultTTL == .seconds(90))
        #expect(all.proxy.targetedFields == ["Edge-Cache-Control", "CDN-Cache-Control"])
        #expect(all.proxy.largestMountBody == 7_000_000)
        #expect(all.proxy.tunnels && all.proxy.tunnelPorts == [443, 8443] && all.proxy.accessLog == "-")
        #expect(all.proxy.accessLogFormat == .combined)
        #expect(all.proxy.aheadSegments == 7 && all.proxy.prefetchesNext && all.proxy.ignoresReload == false)
        #expect(all.proxy.fill == .whole && all.proxy.linger == .seconds(120))
        #expect(all.proxy.maxDownloads == 5 && all.proxy.downloadRate == 2_000_000)
        #expect(
            all.proxy.downloadSchedule == ["01:00-06:30=unlimited", "Sat,Sun 08:00-12:00=2MB", "else=off"]
                && all.proxy.downloadCaps == ["2GB/day", "40GB/month"])
        #expect(all.proxy.connectTimeout == .seconds(3) && all.proxy.stallTimeout == .seconds(3600))
        #expect(all.proxy.downloadRetryTime == .seconds(172_800))
        #expect(all.proxy.maxFetches == 100 && all.proxy.maxFetchesPerHost == 10)
        #expect(
            !all.proxy.playsPinned && all.proxy.webOrigins == ["https://player.example"]
                && all.proxy.secretParameters == ["viewer"])
        #expect(all.logLevel == .debug && all.player == ["mpv", "--fs"])
        #expect(
            all.proxy.parents == ["http://10.0.0.5:7335"] && all.proxy.upstreamProxy == "socks5h://me:pw@10.0.0.1:1080"
                && all.proxy.upstreamProxyExceptions == ["nas.local", "10.0.0.0/8"])
        #expect(all.proxy.resolvers == [MediaResolver(hosts: ["site.example"], command: ["find"])])
        #expect(all.proxy.rules.map(\.hosts) == [["example.org"]] && all.proxy.rules.map(\.ttl) == [.seconds(86400)])
        #expect(
            Setting.all.map { "\(all.origin(of: $0))" }
                == (Array(1...14) + [17] + (19...56)).map { "r.yaml:\($0)" })
    }

    @Test func pathsInItMayBeginWithTheHomeDirectory() throws {
        #expect(try settings("cache_dir: ~/films").proxy.cacheDirectory == HomeDirectory.path() + "/films")
    }

    @Test(arguments: ["", "# nothing\n", "---\n", "~", "{}", "\u{FEFF}# from Windows\r\n", "--- # a document\n...\n"])
    func aFileThatSaysNothingIsFine(text: String) throws {
        #expect(try settings(text).origins.isEmpty)
    }

    @Test(arguments: [
        "max_size: 2GB", "max_size: '2GB'", "\u{FEFF}max_size: 2GB", "max_size: 2_000_000_000\r\n", "{max_size: 2GB}",
        "---\n\"max_size\": 2GB\n...\n",
        "max_size: >-\n  2GB\n", "max_size: &size 2GB",
    ])
    func aValueIsReadInAnyFormOfYAML(text: String) throws {
        #expect(try settings(text).proxy.maxSize == 2_000_000_000)
    }

    @Test func anEmptyListIsNone() throws {
        let settings = try settings("allow: []")
        #expect(settings.proxy.allow == [] && Setting["allow"].map { "\(settings.origin(of: $0))" } == "r.yaml:1")
    }

    @Test(arguments: [
        // Keys
        ("max_sise: 1GB", "r.yaml:1:1: max_sise: is not a setting; did you mean max_size?"),
        ("Max-Size: 1GB", "r.yaml:1:1: Max-Size: is not a setting; did you mean max_size?"),
        ("cachedir: /a", "r.yaml:1:1: cachedir: is not a setting; did you mean cache_dir?"),
        (
            "\n  colour: red",
            "r.yaml:2:3: colour: is not a setting; the settings are \(Setting.all.map(\.key).joined(separator: ", "))"
        ),
        ("threads: 1\nthreads: 2", "r.yaml:2:1: threads: is repeated, first on line 1; remove one of them"),
        ("\"threads\": 1\n'threads': 2", "r.yaml:2:1: threads: is repeated, first on line 1; remove one of them"),
        ("{threads: 1, threads: 2}", "r.yaml:1:14: threads: is repeated, first on line 1; remove one of them"),
        ("[a]: b", "r.yaml:1:1: a key must be a plain word; write key: value"),
        // Types
        ("threads:", "r.yaml:1:1: threads: has no value; write threads: number, or remove the line"),
        ("listen: ~", "r.yaml:1:1: listen: has no value; write listen: host:port, or remove the line"),
        ("allow:\nthreads: 1", "r.yaml:1:1: allow: has no value; write allow: [host|network, ...], or remove the line"),
        ("max_size: [1GB]", "r.yaml:1:11: max_size: takes one value, not a list; write max_size: size"),
        ("max_size:\n  all: 1GB", "r.yaml:2:3: max_size: takes no keys of its own; write max_size: size"),
        (
            "names: [a, 'b:1']",
            "r.yaml:1:12: names: 'b:1' is not a host name; write it without a port, like tv.example; addresses need no entry"
        ),
        (
            "names: [10.0.0.1]",
            "r.yaml:1:9: names: '10.0.0.1' is not a host name; write it without a port, like tv.example; addresses need no entry"
        ),
        ("allow: nas.local", "r.yaml:1:8: allow: takes a list; write allow: [host|network, ...]"),
        ("allow: {nas.local: yes}", "r.yaml:1:8: allow: takes no keys of its own; write allow: [host|network, ...]"),
        ("allow:\n  - [a.local]", "r.yaml:2:5: allow: each entry of the list takes one value; write it as - VALUE"),
        // Values
        ("max_size: 15.9MB", "r.yaml:1:11: max_size: '15.9MB' is too small; write 16MB or more"),
        ("max_size: -1GB", "r.yaml:1:11: max_size: '-1GB' is not a size; write it like 20GB or 500MiB"),
        ("min_free: much", "r.yaml:1:11: min_free: 'much' is not a size; write it like 20GB or 500MiB"),
        ("threads: 0", "r.yaml:1:10: threads: 0 is out of range; write a number from 1 to 256"),
        ("threads: 257", "r.yaml:1:10: threads: 257 is out of range; write a number from 1 to 256"),
        ("threads: 2.5", "r.yaml:1:10: threads: '2.5' is not a whole number; write one from 1 to 256"),
        ("max_downloads: 65", "r.yaml:1:16: max_downloads: 65 is out of range; write a number from 1 to 64"),
        (
            "download_rate: fast",
            "r.yaml:1:16: download_rate: 'fast' is not a size; write it like 2MB or 500KiB, or none for no limit"
        ),
        ("download_rate: 0", "r.yaml:1:16: download_rate: '0' is too small; write 1 or more"),
        ("listen: 7335", "r.yaml:1:9: listen: cannot listen on '7335'; write HOST:PORT, such as 127.0.0.1:7335"),
        (
            "listen: 127.0.0.1:65536",
            "r.yaml:1:9: listen: cannot listen on '127.0.0.1:65536'; write HOST:PORT, such as 127.0.0.1:7335"
        ),
        (
            "allow:\n  - nas.local\n  - not/valid",
            "r.yaml:3:5: allow: 'not/valid' is not a host name, IP address or network; write it like nas.local, 192.168.1.5 or 192.168.1.0/24"
        ),
        ("cache_dir: films", "r.yaml:1:12: cache_dir: 'films' is relative; write a path that begins with / or ~/"),
        ("ca_file: ''", "r.yaml:1:10: ca_file: is empty; write a path"),
        (
            "log_level: loud",
            "r.yaml:1:12: log_level: 'loud' is not a level; write trace, debug, info, notice, warning, error or critical"
        ),
        (
            "log_level: \"a\\nb\\e[1m\"",
            "r.yaml:1:12: log_level: 'a\\nb\\u{1B}[1m' is not a level; write trace, debug, info, notice, warning, error or critical"
        ),
        // No YAML
        ("listen", "r.yaml:1:1: the file has no settings; write them as key: value, such as listen: 127.0.0.1:7335"),
        ("- listen", "r.yaml:1:1: the file has no settings; write them as key: value, such as listen: 127.0.0.1:7335"),
        ("threads: 1\n\tlisten: a:1", "r.yaml:2:1: YAML does not allow a tab here; use spaces"),
        (
            "listen: a: b",
            "r.yaml:1:10: this is not YAML: mapping values are not allowed in this context; write each setting as key: value"
        ),
        (
            "threads: 1\nlisten: \"a",
            "r.yaml:2:11: this is not YAML: found unexpected end of stream while scanning a quoted scalar (line 2); write each setting as key: value"
        ),
        ("threads: *x", "r.yaml:1:10: a value that begins with * must be quoted; write it like \"*.example.org\""),
        (
            "rules:\n  - host: *.example.org",
            "r.yaml:2:12: a value that begins with * must be quoted; write it like \"*.example.org\""
        ),
        (
            "a: 1\n---\nb: 2",
            "r.yaml:2:1: this is not YAML: but found another document expected a single document in the stream (line 1); write each setting as key: value"
        ),
        (
            "threads: 1\nlisten: \u{7}",
            "r.yaml:2:9: this is not YAML: control characters are not allowed; remove what is there"
        ),
        // Its keys are there twice, but not written as they are read.
        ("\"thr\\x65ads\": 1\nthreads: 2", "r.yaml:1:1: the key threads is repeated; remove one of them"),
    ])
    func aMistakeIsNamedWithItsPlace(text: String, line: String) {
        #expect(problems(text) == [line])
    }

    @Test func allMistakesAreNamedInTheirOrder() {
        let text = """
            # Seven of them
            threads: many
            threads: 2
            colour: red
            allow: [a b, nas.local, c d]
            max_size: 1kB
            threads: 3
            """
        let places = problems(text).map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
        #expect(
            places == [
                "r.yaml:2:10: threads:", "r.yaml:3:1: threads:", "r.yaml:4:1: colour:", "r.yaml:5:9: allow:",
                "r.yaml:5:25: allow:", "r.yaml:6:11: max_size:",
                "r.yaml:7:1: threads:",
            ])
    }

    @Test func whatIsNotInUTF8IsNamedWithItsPlace() {
        let file = ConfigurationFile(path: "r.yaml", text: Array("threads: 1\n# caf".utf8) + [0xE9, 0x0A])
        #expect(
            file.problems().map(\.description) == ["r.yaml:2:6: the file is not UTF-8; save it in that encoding"])
    }

    @Test func aFileOfManyRepetitionsIsGivenUpEarly() {
        let lines = problems(String(repeating: "threads: 1\n", count: 2000))
        #expect(lines == ["r.yaml:101:1: the key threads is repeated; remove one of them"])
    }

    @Test func nestingWithoutEndIsNoYAML() {
        let lines = problems("allow: " + String(repeating: "[", count: 100_000))
        #expect(
            lines.count == 1 && lines.allSatisfy { $0.hasPrefix("r.yaml:1:") && $0.contains("this is not YAML") },
            "\(lines)")
    }

    /// Whatever the file, the answer is lines that begin with a place.
    @Test func anyBytesAreReadOrRefused() {
        var random = SplitMix64.forTest("anyBytesAreReadOrRefused")
        let words = [
            "threads", "allow", ":", " ", "\n", "  ", "- ", "[", "]", "{", "}", ",", "\"", "'", "&a ", "*a", "!!int ",
            "|", ">", "?", "#", "\t", "1", "~", "ü", "\r", "%", "@", "---",
        ]
        for _ in 1...3000 {
            let text = (0..<Int.random(in: 1...30, using: &random)).map { _ in words.randomElement(using: &random) ?? ""
            }.joined()
            for line in problems(text) {
                #expect(line.wholeMatch(of: /r\.yaml:\d+:\d+: .+/) != nil, "\(line) for \(text.debugDescription)")
            }
        }
    }
}
