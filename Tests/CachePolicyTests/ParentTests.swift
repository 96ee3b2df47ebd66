import HTTPModel
import Testing

@testable import CachePolicy

/// Parents: their addresses, who is asked for what, and whose an answer is.
@Suite struct ParentTests {
    private static func parents(_ count: Int) throws -> [ParentProxy] {
        try (1...count).map { number throws(RuleError) in try ParentProxy("http://10.0.0.\(number):7335") }
    }

    @Test(arguments: [
        ("http://10.0.0.5:7335", "http://10.0.0.5:7335/"), ("http://Edge.local/", "http://edge.local/"),
        ("http://[::1]:7335", "http://[::1]:7335/"),
    ]) func addressIsRead(text: String, url: String) throws { #expect(try ParentProxy(text).url == url) }

    @Test(arguments: [
        "", "10.0.0.5:7335", "https://10.0.0.5:7335", "http://10.0.0.5/path", "http://user@10.0.0.5", "http://a:99999",
    ]) func whatIsNoneIsRefusedInOneLine(text: String) {
        #expect(throws: RuleError("'\(text)' is not the address of a parent; write it like http://10.0.0.5:7335")) {
            try ParentProxy(text)
        }
    }

    @Test func eachResourceHasOneParentAndALostOneMovesOnlyItsShare() throws {
        let five = try Self.parents(5), four = Array(five.dropLast())
        var shares: [ParentProxy: Int] = [:]
        for number in 1...5000 {
            let key = CacheKey(text: "https://origin.example/\(number).mp4")
            let first = try #require(five.order(for: key).first)
            #expect(five.reversed().order(for: key) == five.order(for: key), "whatever the order of the list")
            shares[first, default: 0] += 1
            if first != five.last { #expect(four.order(for: key).first == first) }
        }
        #expect(shares.count == 5 && shares.values.allSatisfy { 850...1150 ~= $0 }, "\(shares)")
    }

    @Test(
        arguments: [
            (200, nil, .origins), (304, nil, .origins), (206, "reelcache; hit", .origins),
            (404, "reelcache; fwd=uri-miss; fwd-status=404", .origins), (404, "reelcache; hit; ttl=9", .origins),
            (503, "reelcache; fwd=stale; fwd-status=503", .origins),
            (404, nil, .own), (502, "reelcache; fwd=uri-miss", .own), (504, "reelcache; detail=\"offline\"", .own),
            (421, nil, .own), (403, "", .own), (508, nil, .circle),
            // The last member is the parent's, whatever caches behind it have said.
            (502, "origin; fwd=miss; fwd-status=502, reelcache; fwd=uri-miss", .own),
            (404, "origin; hit, reelcache; fwd=uri-miss; fwd-status=404", .origins),
            (502, "reelcache; fwd-status=", .own), (502, "reelcache; fwd-status=x", .own),
            (502, "reelcache; hit=?0", .own),
            // Whose back-off it is.
            (503, "reelcache; fwd=uri-miss; detail=\"origin-busy\"", .origins),
            (503, "reelcache;detail=origin-busy", .origins), (503, "reelcache; detail=\"proxy-busy\"", .own),
            (502, "reelcache; detail=\"origin-busy\"", .own), (503, "reelcache; detail=1", .own),
            (503, "origin; detail=\"origin-busy\", reelcache; detail=\"proxy-busy\"", .own),
        ] as [(Int, String?, ParentAnswer)])
    func errorsAreToldApartByCacheStatus(status: Int, field: String?, answer: ParentAnswer) {
        var fields = HeaderFields()
        if let field { fields.append("Cache-Status", field) }
        #expect(ParentAnswer(status: status, fields: fields) == answer)
    }

    @Test(arguments: ["http://p.example:7335", "http://p.example:7335/", "HTTP://P.example:7335"])
    func parentThatIsListedTwiceIsRefused(again: String) {
        let error = #expect(throws: RuleError.self) {
            try ParentProxy.list(["http://p.example:7335", "http://q.example:7335", again])
        }
        #expect(error?.description.contains("http://p.example:7335 is listed twice") == true, "\(error as Any)")
    }

