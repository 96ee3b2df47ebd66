import HTTPModel
import TestSupport
import Testing

@testable import CachePolicy

/// Which rule matches, what it is found by, and what is said where a part of a rule cannot work.
@Suite struct RuleTests {
    private static func url(_ text: String) -> OriginURL {
        do { return try OriginURL(url: text) } catch { preconditionFailure("\(text): \(error)") }
    }

    // MARK: Cookie files

    @Test func cookieFileHasCookiesAndComments() throws {
        let text =
            "# Netscape HTTP Cookie File\n\n.a.example\tTRUE\t/\tFALSE\t0\tn\tv\r\n \n"
            + "#HttpOnly_b.example\tFALSE\t/p\tTRUE\t1\tm\t\n"
        #expect(
            try Rule.cookies(in: text) == [
                ".a.example\tTRUE\t/\tFALSE\t0\tn\tv", "#HttpOnly_b.example\tFALSE\t/p\tTRUE\t1\tm\t",
            ])
    }

    @Test(arguments: [
        ("", "has no cookies"), ("# Netscape\n", "has no cookies"), ("[{\"name\": 1}]", "line 1 is no cookie"),
        ("# a\na.example\tTRUE\t/\tFALSE\t0\tn\n", "line 2 is no cookie"),
        ("a\0b\tTRUE\t/\tFALSE\t0\tn\tv", "line 1 is no cookie"),
    ])
    func textThatIsNoCookieFileIsRefused(text: String, message: String) {
        let error = #expect(throws: RuleError.self) { try Rule.cookies(in: text) }
        #expect(error?.reason.hasPrefix(message) == true)
    }

    // MARK: Globs

    @Test(arguments: [
        ("", "", true), ("", "a", false), ("a", "a", true), ("a", "A", false), ("a", "ab", false), ("*", "", true),
        ("*", "anything", true),
        ("a*", "a", true), ("a*", "ab", true), ("a*", "ba", false), ("*a", "a", true), ("*a", "ba", true),
        ("*a", "ab", false),
        ("a*a", "a", false), ("a*a", "aa", true), ("a*a", "aba", true), ("a*b*c", "abc", true),
        ("a*b*c", "axbyc", true), ("a*b*c", "acb", false),
        ("a*bc*c", "abc", false), ("a*bc*c", "abcc", true), ("**", "x", true), ("a**b", "ab", true),
        ("*ab*", "aab", true), ("*aab*", "aaab", true),
        ("*.mp4", "/a/b.mp4", true), ("/a/*.mp4", "/a/b/c.mp4", true),
    ])
    func aStarIsAnyRun(pattern: String, text: String, matches: Bool) {
        #expect(Glob(pattern).matches(Array(text.utf8)) == matches)
    }

    /// Against a matcher that tries everything.
    @Test func globsMatchAsTheSlowWayDoes() {
        func matches(_ pattern: Substring, _ text: Substring) -> Bool {
            guard let first = pattern.first else { return text.isEmpty }
            if first == "*" {
                return matches(pattern.dropFirst(), text) || !text.isEmpty && matches(pattern, text.dropFirst())
            }
            return text.first == first && matches(pattern.dropFirst(), text.dropFirst())
        }
        var random = SplitMix64.forTest("globsMatchAsTheSlowWayDoes")
        for _ in 1...3000 {
            let pattern = String(
                (0..<Int.random(in: 0...7, using: &random)).map { _ in "ab*".randomElement(using: &random) ?? "a" })
            let text = String(
                (0..<Int.random(in: 0...9, using: &random)).map { _ in "ab".randomElement(using: &random) ?? "a" })
            #expect(
                Glob(pattern).matches(Array(text.utf8)) == matches(pattern[...], text[...]), "\(pattern) on \(text)")
        }
    }

    /// It would not end, were anything tried again.
    @Test func manyStarsCostNoMore() {
        let pattern = String(repeating: "a*", count: 1000) + "b"
        #expect(!Glob(pattern).matches([UInt8](repeating: UInt8(ascii: "a"), count: 20_000)))
    }

    // MARK: Hosts and paths

    @Test(arguments: [
        ("example.org", "https://example.org/", true), ("Example.ORG", "https://example.org/", true),
        ("example.org", "https://EXAMPLE.org./", true),
        ("example.org.", "https://example.org/", true), ("example.org", "https://www.example.org/", false),
        ("*.example.org", "https://www.example.org/", true),
        ("*.example.org", "https://example.org/", false), ("*example.org", "https://badexample.org/", true),
        ("*", "http://10.0.0.1:81/", true),
        ("cdn*.example.*", "https://cdn7.example.net/", true), ("example.org", "https://example.org:8443/", true),
        ("example.org:443", "https://example.org/", true), ("example.org:443", "http://example.org/", false),
        ("example.org:80", "http://example.org/", true),
        ("nas.local:8080", "http://nas.local:8080/", true), ("nas.local:8080", "http://nas.local/", false),
        ("*:8080", "http://nas.local:8080/", true),
        ("b\u{FC}ro.local", "http://xn--bro-hoa.local/", true),
        ("*.B\u{FC}ro.local", "http://a.b\u{FC}ro.local/", true),
        ("nas.local:*", "http://nas.local:8080/", true),
        // With a scheme it is an origin.
        ("http://nas.local", "http://nas.local/", true), ("http://nas.local", "https://nas.local/", false),
        ("http://nas.local", "http://nas.local:8080/", false),
        ("HTTPS://Api.example:8443", "https://api.example:8443/", true),
        ("https://api.example:8443", "http://api.example:8443/", false),
        ("https://api.example:443", "https://api.example/", true), ("http://*.local:*", "http://nas.local:8080/", true),
        ("http://[::1]", "http://[::1]/", true),
        ("[::1]", "http://[::1]:81/", true), ("[::1]:81", "http://[::1]:81/", true),
        ("[::1]:82", "http://[::1]:81/", false), ("[fd00:*]", "http://[fd00::1]/", true),
    ])
    func hostsMatch(pattern: String, url: String, matches: Bool) throws {
        #expect(try HostPattern(pattern).matches(Self.url(url)) == matches)
    }

    @Test(arguments: [
        ("", "'' is not a host; write it like example.org, *.example.org or nas.local:8080"),
        (
            "b\u{FC}*.local",
            "'b\u{FC}*.local' is not a host; write it like example.org, *.example.org or nas.local:8080"
        ),
        (".", "'.' is not a host; write it like example.org, *.example.org or nas.local:8080"),
        (
            "ftp://example.org",
            "'ftp://example.org' has a scheme that is not supported; write http://, https:// or the host alone"
        ),
        (
            "https://example.org/",
            "'https://example.org/' is not a host; write it like example.org, *.example.org or nas.local:8080"
        ),
        ("https://", "'https://' is not a host; write it like example.org, *.example.org or nas.local:8080"),
        (
            "http://nas.local:x",
            "'http://nas.local:x' has no port from 1 to 65535 after the colon; write it like nas.local:8080"
        ),
        (
            "example.org/vod",
            "'example.org/vod' is not a host; write it like example.org, *.example.org or nas.local:8080"
        ),
        ("a b", "'a b' is not a host; write it like example.org, *.example.org or nas.local:8080"),
        ("☃.example", "'☃.example' is not a host; write it like example.org, *.example.org or nas.local:8080"),
        ("nas.local:", "'nas.local:' has no port from 1 to 65535 after the colon; write it like nas.local:8080"),
        ("nas.local:0", "'nas.local:0' has no port from 1 to 65535 after the colon; write it like nas.local:8080"),
        (
            "nas.local:65536",
            "'nas.local:65536' has no port from 1 to 65535 after the colon; write it like nas.local:8080"
        ),
        ("nas.local:80*", "'nas.local:80*' has no port from 1 to 65535 after the colon; write it like nas.local:8080"),
        ("::1", "'::1' is not a host; write an IPv6 address in brackets, such as [::1]"),
        ("[::1]x", "'[::1]x' is not a host; write it like example.org, *.example.org or nas.local:8080"),
        ("[::1", "'[::1' is not a host; write it like example.org, *.example.org or nas.local:8080"),
    ])
    func whatIsNoHostIsNamed(text: String, reason: String) {
        #expect(throws: RuleError(reason)) { try HostPattern(text) }
    }

    @Test(arguments: [
        ("/vod/*", "https://h/vod/a/b.mp4", true), ("/vod/*", "https://h/vod", false),
        ("/vod/*", "https://h/VOD/a", false), ("/", "https://h", true),
        ("*.mp4", "https://h/a.mp4?token=1", true), ("*token*", "https://h/a.mp4?token=1", false),
        ("*", "https://h/?", true),
        ("/a%7eb", "https://h/a~b", true), ("/a~b", "https://h/a%7Eb", true),
        ("/b%c3%bcro/*", "https://h/büro/x", true), ("/büro/*", "https://h/b%C3%BCro/x", true),
    ])
    func pathsMatchInAnySpelling(pattern: String, url: String, matches: Bool) throws {
        #expect(try Glob(path: pattern).matches(Self.url(url).path) == matches)
    }

    @Test(arguments: [
        ("", "'' is not a path pattern; begin it with / or *, such as /vod/* or *.mp4"),
        ("vod/*", "'vod/*' is not a path pattern; begin it with / or *, such as /vod/* or *.mp4"),
        ("/a?b=*", "'/a?b=*' is not a path pattern; remove the ? and all that follows, as a path ends there"),
        ("/a#b", "'/a#b' is not a path pattern; remove the # and all that follows, as a path ends there"),
        ("/a b", "'/a b' contains a space or a control character; percent-encode it, a space as %20"),
    ])
    func whatIsNoPathIsNamed(text: String, reason: String) {
        #expect(throws: RuleError(reason)) { try Glob(path: text) }
    }

    // MARK: Queries and keys

    private func key(_ text: String, template: String? = nil, ignoring: IgnoredQuery? = nil) throws -> String {
        var effects = RuleEffects()
        effects.key = try template.map { text throws(RuleError) in try KeyTemplate(text) }
        effects.ignoredQuery = ignoring
        return effects.key(of: Self.url(text)).text
    }

    private func parameters(_ names: String...) throws -> IgnoredQuery {
        .parameters(try names.map(Glob.init(parameter:)))
    }

    @Test func parametersThatAreIgnoredAreNotInTheKey() throws {
        for (url, wanted) in [
            ("https://h/a", "https://h/a"), ("https://h/a?", "https://h/a?"), ("https://h/a?b=1", "https://h/a?b=1"),
            ("https://h/a?token=1", "https://h/a"),
            ("https://h/a?token=1&b=2", "https://h/a?b=2"), ("https://h/a?b=2&token", "https://h/a?b=2"),
            ("https://h/a?b=2&&token=&c", "https://h/a?b=2&&c"),
            ("https://h/a?utm_source=x&Token=1", "https://h/a?Token=1"), ("https://h/a?%74oken=1", "https://h/a"),
            ("https://h/a?b=token", "https://h/a?b=token"),
            ("https://h:81/%7ea?token=1&b=%7e", "https://h:81/~a?b=~"),
            ("https://h/token?x=?token=1", "https://h/token?x=?token=1"),
        ] {
            #expect(try key(url, ignoring: parameters("token", "utm_*")) == wanted, "\(url)")
        }
        #expect(try key("https://h/a?b=1", ignoring: .all) == "https://h/a")
        // CTA-5004: what a player reports of itself, without a rule.
        for (url, wanted) in [
            ("?CMCD=br%3D1", ""), ("?a=1&CMCD=br%3D1&b", "?a=1&b"), ("?cmcd=1", "?cmcd=1"), ("?xCMCD=1", "?xCMCD=1"),
        ] {
            #expect(try key("https://h/a" + url) == "https://h/a" + wanted)
            #expect(Self.url("https://h/a" + url).withoutReport.absolute == "https://h/a" + wanted)
            #expect(try key("https://h/a" + url, template: "https://k{path}{query}") == "https://k/a" + wanted)
        }
        // Each asks for another text.
        #expect(
            try key("https://h/a?b=1&_HLS_msn=3&_HLS_part=1", ignoring: .all) == "https://h/a?_HLS_msn=3&_HLS_part=1")
        #expect(try key("https://h/a?b=1&_HLS_msn=3", ignoring: parameters("*")) == "https://h/a?_HLS_msn=3")
        #expect(try key("https://h/a?b=1", ignoring: .nothing) == "https://h/a?b=1")
    }

    /// It would take the place of the stream that it was made of.
    @Test func recordingHasAKeyOfItsOwn() throws {
        let url = "https://h/live.m3u8?reelcache-recording=20261123T052147Z"
        #expect(try key(url, ignoring: .all) == url)
        #expect(try key(url, ignoring: parameters("*")) == url)
        #expect(try key(url, template: "https://cdn.example{path}") == url)
        // What a rule leaves of it is its key, as it was when it was recorded.
        let kept = "https://h/live.m3u8?reelcache-recording=1"
        #expect(try key("https://h/live.m3u8?token=a&reelcache-recording=1", ignoring: parameters("token")) == kept)
        #expect(try key(kept, template: "https://c{path}{query}") == kept.replacing("//h/", with: "//c/"))
    }

    @Test(arguments: ["", "a=b", "a&b", "a b", "?a", "a#"]) func whatIsNoParameterIsNamed(name: String) {
        #expect(throws: RuleError("'\(name)' is not a parameter name; write it like token or utm_*")) {
            try Glob(parameter: name)
        }
    }

    @Test(arguments: [
        ("{scheme}://{host}{path}{query}", "https://h:81/a?b=1", "https://h:81/a?b=1"),
        ("https://cdn.example{path}", "http://h:81/a?b=1", "https://cdn.example/a"),
        ("https://cdn.example/{path}", "http://h/a/b", "https://cdn.example/a/b"),
        ("https://cdn.example{path}?{query}", "http://h/a", "https://cdn.example/a"),
        ("https://cdn.example{path}?{query}", "http://h/a?b=1", "https://cdn.example/a?b=1"),
        ("HTTPS://All.example/{scheme}/{host}{path}", "http://[::1]:81/a", "https://all.example/http/[::1]:81/a"),
        ("https://one.example/film", "https://h/a?b=1", "https://one.example/film"),
        ("https://one.example", "https://h/a", "https://one.example/"),
        ("https://cdn.example:443{path}", "https://h/%7ea", "https://cdn.example/~a"),
        ("https://cdn.example{query}", "https://h/a?b", "https://cdn.example/?b"),
    ])
    func aKeyIsMadeOfPartsOfTheURL(template: String, url: String, wanted: String) throws {
        #expect(try key(url, template: template) == wanted)
    }

    @Test func theQueryOfAKeyIsWhatIsNotIgnored() throws {
        #expect(
            try key("https://h/a?b=1&token=2", template: "https://c{path}{query}", ignoring: parameters("token"))
                == "https://c/a?b=1")
    }

    private static let noHost =
        "is not a key for every host; write {host} as the whole host or in the path, such as https://all.example/{host}{path}"

    private static let ambiguous =
        "could give two sites the same key; write {host} and {scheme} between slashes, before {path} and {query}, such as "
        + "https://all.example/{host}{path}"

    @Test(arguments: [
        ("", "'' is not a key; begin it with http://, https:// or {scheme}://"),
        ("film", "'film' is not a key; begin it with http://, https:// or {scheme}://"),
        ("ftp://h{path}", "'ftp://h{path}' is not a key; begin it with http://, https:// or {scheme}://"),
        ("{host}{path}", "'{host}{path}' is not a key; begin it with http://, https:// or {scheme}://"),
        ("{host}://{scheme}", "'{host}://{scheme}' is not a key; begin it with http://, https:// or {scheme}://"),
        ("https://{path}", "'https://{path}' is not a key: the URL has no host: write https://host/path"),
        ("https://a.{host}{path}", "'https://a.{host}{path}' \(noHost)"),
        ("https://{host}.a{path}", "'https://{host}.a{path}' \(noHost)"),
        ("https://{host}:{path}", "'https://{host}:{path}' \(noHost)"),
        ("https://{scheme}{path}", "'https://{scheme}{path}' \(noHost)"),
        ("https://a{path}/{host}", "'https://a{path}/{host}' \(ambiguous)"),
        ("https://a/{query}/{host}", "'https://a/{query}/{host}' \(ambiguous)"),
        ("https://a/x{host}{path}", "'https://a/x{host}{path}' \(ambiguous)"),
        ("https://a/{host}x{path}", "'https://a/{host}x{path}' \(ambiguous)"),
        ("https://a/{scheme}{host}{path}", "'https://a/{scheme}{host}{path}' \(ambiguous)"),
        ("https://a?{host}", "'https://a?{host}' \(ambiguous)"),
        ("https://a/{host}{path}/{host}", "'https://a/{host}{path}/{host}' \(ambiguous)"),
        ("https://a{path}{scheme}", "'https://a{path}{scheme}' \(ambiguous)"),
        ("{scheme}://a/{scheme}x", "'{scheme}://a/{scheme}x' \(ambiguous)"),
        ("https://h{pat}", "there is no {pat}; the placeholders are {scheme}, {host}, {path} and {query}"),
        (
            "https://h{path",
            "'https://h{path' has a { without a }; the placeholders are {scheme}, {host}, {path} and {query}"
        ),
        (
            "https://h/path}",
            "'https://h/path}' has a } without a {; the placeholders are {scheme}, {host}, {path} and {query}"
        ),
        ("https://h{path}#x", "'https://h{path}#x' is not a key; remove the #, as a key has no fragment"),
        (
            "https://h{path} x",
            "'https://h{path} x' is not a key: the URL contains a space or a control character: percent-encode it, a space as %20"
        ),
        ("https://h:x{path}", "'https://h:x{path}' is not a key: the port x is not a number from 1 to 65535"),
    ])
    func whatMakesNoKeyIsNamed(text: String, reason: String) {
        #expect(throws: RuleError(reason)) { try KeyTemplate(text) }
    }

    /// So people can name what they see in a list.
    @Test func aKeyIsAURLWhateverItIsMadeOf() throws {
        let templates = [
            "{scheme}://{host}{path}{query}", "http://all.example/{scheme}/{host}{path}{query}",
            "https://{host}/x{query}", "https://c.example/x/{host}",
        ]
        for template in templates {
            for url in ["https://[fd00::1]:81/a/%zz?b=%", "http://h", "http://a!b$c/ü?ä=/?", "https://h:80//..//?&&"] {
                let made = try key(url, template: template)
                #expect(try OriginURL(url: made).cacheKey.text == made, "\(template) on \(url)")
            }
        }
    }

    // MARK: What reaches which site

    private func rule(
        hosts: [String], headers: [String: String]? = nil, key: String? = nil, ttl: Duration? = nil
    ) throws -> Rule {
        var rule = ResourceRule(hosts: hosts)
        (rule.headers, rule.key, rule.ttl) = (headers, key, ttl)
        return try Rule(rule)
    }

    private static let secret = ["X-Key": "secret"]

    private static func fields(_ value: String) -> HeaderFields { HeaderFields([.init(name: "X-Key", value: value)]) }

    /// What a rule sends may be a secret: without a scheme it goes over https, and to the port that is named or https's
    /// own.
    @Test(arguments: [
        ("api.example", "https://api.example/", true), ("api.example", "http://api.example/", false),
        ("api.example", "https://api.example:8443/", false),
        ("api.example", "http://api.example:443/", false), ("api.example:443", "https://api.example/", true),
        ("api.example:443", "http://api.example:443/", false),
        ("api.example:8443", "https://api.example:8443/", true),
        ("api.example:8443", "http://api.example:8443/", false), ("api.example:8443", "https://api.example/", false),
        ("*.api.example", "https://a.api.example/", true), ("*.api.example", "http://a.api.example/", false),
        ("http://nas.local", "http://nas.local/", true), ("http://nas.local", "http://nas.local:8080/", false),
        ("http://nas.local", "https://nas.local/", false),
        ("http://nas.local:8080", "http://nas.local:8080/", true),
        ("http://nas.local:*", "http://nas.local:8080/", true), ("api.example:*", "https://api.example:81/", true),
        ("api.example:*", "http://api.example:81/", false),
    ])
    func fieldsGoToThoseWhoAreEntrusted(host: String, url: String, isEntrusted: Bool) throws {
        var policy = ProxyPolicy()
        // What another host of the list may have does not go to this one.
        policy.rules = [
            try rule(hosts: ["other.example", host], headers: Self.secret),
            try rule(hosts: ["*.example", "*.local"], key: "{scheme}://{host}/"),
        ]
        let resolved = policy.resolve(Self.url(url))
        #expect(resolved.resolvedRule.headers == (isEntrusted ? Self.fields("secret") : HeaderFields()))
        #expect(resolved.key.text == Self.url(url).scheme.rawValue + "://" + Self.url(url).authority + "/")
    }

    /// The rest of the rule is for all that match.
    @Test func whereFieldsDoNotGoTheRestStillHolds() throws {
        var policy = ProxyPolicy()
        policy.rules = [
            try rule(hosts: ["api.example"], headers: Self.secret, ttl: .seconds(60)),
            try rule(hosts: ["http://api.example"], headers: ["X-Key": "public"]),
        ]
        let resolved = policy.resolve(Self.url("http://api.example/a"))
        #expect(resolved.resolvedRule.ttl == 60 && resolved.resolvedRule.headers == Self.fields("public"))
    }

    private static let instead = "such as host: api.example or host: \"*.api.example\""

    @Test(arguments: [
        "*", "**", "*:8443", "https://*", "example.*", "192.168.1.*", "*example.org", "*.", "[*]", "https://[*:1]",
    ])
    func whatAnybodyMayHaveIsNoHostForSecretsOrCommonKeys(host: String) throws {
        #expect(
            throws: RuleError(
                "anybody can run a host like '\(host)' and get these fields, which may be secrets; name the hosts that may get them, \(Self.instead)",
                key: "headers")
        ) {
            try rule(hosts: ["a.example", host], headers: Self.secret)
        }
        #expect(
            throws: RuleError(
                "anybody can run a host like '\(host)', and so choose what others get; name the hosts that serve the same, \(Self.instead), or put {host} into the key",
                key: "key")
        ) { try rule(hosts: ["a.example", host], key: "https://cdn.example{path}") }
        _ = try rule(hosts: [host], key: "https://all.example/{host}{path}")
        _ = try rule(hosts: [host], headers: [:])
    }

    @Test func aRuleForEveryHostHasNoSecretsAndNoCommonKey() throws {
        #expect(
            throws: RuleError(
                "every host would get these fields, which may be secrets; name the hosts that may get them, \(Self.instead)",
                key: "headers")
        ) {
            try rule(hosts: [], headers: Self.secret)
        }
        #expect(
            throws: RuleError(
                "this is for all hosts: anybody can choose what others get; name the hosts that serve the same, \(Self.instead), or put {host} into the key",
                key: "key")
        ) { try rule(hosts: [], key: "{scheme}://cdn.example{path}") }
        _ = try rule(hosts: [], key: "https://all.example/{host}{path}")
        _ = try rule(hosts: [])
    }

    @Test(arguments: [
        "a.example", "*.a.example", "cdn*.a.example", "*.a.example:8443", "http://*.local:*", "[fd00:*]", "192.168.1.7",
    ])
    func aDomainOfSomebodysIsEnough(host: String) throws {
        _ = try rule(hosts: [host], headers: Self.secret, key: "https://cdn.example{path}")
    }

    /// Whoever sits on the way of http must not put anything where https is looked for.
    @Test(arguments: [
        ("https://cdn.example{path}", "https://cdn.example/a", "http://a.example/a"),
        ("http://cdn.example{path}", "https://a.example/a", "http://cdn.example/a"),
        ("HTTPS://cdn.example{path}", "https://cdn.example/a", "http://a.example/a"),
        ("{scheme}://cdn.example{path}", "https://cdn.example/a", "http://cdn.example/a"),
        (
            "https://all.example/{scheme}/{host}{path}", "https://all.example/https/a.example/a",
            "https://all.example/http/a.example/a"
        ),
    ])
    func httpAndHTTPSShareNoKey(template: String, https: String, http: String) throws {
        var policy = ProxyPolicy()
        policy.rules = [try rule(hosts: ["a.example"], key: template)]
        #expect(policy.resolve(Self.url("https://a.example/a")).key.text == https)
        #expect(policy.resolve(Self.url("http://a.example/a")).key.text == http)
    }

    // MARK: Rules

    private func rule(host: String? = nil, path: String? = nil, _ change: (inout ResourceRule) -> Void) throws -> Rule {
        var rule = ResourceRule(hosts: host.map { [$0] } ?? [], paths: path.map { [$0] } ?? [])
        change(&rule)
        return try Rule(rule)
    }

    @Test(
        arguments: [
            // The first rule's, the second one's, the policy's, and what holds.
            (nil, nil, 3, 3), (nil, 5, 3, 5), (0, 5, 3, 0), (nil, nil, 0, 0), (nil, nil, 99, 20),
        ] as [(Int?, Int?, Int, Int)])
    func segmentsAheadAreThoseOfTheFirstThatNamesThem(first: Int?, second: Int?, standard: Int, holds: Int) throws {
        var policy = ProxyPolicy()
        policy.aheadSegments = standard
        policy.rules = [try rule { $0.aheadSegments = first }, try rule { $0.aheadSegments = second }]
        #expect(policy.resolve(try OriginURL(url: "https://a.example/1.ts")).resolvedRule.aheadSegments == holds)
    }

    @Test(
        arguments: [
            // The rule's, the policy's, and what holds.
            (nil, false, false), (nil, true, true), (false, true, false), (true, false, true),
        ] as [(Bool?, Bool, Bool)])
    func theNextItemIsFetchedUnlessBytesCostOrNothingIsStored(rule first: Bool?, standard: Bool, holds: Bool) throws {
        for change in [{ _ in }, { $0.isMetered = true }, { $0.bypass = true }] as [(inout ResourceRule) -> Void] {
            var rule = ResourceRule()
            change(&rule)
            let isCheap = rule == ResourceRule()
            rule.prefetchesNext = first
            var policy = ProxyPolicy()
            (policy.prefetchesNext, policy.rules) = (standard, [try Rule(rule)])
            let resolved = policy.resolve(try OriginURL(url: "https://a.example/1.mp4")).resolvedRule
            #expect(resolved.prefetchesNext == (holds && isCheap))
        }
    }

    @Test(
        arguments: [(nil, nil, nil, nil), (nil, nil, true, true), (nil, false, true, false), (true, false, nil, true)]
            as [(Bool?, Bool?, Bool?, Bool?)])
    func reloadIsIgnoredAsTheFirstThatNamesItSays(first: Bool?, second: Bool?, standard: Bool?, holds: Bool?) throws {
        var policy = ProxyPolicy()
        policy.ignoresReload = standard
        policy.rules = [try rule { $0.ignoresReload = first }, try rule { $0.ignoresReload = second }]
        #expect(policy.resolve(try OriginURL(url: "https://a.example/1.ts")).resolvedRule.ignoresReload == holds)
    }

    @Test func eachEffectIsThatOfTheFirstRuleThatNamesIt() throws {
        var policy = ProxyPolicy()
        policy.fill = .end
        policy.rules = [
            try rule(host: "a.example", path: "/live/*") { $0.bypass = true },
            try rule(host: "a.example") { ($0.ttl, $0.bypass, $0.ignoredQuery) = (.seconds(60), false, .all) },
            try rule(path: "*.mp4") { ($0.ttl, $0.fill, $0.pin) = (.seconds(120), .whole, true) },
            try rule { ($0.ttl, $0.maxObject, $0.ignoresNoStore, $0.playsStale) = (.seconds(180), 5, true, true) },
        ]
        func resolvedRule(_ change: (inout ResolvedRule) -> Void) -> ResolvedRule {
            var resolvedRule = ResolvedRule()
            (
                resolvedRule.ttl, resolvedRule.fill, resolvedRule.largestStored, resolvedRule.ignoresNoStore,
                resolvedRule.stalePlay
            ) = (180, .end, 5, true, .everything)
            change(&resolvedRule)
            return resolvedRule
        }
        for (url, key, wanted) in [
            (
                "https://a.example/live/x?b", "https://a.example/live/x",
                resolvedRule { ($0.ttl, $0.bypasses) = (60, true) }
            ),
            (
                "https://a.example/x.mp4?b", "https://a.example/x.mp4",
                resolvedRule { ($0.ttl, $0.fill, $0.pins) = (60, .whole, true) }
            ),
            (
                "https://b.example/x.mp4?b", "https://b.example/x.mp4?b",
                resolvedRule { ($0.ttl, $0.fill, $0.pins) = (120, .whole, true) }
            ),
            ("https://b.example/live/x", "https://b.example/live/x", resolvedRule { _ in }),
        ] {
            let resolved = policy.resolve(Self.url(url))
            #expect(resolved.key.text == key && resolved.resolvedRule == wanted, "\(url): \(resolved)")
        }
    }

    @Test func withoutARuleAllIsAsItAlwaysIs() {
        let url = Self.url("https://h/%7Ea?b=1")
        let resolved = ProxyPolicy().resolve(url)
        #expect(resolved.key == url.cacheKey && resolved.resolvedRule == ResolvedRule())
    }

    @Test func anyHostOfSeveralMatchesAndAnyPath() throws {
        let rule = try Rule(ResourceRule(hosts: ["a.example", "b.example"], paths: ["/x", "/y"]))
        let matching = ["https://a.example/x", "https://b.example/y", "https://c.example/x", "https://a.example/z"].map
        { rule.matches(Self.url($0)) }
        #expect(matching == [true, true, false, false])
    }

    // MARK: What people call by a URL

    @Test func aURLIsLookedForByItsKeyAndThenAsAKey() throws {
        var policy = ProxyPolicy()
        policy.rules = [try rule { $0.key = "https://all.example/{host}{path}" }]
        func found(_ url: String, among keys: String...) -> String? {
            policy.find(Self.url(url)) { keys.contains($0.text) ? $0.text : nil }
        }
        #expect(found("https://a/x", among: "https://all.example/a/x", "https://a/x") == "https://all.example/a/x")
        #expect(found("https://all.example/a/x", among: "https://all.example/a/x") == "https://all.example/a/x")
        #expect(found("https://a/x", among: "https://a/x") == "https://a/x")
        #expect(found("https://a/x", among: "https://a/y") == nil)
    }

    // MARK: Fields

    @Test(arguments: [
        ("Referer", "https://example.org/"), ("X-Api-Key", "a b\tc"), ("Cookie", "a=b"), ("authorization", "Bearer x"),
        ("Cache-Control", "no-cache"),
    ])
    func aFieldMayBeConfigured(name: String, value: String) throws {
        try ConfiguredField.check(name: name, value: value)
    }

    @Test(arguments: [
        ("", "x", "'' is not a header field name; write it like Referer"),
        ("a b", "x", "'a b' is not a header field name; write it like Referer"),
        ("a:", "x", "'a:' is not a header field name; write it like Referer"),
        ("Connection", "close", "Connection applies to one connection and is not for the origin; remove it"),
        (
            "TRANSFER-encoding", "chunked",
            "TRANSFER-encoding applies to one connection and is not for the origin; remove it"
        ),
        (
            "Proxy-Authorization", "x",
            "Proxy-Authorization applies to one connection and is not for the origin; remove it"
        ),
        ("Host", "x", "the proxy writes Host itself; remove it"),
        ("Range", "bytes=0-", "the proxy writes Range itself; remove it"),
        ("content-length", "1", "the proxy writes content-length itself; remove it"),
        ("If-Range", "x", "the proxy writes If-Range itself; remove it"),
        ("Via", "1.1 me", "the proxy writes Via itself; remove it"),
        ("max-forwards", "1", "the proxy writes max-forwards itself; remove it"),
        ("Accept-Encoding", "gzip", "the proxy writes Accept-Encoding itself; remove it"),
        ("X", "", "X has no value; write one, or remove it"),
        (
            "X", "a\r\nHost: b",
            "the value of X is not a field value; write it in printable ASCII on one line, without spaces at its ends"
        ),
        (
            "X", " a",
            "the value of X is not a field value; write it in printable ASCII on one line, without spaces at its ends"
        ),
        (
            "X", "ü",
            "the value of X is not a field value; write it in printable ASCII on one line, without spaces at its ends"
        ),
    ])
    func aFieldMayNotBeConfigured(name: String, value: String, reason: String) {
        #expect(throws: RuleError(reason)) { try ConfiguredField.check(name: name, value: value) }
    }

    // MARK: Fill policies

    @Test(arguments: [
        ("read", FillMode.read), ("ahead", .ahead(bytes: 32 << 20)), ("ahead 1MiB", .ahead(bytes: 1 << 20)),
        ("ahead 1.5 MB", .ahead(bytes: 1_500_000)), ("end", .end), ("whole", .whole),
    ])
    func aFillPolicyIsRead(text: String, policy: FillMode) throws {
        #expect(try FillMode(text) == policy)
    }

    @Test(arguments: [
        ("", "'' is not a fill policy; write read, ahead, ahead 32MiB, end or whole"),
        ("Read", "'Read' is not a fill policy; write read, ahead, ahead 32MiB, end or whole"),
        ("read 1MB", "'read 1MB' is not a fill policy; write read, ahead, ahead 32MiB, end or whole"),
        ("ahead far", "'far' is not a size; write it like ahead 32MiB"),
        ("ahead 0", "ahead 0 means read; write read"),
        ("ahead 2TiB", "that far ahead means end; write end, or at most ahead 1TiB"),
    ])
    func whatIsNoFillPolicyIsNamed(text: String, reason: String) {
        #expect(throws: RuleError(reason)) { try FillMode(text) }
    }
}
