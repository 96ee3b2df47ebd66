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
        ("/https/a<b/c", "character"), ("/https/a\u{0}/c", "character"), ("/https/b\u{FC}cher.example/c", "xn--"),
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
