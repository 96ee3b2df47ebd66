import CachePolicy
import TestSupport
import Testing

@Suite struct OriginURLTests {
    @Test(arguments: [
        ("/https/a.example/b.mp4?x=1&y=/", "https://a.example/b.mp4?x=1&y=/"),
        ("/http/a.example/b", "http://a.example/b"),
        ("/https://a.example/b", "https://a.example/b"), ("/https:/a.example/b", "https://a.example/b"),
        ("/HTTPS/A.Example/B", "https://a.example/B"),
        ("/https/a.example", "https://a.example/"), ("/https/a.example/", "https://a.example/"),
        ("/https/a.example?x", "https://a.example/?x"),
        ("/https/a.example:8443/b", "https://a.example:8443/b"), ("/https/a.example:443/b", "https://a.example/b"),
        ("/http/a.example:80/b", "http://a.example/b"), ("/http/a.example:443/b", "http://a.example:443/b"),
        ("/http/a.example:0080/b", "http://a.example/b"),
        ("/https/a.example:/b", "https://a.example/b"), ("/http/[::1]:8080/b", "http://[::1]:8080/b"),
        ("/http/%5B::1%5D:8080/b%5B", "http://[::1]:8080/b%5B"), ("/https/%5b::A%5d/", "https://[::a]/"),
        ("/http/[2001:DB8::1]/b", "http://[2001:db8::1]/b"),
        ("/http/10.0.0.1/b", "http://10.0.0.1/b"),
        ("/https/a_b-c.example/%7e%2F/../x", "https://a_b-c.example/%7e%2F/../x"),
        ("/https/a.example//b//", "https://a.example//b//"), ("/https/a.example/b#c", "https://a.example/b"),
        ("/https/a.example/\u{E9}", "https://a.example/%C3%A9"),
        ("/https/a.example/https://b/?u=http://c@d", "https://a.example/https://b/?u=http://c@d"),
        ("/https/a.example/\"<>|", "https://a.example/\"<>|"), ("/http/localhost:65535/", "http://localhost:65535/"),
    ])
    func targetIsRead(target: String, absolute: String) throws {
        let url = try OriginURL(target: target)
        #expect(url.absolute == absolute)
        #expect(try OriginURL(target: url.proxyPath) == url)
        #expect(try OriginURL(url: absolute) == url)
    }

    /// One name, one spelling: IDNA 2008 after the mapping of UTS 46, as browsers read it.
    @Test(arguments: [
        ("b\u{FC}cher.example", "xn--bcher-kva.example"), ("BU\u{308}CHER.Example:8080", "xn--bcher-kva.example:8080"),
        ("b%C3%BCcher.example", "xn--bcher-kva.example"), ("b%c3%bccher%2Eexample", "xn--bcher-kva.example"),
        ("XN--bcher-KVA.example", "xn--bcher-kva.example"), ("fa\u{DF}.example", "xn--fa-hia.example"),
        ("\u{4F8B}\u{3048}\u{3002}jp", "xn--r8jz45g.jp"), ("\u{FF11}\u{FF10}.0.0.1", "10.0.0.1"),
        ("a_b.b\u{FC}.example.", "a_b.xn--b-eha.example."),
    ])
    func nameOutsideOfASCIIIsRead(authority: String, ascii: String) throws {
        for target in ["/https/\(authority)/b", "/https://\(authority)/b", "/https%3A%2F%2F\(authority)%2Fb"]
        where !target.contains("%2F%2F") || !authority.contains("%") {
            #expect(try OriginURL(target: target).absolute == "https://\(ascii)/b")
        }
        #expect(try OriginURL(url: "https://\(authority)/b").absolute == "https://\(ascii)/b")
        let base = try OriginURL(url: "https://a.example/")
        #expect(base.resolving("//\(authority)/b")?.absolute == "https://\(ascii)/b")
        #expect(base.resolving("https://\(authority)/b")?.absolute == "https://\(ascii)/b")
    }

    @Test func partsAreTakenApart() throws {
        let url = try OriginURL(url: "HTTP://[FD00::1]:8080/a/b?c#d")
        #expect(url.scheme == .http)
        #expect(url.host == "[fd00::1]")
        #expect(url.port == 8080)
        #expect(url.pathAndQuery == "/a/b?c")
        #expect(url.authority == "[fd00::1]:8080")
        #expect(url.proxyPath == "/http/[fd00::1]:8080/a/b?c")
        #expect(try OriginURL(url: "https://a:443").port == nil)
    }

