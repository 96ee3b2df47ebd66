import Reelcache
import Testing

@testable import Configuration

/// `rules` and `mounts` in the configuration file: what they may say, and what is said to the one who wrote something
/// else.
@Suite struct RuleSettingTests {
    // MARK: What is read

    @Test func eachKeyOfARuleIsRead() throws {
        let rules = try settings(
            """
            rules:
              - host: [example.org, "*.example.org:8443"]
                path: /vod/*
                bypass: true
                ttl: 1d
                ignore_no_store: true
                play_stale: true
                ignore_query: [token, utm_*]
                key: https://all.example/{host}{path}
                fill: ahead 1MiB
                metered: true
                ahead_segments: 5
                prefetch_next: true
                ignore_reload: false
                headers: {Referer: https://example.org/, X-Number: 7}
                cookies: /etc/cookies.txt
                max_height: 720
                max_bitrate: 2.5M
                pin: true
                max_object: 2GB
                refresh: https://{host}/again{path}
                parents: [http://10.0.0.5:7335, http://10.0.0.6:7335]
              - {bypass: false, ttl: 0s, ignore_query: true, fill: whole}
              - ignore_query: false
            """
        ).proxy.rules
        var first = ResourceRule(hosts: ["example.org", "*.example.org:8443"], paths: ["/vod/*"])
        (first.bypass, first.ttl, first.ignoresNoStore, first.playsStale) = (true, .seconds(86400), true, true)
        (first.ignoredQuery, first.key) = (.parameters(["token", "utm_*"]), "https://all.example/{host}{path}")
        (first.fill, first.headers) = (.ahead(bytes: 1 << 20), ["Referer": "https://example.org/", "X-Number": "7"])
        (first.isMetered, first.pin, first.maxObject) = (true, true, 2_000_000_000)
        (first.aheadSegments, first.prefetchesNext, first.ignoresReload) = (5, true, false)
        (first.maxHeight, first.maxBitrate) = (720, 2_500_000)
        first.cookies = "/etc/cookies.txt"
        first.refresh = "https://{host}/again{path}"
        first.parents = ["http://10.0.0.5:7335", "http://10.0.0.6:7335"]
        var second = ResourceRule()
        (second.bypass, second.ttl, second.ignoredQuery, second.fill) = (false, .zero, .all, .whole)
        var third = ResourceRule()
        third.ignoredQuery = .nothing
        #expect(rules == [first, second, third])
    }

    @Test func aRuleMayBeUsedAgain() throws {
        let rules = try settings("rules:\n  - &base\n    host: a.example\n    pin: true\n  - *base\n").proxy.rules
        #expect(rules.count == 2 && rules.first == rules.last)
    }