    @Test func parentsTakeTurnsAndThenTheOriginAndThenTheFirstAgain() throws {
        var turns = ParentTurns(try Self.parents(3), for: CacheKey(text: "https://a.example/"))
        var requested: [ParentProxy?] = []
        for _ in 1...4 {
            let next = turns.next { _ in false }
            turns.use(next)
            requested.append(next)
            if next == nil { turns.restart() } else { turns.leave() }
        }
        #expect(Set(requested.compactMap(\.self)).count == 3 && requested.last == .some(nil))
        #expect(turns.next { _ in false } == requested[0])
        #expect(turns.next { $0 == requested[0] } == requested[1], "one that rests is passed over")
        #expect(turns.next { _ in true } == nil)
    }

    @Test func whatBypassesTheCacheBypassesParents() throws {
        var policy = ProxyPolicy()
        policy.parents = try Self.parents(2)
        func count(_ change: (inout ResourceRule) -> Void) throws -> Int {
            var rule = ResourceRule()
            change(&rule)
            policy.rules = [try Rule(rule)]
            return policy.resolve(try OriginURL(url: "https://a.example/a")).resolvedRule.parents.count
        }
        #expect(try count { _ in } == 2)
        #expect(try count { $0.parents = ["http://one.example"] } == 1)
        #expect(try count { $0.parents = [] } == 0)
        #expect(try count { $0.bypass = true } == 0)
    }
}

/// The setting `upstream_proxy`, and its exceptions.
@Suite struct OutgoingProxyTests {
    @Test(arguments: [
        ("http://proxy.example:3128", "http://proxy.example:3128", nil, nil),
        ("HTTP://Proxy.example:80", "http://proxy.example:80", nil, nil),
        ("socks5h://[::1]:1080/", "socks5h://[::1]:1080", nil, nil),
        ("socks5h://me:p%40ss@10.0.0.1:1080", "socks5h://***@10.0.0.1:1080", "me", "p@ss"),
        ("http://me@10.0.0.1:1080", "http://***@10.0.0.1:1080", "me", ""),
    ]) func addressIsRead(text: String, masked: String, user: String?, password: String?) throws {
        let proxy = try OutgoingProxy(text)
        #expect(proxy.masked == masked && proxy.user == user && proxy.password == password)
    }

    @Test(arguments: [
        "", "proxy:3128", "http://proxy", "https://proxy:3128", "socks5://proxy:1080", "http://proxy:0",
        "http://:secret@proxy:3128", "http://a:se%0Acret@proxy:3128", "http://proxy:3128/path",
        "http://secret%zz@proxy:1",
    ]) func whatIsNoneIsRefusedWithoutItsPassword(text: String) {
        let error = #expect(throws: RuleError.self) { try OutgoingProxy(text) }
        #expect(error?.reason.hasPrefix("is not a proxy's address; write it like") == true)
        #expect(error?.reason.contains("secret") == false)
    }

    @Test(arguments: [
        ("nas.local", true), ("NAS.local.", true), ("a.nas.local", true), ("xnas.local", false), ("local", false),
        ("example.org", true), ("cdn.example.org", true), ("10.1.2.3", true), ("11.1.2.3", false),
        ("::ffff:10.1.2.3", true), ("[fd00::1]", true), ("other.example", false),
    ]) func exceptionsAreReachedDirectly(host: String, isExcepted: Bool) throws {
        var proxy = try OutgoingProxy("http://proxy.example:3128")
        #expect(proxy.carries(host: host))
        proxy.exceptions = try ProxyExceptions(["nas.local", ".example.org", "10.0.0.0/8", "fd00::/8"])
        #expect(proxy.carries(host: host) == !isExcepted)
    }

    @Test func exceptionThatIsNoneIsRefused() {
        #expect(throws: RuleError.self) { try ProxyExceptions(["http://a.example"]) }
        #expect(throws: RuleError.self) { try ProxyExceptions(["300.1.1.1"]) }
    }
}