    @Test(arguments: [
        ("/ftp/a/b", "http or https"), ("/rtsp://a/b", "http or https"), ("/file:///etc/passwd", "http or https"),
        ("/favicon.ico", "http or https"),
        ("", "/https/host"), ("https/a/b", "/https/host"), ("/", "must begin"), ("//a/b", "must begin"),
        ("/https", "no host"),
        ("/https/", "no host"),
        ("/https:///b", "no host"), ("/https//a", "no host"), ("/https/:80/b", "no host"), ("/https/?x", "no host"),
        ("/https:a/b", "no host"),
        ("/https/user:secret@a/b", "credentials"), ("/https/user@a/b", "credentials"), ("/https/@a/b", "credentials"),
        ("/https/a:0/b", "port 0"), ("/https/a:65536/b", "port 65536"), ("/https/a:x/b", "port x"),
        ("/https/a:-1/b", "port -1"),
        ("/https/a:80:80/b", "port 80:80"), ("/https/a:99999999999999999999/b", "port 9"),
        ("/https/[::1]:x/b", "port x"),
        ("/https/[::1/b", "IPv6"), ("/https/[::1]80/b", "IPv6"), ("/https/[a]/b", "IPv6"),
        ("/https/[::1%25eth0]/b", "IPv6"), ("/https/%5B::1/b", "IPv6"), ("/https/%5Ba%5D/b", "IPv6"),
        ("/https/a%5B/b", "character"),
        ("/https/[10.0.0.1]/b", "IPv6"),
        ("/https/::1/b", "no host"), ("/https/a b/c", "character"), ("/https/a%20b/c", "character"),
        ("/https/a\\b/c", "character"),
        ("/https/a<b/c", "character"), ("/https/a\u{0}/c", "character"), ("/https/\u{2603}.example/c", "IDNA"),
        ("/https/%C3/c", "IDNA"),
        ("/https/b\u{FC}%00.example/c", "IDNA"), ("/https/b\u{FC}\u{FF0F}.example/c", "IDNA"),
        ("/https/\u{AD}/c", "IDNA"),
        ("/https/%61.example/c", "character"), ("/https/b\u{FC}%/c", "character"),
        ("/https/a\u{FF20}b.example/", "IDNA"),
        ("/https/a]/c", "character"),
        ("/https/a/b c", "%20"), ("/https/a/b\u{0}", "control"), ("/https/a/b\r\nHost: x", "control"),
        ("/https/a/\u{7F}", "control"),
    ])
    func badTargetIsRefusedWithTheReason(target: String, reason: String) throws {
        let error = try #require(throws: OriginURLError.self) { try OriginURL(target: target) }
        #expect(error.reason.contains(reason), "\(error.reason)")
        #expect(error.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 }, "one line of ASCII: \(error.reason)")
    }

    @Test(arguments: [
        ("http://anna:pa55@nas.local:8080/feed.xml", "http://nas.local:8080", "anna"),
        ("https://anna%40b.example:pa55@O.example:443/?x=pa55", "https://o.example", "anna@b.example"),
        ("http://anna:pa55@b@[::1]/", "http://[::1]", "anna"),
        ("https://pa55@o.example/", "https://o.example", "USER"),
        ("https://:pa55@o.example/", "https://o.example", "USER"),
        ("https://pa55:@o.example/", "https://o.example", "USER"), ("https://@o.example/", "https://o.example", "USER"),
        ("https://a'nna:pa55@o.example/", "https://o.example", "USER"),
        ("https://a%0Anna:pa55@o.example/", "https://o.example", "USER"),
        ("https://a%3Anna:pa55@o.example/", "https://o.example", "USER"),
        ("https://\(String(repeating: "a", count: 65)):pa55@o.example/", "https://o.example", "USER"),
    ])
    func credentialsAreRefusedWithTheRuleThatSendsThem(url: String, host: String, user: String) throws {
        let error = try #require(throws: OriginURLError.self) { try OriginURL(url: url) }
        #expect(
            error.reason.contains("rules: [{host: '\(host)', headers: {Authorization: Basic BASE64}}]")
                && error.reason.contains(" printf %s '\(user):PASSWORD' | base64"), "\(error.reason)")
        #expect(!error.naming(url).contains(":pa55") && !error.naming(url).contains("pa55@"), "\(error.naming(url))")
        #expect(throws: error) { try OriginURL(target: "/" + url) }
    }

    @Test(arguments: [
        "", "a.example/b", "/https/a/b", "https:/a/b", "https//a/b", "https:a", "://a", "ftp://a/b", "https://",
        "https:///b",
        "https://u@a/", " https://a/",
    ])
    func badURLIsRefused(url: String) {
        #expect(throws: OriginURLError.self) { try OriginURL(url: url) }
    }

    @Test func randomTargetsAreRefusedOrReadBackEqual() {
        var random = SplitMix64.forTest("randomTargets")
        let starts = ["/https/a", "/http/", "/https://", ""]
        let pieces = [
            "http", "https", "/", ":", "//", "a.b", "[::1]", "80", "4", "%%", "443", "@", "?", "#", "%41", "%",
            "\u{E9}", " ", "\u{0}", ".", "x",
        ]
        var accepted = 0
        for _ in 0..<10000 {
            let tail = (0..<Int.random(in: 0...7, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            let start = starts.randomElement(using: &random)!
            guard let url = try? OriginURL(target: start + tail) else { continue }
            accepted += 1
            #expect(try! OriginURL(target: url.proxyPath) == url)
            #expect(try! OriginURL(url: url.absolute) == url)
            #expect(url.absolute.utf8.allSatisfy { 0x21...0x7E ~= $0 })
            #expect(try! OriginURL(url: url.cacheKey.text).cacheKey == url.cacheKey)
        }
        #expect(accepted > 500)
    }
}