    /// It is logged when it changes: values of fields may be secrets.
    @Test func aRuleIsShownOnALineWithoutWhatItsFieldsSay() throws {
        let shown = try settings(
            "rules:\n  - host: a.example\n    path: [/a, /b]\n    ttl: 90m\n    ignore_query: [a]\n    headers: {X-Key: secret}\n  - pin: true\n"
        )
        let setting = try #require(Setting["rules"])
        #expect(
            setting.texts(in: shown) == [
                "{host: a.example, path: [/a, /b], ttl: 90m, ignore_query: [a], headers: {X-Key: ...}}", "{pin: true}",
            ])
        let one = try settings("rules: [{pin: true}]")
        #expect([shown, one, Settings()].map { setting.description(in: $0) } == ["2 rules", "1 rule", "(none)"])
    }

    @Test func mountsAreAMapping() throws {
        let shown = try settings("mounts:\n  /tv/: https://O.example:443/vod/\n  /radio/: http://r.example\n")
        #expect(shown.proxy.mounts == ["/tv/": "https://o.example/vod/", "/radio/": "http://r.example/"])
        #expect(
            try #require(Setting["mounts"]).description(in: shown)
                == "/radio/=http://r.example/, /tv/=https://o.example/vod/")
        #expect(try settings("mounts: {}").proxy.mounts == [:])
    }

    @Test func mountMaySayForWhomItStores() throws {
        let shown = try settings(
            "mounts:\n  /tv/: {origin: https://o.example/vod/, cache: shared}\n  /b/: {origin: https://b.example}\n"
                + "  /c/: {cache: private, origin: https://c.example/}\n")
        #expect(
            shown.proxy.mounts == [
                "/tv/": "https://o.example/vod/", "/b/": "https://b.example/", "/c/": "https://c.example/",
            ])
        #expect(shown.proxy.mountCaches == ["/tv/": .shared, "/c/": .private])
        #expect(
            try #require(Setting["mounts"]).texts(in: shown) == [
                "/b/=https://b.example/", "/c/=https://c.example/ private", "/tv/=https://o.example/vod/ shared",
            ])
    }

    @Test(arguments: [
        (
            "{cache: shared}",
            "does not name the origin to mount; write /tv/: {origin: https://origin.example/vod/, cache: shared}"
        ),
        ("{origin: https://o.example/, cache: both}", "'both' is neither shared nor private; write one of them"),
        ("{origin: https://o.example/, kind: shared}", "is not a key of a mount; the keys are origin and cache"),
        ("{origin: [a], cache: shared}", "takes one value, not a list; write origin: https://origin.example/vod/"),
        (
            "{origin: 'https://o.example/a', cache: shared}",
            "'https://o.example/a' cannot be mounted: write https://o.example/a/"
        ),
    ])
    func mountThatCannotBeReadIsToldOf(mount: String, message: String) {
        let problems = problems("mounts: {/tv/: \(mount)}")
        #expect(problems.count == 1 && problems[0].hasSuffix(": " + message), "\(problems)")
    }

    @Test(arguments: [
        ("cache: mine", "cache: 'mine' is neither shared nor private; write one of them"),
        ("default_ttl: soon", "default_ttl: 'soon' is not a length of time; write it like 5s or 2m"),
        ("default_ttl: 5000d", "default_ttl: '5000d' is out of range; write a time from 0s to 3650d"),
        (
            "targeted_fields: [Surrogate-Control]",
            "targeted_fields: 'Surrogate-Control' is not a targeted field: write a name that ends with -Cache-Control"
        ),
    ])
    func settingOfTheCacheThatCannotBeReadIsToldOf(text: String, message: String) {
        let problems = problems(text)
        #expect(problems.count == 1 && problems[0].hasSuffix(": " + message), "\(problems)")
    }

    // MARK: Mistakes

    private static let effects =
        "bypass, ttl, ignore_no_store, play_stale, ignore_query, key, fill, metered, ahead_segments, prefetch_next, ignore_reload, headers, cookies, max_height, max_bitrate, pin, store_pages, max_object, heuristic, refresh, parents"

    @Test(arguments: [
        // The list
        (
            "rules:",
            "r.yaml:1:1: rules: has no value; write rules: [{host: example.org, ttl: 1d}, ...], or remove the line"
        ),
        ("rules: none", "r.yaml:1:8: rules: takes a list; write rules: [{host: example.org, ttl: 1d}, ...]"),
        (
            "rules:\n  host: a",
            "r.yaml:2:3: rules: takes no keys of its own; write rules: [{host: example.org, ttl: 1d}, ...]"
        ),
        (
            "rules: [a]",
            "r.yaml:1:9: rules[0]: takes keys of its own; write - host: example.org, and below it what to do"
        ),
        (
            "rules:\n  -\n  - pin: true",
            "r.yaml:2:4: rules[0]: has no value; write - host: example.org, and below it what to do, or remove the line"
        ),
        ("rules:\n  - host: a", "r.yaml:2:5: rules[0]: has no effect; add one of \(effects), or remove the rule"),
        ("rules: [{}]", "r.yaml:1:9: rules[0]: has no effect; add one of \(effects), or remove the rule"),
        // Keys
        ("rules:\n  - pin: true\n    hots: a", "r.yaml:3:5: rules[0].hots: is not a key of a rule; did you mean host?"),
        (
            "rules:\n  - pin: true\n    Ignore-Query: true",
            "r.yaml:3:5: rules[0].Ignore-Query: is not a key of a rule; did you mean ignore_query?"
        ),
        (
            "rules:\n  - pin: true\n    colour: red",
            "r.yaml:3:5: rules[0].colour: is not a key of a rule; the keys are host, path, \(effects)"
        ),
        (
            "rules:\n  - pin: true\n    pin: false",
            "r.yaml:3:5: rules[0].pin: is repeated, first on line 2; remove one of them"
        ),
        (
            "rules:\n  - pin: true\n  - ttl: 1d\n    ttl: 2d",
            "r.yaml:4:5: rules[1].ttl: is repeated, first on line 3; remove one of them"
        ),
        ("rules:\n  - [pin]: true", "r.yaml:2:5: a key must be a plain word; write key: value"),
        // Values
        (
            "rules:\n  - pin: true\n  - host: a\n    ttl: soon",
            "r.yaml:4:10: rules[1].ttl: 'soon' is not a length of time; write it like 12h or 30d"
        ),
        ("rules:\n  - ttl:", "r.yaml:2:5: rules[0].ttl: has no value; write ttl: 1d, or remove the line"),
        ("rules:\n  - ttl: [1d]", "r.yaml:2:10: rules[0].ttl: takes one value, not a list; write ttl: 1d"),
        ("rules:\n  - bypass: yes", "r.yaml:2:13: rules[0].bypass: 'yes' is neither true nor false; write one of them"),
        ("rules:\n  - pin: {a: b}", "r.yaml:2:10: rules[0].pin: takes no keys of its own; write pin: true|false"),
        (
            "rules:\n  - fill: much",
            "r.yaml:2:11: rules[0].fill: 'much' is not a fill policy; write read, ahead, ahead 32MiB, end or whole"
        ),
        (
            "rules:\n  - max_object: big",
            "r.yaml:2:17: rules[0].max_object: 'big' is not a size; write it like 20GB or 500MiB"
        ),
        (
            "rules:\n  - pin: true\n    host: a b",
            "r.yaml:3:11: rules[0].host: 'a b' is not a host; write it like example.org, *.example.org or nas.local:8080"
        ),
        (
            "rules:\n  - pin: true\n    path: [/a, b]",
            "r.yaml:3:16: rules[0].path: 'b' is not a path pattern; begin it with / or *, such as /vod/* or *.mp4"
        ),
        (
            "rules:\n  - pin: true\n    host: []",
            "r.yaml:3:11: rules[0].host: is an empty list; write host: example.org, or remove it to match all"
        ),
        (
            "rules:\n  - pin: true\n    host: {a: b}",
            "r.yaml:3:11: rules[0].host: takes no keys of its own; write host: example.org"
        ),
        (
            "rules:\n  - pin: true\n    path: [[/a]]",
            "r.yaml:3:12: rules[0].path: each entry of the list takes one value; write it as - VALUE"
        ),
        (
            "rules:\n  - ignore_query: token",
            "r.yaml:2:19: rules[0].ignore_query: is neither true nor a list of parameters; write ignore_query: true or ignore_query: [token, utm_*]"
        ),
        (
            "rules:\n  - ignore_query: [a=b]",
            "r.yaml:2:20: rules[0].ignore_query: 'a=b' is not a parameter name; write it like token or utm_*"
        ),
        (
            "rules:\n  - key: film",
            "r.yaml:2:10: rules[0].key: 'film' is not a key; begin it with http://, https:// or {scheme}://"
        ),
        // Fields
        (
            "rules:\n  - headers: secret",
            "r.yaml:2:14: rules[0].headers: takes keys of its own; write headers: {Referer: https://example.org/}"
        ),
        (
            "rules:\n  - headers: {Host: a}",
            "r.yaml:2:15: rules[0].headers.Host: the proxy writes Host itself; remove it"
        ),
        (
            "rules:\n  - headers:\n      X-Key:",
            "r.yaml:3:7: rules[0].headers.X-Key: has no value; write X-Key: VALUE, or remove the line"
        ),
        (
            "rules:\n  - headers: {A: b, a: c}",
            "r.yaml:2:21: rules[0].headers.a: is repeated with other capitals; remove one of them"
        ),
        (
            "rules:\n  - host: h\n    headers: {A: b, A: c}",
            "r.yaml:3:21: rules[0].headers.A: is repeated, first on line 3; remove one of them"
        ),
        // What goes together
        (
            "rules:\n  - ttl: 1d\n    headers: {A: b}",
            "r.yaml:3:5: rules[0].headers: every host would get these fields, which may be secrets; name the hosts that may get them, such as host: api.example or host: \"*.api.example\""
        ),
        (
            "rules:\n  - host: '*'\n    key: https://cdn.example{path}",
            "r.yaml:3:5: rules[0].key: anybody can run a host like '*', and so choose what others get; name the hosts that serve the same, "
                + "such as host: api.example or host: \"*.api.example\", or put {host} into the key"
        ),
        // Mounts
        (
            "mounts: /tv/",
            "r.yaml:1:9: mounts: takes keys of its own; write mounts: {/tv/: https://origin.example/vod/}"
        ),
        (
            "mounts: [/tv/=https://o/]",
            "r.yaml:1:9: mounts: takes keys of its own; write mounts: {/tv/: https://origin.example/vod/}"
        ),
        (
            "mounts:\n  /tv/:",
            "r.yaml:2:3: mounts./tv/: has no value; write /tv/: https://origin.example/vod/, or remove the line"
        ),
        (
            "mounts:\n  /tv: https://o/",
            "r.yaml:2:3: mounts: '/tv' is not a mount path: begin and end it with /, such as /tv/"
        ),
        (
            "mounts:\n  /tv/: https://o/vod",
            "r.yaml:2:3: mounts: 'https://o/vod' cannot be mounted: write https://o/vod/"
        ),
        ("mounts:\n  /tv/: https://o/?a=/", "r.yaml:2:3: mounts: 'https://o/?a=/' cannot be mounted: remove the query"),
        (
            "mounts:\n  /stats/: https://o/",
            "r.yaml:2:3: mounts: '/stats/' is reserved for the proxy: mount at another path, such as /tv/"
        ),
        (
            "mounts:\n  /tv/: https://o/\n  /tv/: https://p/",
            "r.yaml:3:3: mounts./tv/: is repeated, first on line 2; remove one of them"
        ),
        // Bandwidth
        (
            "schedule: 01:00-06:30",
            "r.yaml:1:11: schedule: takes keys of its own; write schedule: {\"01:00-06:30\": unlimited, else: 500kB}"
        ),
        (
            "schedule: [01:00-06:30=1MB]",
            "r.yaml:1:11: schedule: takes keys of its own; write schedule: {\"01:00-06:30\": unlimited, else: 500kB}"
        ),
        (
            "schedule:",
            "r.yaml:1:1: schedule: has no value; write schedule: {\"01:00-06:30\": unlimited, else: 500kB}, or remove the line"
        ),
        (
            "schedule:\n  01:00-06:30: 1MB\n  nightly: 2MB",
            "r.yaml:3:3: schedule: 'nightly' is not a window of time; write it like 01:00-06:30, Sat,Sun 08:00-12:00 or Mon-Fri"
        ),
        (
            "schedule:\n  else: none",
            "r.yaml:2:3: schedule: 'none' is not a rate; write unlimited, off, or bytes per second like 500kB"
        ),
        ("schedule:\n  else:", "r.yaml:2:3: schedule.else: has no value; write else: 500kB, or remove the line"),
        (
            "schedule:\n  else: [1MB]",
            "r.yaml:2:9: schedule.else: takes one value, not a list; write else: 500kB"
        ),
        (
            "schedule:\n  else: 1MB\n  Else: 2MB", "r.yaml:2:3: schedule: else is written twice; remove one of them"
        ),
        (
            "schedule:\n  01:00-06:30: 1MB\n  01:00-06:30: 2MB",
            "r.yaml:3:3: schedule.01:00-06:30: is repeated, first on line 2; remove one of them"
        ),
        ("download_cap: 2GB/day", ""), ("download_cap: []", ""),
        (
            "download_cap: 2GB",
            "r.yaml:1:15: download_cap: '2GB' is not a cap; write it like 2GB/day or 40GB/month"
        ),
        (
            "download_cap: [2GB/day, 3GB/day]",
            "r.yaml:1:15: download_cap: there are two caps for each day; remove one of them"
        ),
        (
            "download_cap: {day: 2GB}",
            "r.yaml:1:15: download_cap: takes no keys of its own; write download_cap: 2GB/day, or download_cap: [2GB/day, 40GB/month]"
        ),
        // The rest
        ("offline: yes", "r.yaml:1:10: offline: 'yes' is neither true nor false; write one of them"),
        ("fill: ahead", ""),
        ("fill: 32MiB", "r.yaml:1:7: fill: '32MiB' is not a fill policy; write read, ahead, ahead 32MiB, end or whole"),
        ("linger: 11m", "r.yaml:1:9: linger: '11m' is out of range; write a time from 0s to 10m"),
        ("linger: 5", "r.yaml:1:9: linger: '5' is not a length of time; write it like 5s or 2m"),
        ("connect_timeout: 0s", "r.yaml:1:18: connect_timeout: '0s' is out of range; write a time from 1s to 10m"),
        ("stall_timeout: 2h", "r.yaml:1:16: stall_timeout: '2h' is out of range; write a time from 1s to 1h"),
    ])
    func aMistakeIsNamedWithItsPlace(text: String, line: String) {
        #expect(problems(text) == (line.isEmpty ? [] : [line]))
    }

    @Test func allMistakesOfAllRulesAreNamedInTheirOrder() {
        let text = """
            rules:
              - host: [a b, ok.example, c d]
                ttl: soon
                colour: red
              - headers: {Host: x, Range: y, Referer: z}
                pin: maybe
            """
        let places = problems(text).map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
        #expect(
            places == [
                "r.yaml:2:12: rules[0].host:", "r.yaml:2:29: rules[0].host:", "r.yaml:3:10: rules[0].ttl:",
                "r.yaml:4:5: rules[0].colour:",
                "r.yaml:5:15: rules[1].headers.Host:", "r.yaml:5:24: rules[1].headers.Range:",
                "r.yaml:6:10: rules[1].pin:",
            ])
    }

    @Test func oneBadRuleLeavesAllAsTheyWere() {
        var settings = Settings()
        let file = ConfigurationFile(path: "r.yaml", text: Array("rules:\n  - pin: true\n  - ttl: soon\n".utf8))
        #expect(file.apply(to: &settings).count == 1 && settings.proxy.rules == [] && settings.origins.isEmpty)
    }

    /// Six lines of aliases that mean a million values.
    @Test func aliasesOfAliasesAreGivenUpEarly() {
        let lines = (1...6).map {
            "a\($0): &a\($0) [\(Array(repeating: "*a\($0 - 1)", count: 10).joined(separator: ", "))]"
        }
        let problems = problems("a0: &a0 x\n" + lines.joined(separator: "\n"))
        #expect(
            problems.count == 1 && problems.allSatisfy { $0.hasSuffix("the file has too many values; shorten it") },
            "\(problems.prefix(3))")
    }
}
