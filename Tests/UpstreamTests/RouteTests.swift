import HTTPModel
import TestSupport
import Testing

@testable import Upstream

/// RFC 9110 §15.4: where a redirect leads, and what is told there.
@Suite struct RouteTests {
    private static let fields = HeaderFields([
        .init(name: "Authorization", value: "secret"), .init(name: "Cookie", value: "a=b"),
        .init(name: "X-Key", value: "k"), .init(name: "Referer", value: "https://a.test/page?q"),
        .init(name: "Accept", value: "*/*"),
    ])

    private func route(_ url: String = "https://a.test/film") throws -> Route {
        try #require(
            Route(UpstreamRequest(url: url, method: .get, span: nil, fields: Self.fields, confined: ["X-Key"])))
    }

    @Test(arguments: [
        ("next", "https://a.test/next", true), ("https://A.test:443/x", "https://A.test:443/x", true),
        ("http://a.test/x", "http://a.test/x", false), ("https://a.test:8443/x", "https://a.test:8443/x", false),
        ("//b.test/x", "https://b.test/x", false),
    ])
    func whatIsMeantForOneOriginIsNotToldToAnother(location: String, url: String, isToldAll: Bool) throws {
        var route = try route()
        try route.follow(location, status: 302, limit: 1)
        #expect(route.url == UpstreamURL(url) && route.redirects == 1 && route.location == location)
        #expect(
            ["Authorization", "Cookie", "X-Key"].map { route.fields[$0] != nil } == [isToldAll, isToldAll, isToldAll])
        #expect(route.fields["Accept"] == "*/*")
        #expect((route.fields["Referer"] == "https://a.test/page?q") == isToldAll)
    }

    @Test func whatWasLeftOutDoesNotComeBackWithTheFirstOrigin() throws {
        var route = try route()
        try route.follow("https://b.test/", status: 302, limit: 2)
        try route.follow("https://a.test/", status: 302, limit: 2)
        #expect(route.fields["Authorization"] == nil && route.fields["X-Key"] == nil)
    }

    @Test func redirectsAreCounted() throws {
        var route = try route()
        try route.follow("a", status: 302, limit: 1)
        #expect(throws: UpstreamError.tooManyRedirects(limit: 1)) { try route.follow("b", status: 302, limit: 1) }
        #expect(route.url == UpstreamURL("https://a.test/a"), "it stays where it was")
    }

    @Test(arguments: ["ftp://a.test/", "data:,x", "http://"])
    func whatCannotBeFetchedIsNoRedirect(location: String) throws {
        var route = try route()
        #expect(throws: UpstreamError.badRedirect(location: location)) {
            try route.follow(location, status: 302, limit: 5)
        }
    }

    @Test func urlThatIsNoneHasNoRoute() {
        #expect(
            Route(UpstreamRequest(url: "nothing", method: .get, span: nil, fields: HeaderFields(), confined: [])) == nil
        )
    }
}

@Suite struct SilenceTests {
    private static let second: UInt64 = 1_000_000_000

    @Test(
        arguments: [
            // Seconds: of the last sign (nil: none), until the request went out (0: not yet), now, of silence.
            (nil, 0, 9, 0), (nil, 2, 9, 7), (4, 2, 9, 5), (1, 2, 9, 7), (nil, 2, 1, 0),
        ] as [(UInt64?, Int64, UInt64, Double)])
    func silenceBeginsWhenTheRequestIsOutAndEndsWithEachSign(
        sign: UInt64?, connecting: Int64, now: UInt64, length: Double
    ) {
        var silence = Silence(from: 100 * Self.second)
        if let sign { silence.end(at: (100 + sign) * Self.second) }
        #expect(silence.length(at: (100 + now) * Self.second, connecting: connecting * 1_000_000) == length)
    }
}

@Suite struct HopTests {
    @Test func bodyOfARedirectIsReadForSoLong() {
        var hop = Hop()
        let flags = [hop.discard(Hop.discardLimit), hop.discard(1)]
        #expect(flags == [true, false])
    }

    @Test(arguments: [
        // A new connection, a fault of our own, surplus, the error, spoiled.
        (false, false, true, false, true), (false, false, false, true, true), (false, false, false, false, false),
        (true, false, true, false, false), (true, false, false, true, false), (false, true, false, true, false),
    ])
    func restOfAnotherAnswerSpoilsAConnectionThatIsUsedAgain(
        isNew: Bool, hasFault: Bool, foundSurplus: Bool, isViolation: Bool, isSpoiled: Bool
    ) {
        var hop = Hop()
        if isNew { hop.sockets = [3] }
        if hasFault { hop.fault = .protocolViolation(detail: "ours") }
        hop.foundSurplus = foundSurplus
        let error = isViolation ? UpstreamError.protocolViolation(detail: "x") : .broken(detail: "y")
        #expect(hop.isSpoiled(by: error) == isSpoiled)
    }
}

/// RFC 3986 §3.2
@Suite struct UpstreamURLTests {
    @Test(arguments: [
        "http://media.example/film.mp4", "https://media.example:8443/a/../b?c=%2F&d=[1]", "http://127.0.0.1:8080/",
        "http://localhost/x?", "http://a.localhost/", "https://x-1.example:443/", "http://1.2.example/a?b?c",
    ])
    func plainOneIsReadAsCurlReadsIt(text: String) {
        let plain = UpstreamURL(plain: text)
        #expect(plain != nil && plain == UpstreamURL(base: nil, text))
    }

    /// Only curl knows what it makes of these.
    @Test(arguments: [
        "http://127.1/", "http://0x7f.1/", "http://010.0.0.1/", "http://1.2.3.4.5/", "http://a.1/", "http://a..b/",
        "http://a./", "http://.a/", "http://Media.example/", "http://u@a/", "http://a:b@c/", "http://[::1]/",
        "http://a:/", "http://a:080/", "http://a:65536/", "http://a:8x/", "http://a", "http://a?b", "http://a/#b",
        "http://a/ b", "http://a/ü", "http://ü/", "http://a%2eb/", "http://a_b/", "ftp://a/", "HTTP://a/", "http:///b",
    ])
    func anyOtherIsLeftToCurl(text: String) { #expect(UpstreamURL(plain: text) == nil) }

    @Test func randomOnesAreReadAsCurlReadsThem() {
        var random = SplitMix64.forTest("UpstreamURLTests.randomOnesAreReadAsCurlReadsThem")
        let parts = [
            "http://", "https://", "a", "b.c", ".", "1", "127.0.0.1", "0x7", "-", ":", "80", "/", "?", "@", "%41",
        ]
        var count = 0
        for _ in 0..<20_000 {
            let text =
                "http://"
                + (0..<Int.random(in: 1...7, using: &random)).map { _ in
                    parts.randomElement(using: &random) ?? ""
                }.joined()
            guard let plain = UpstreamURL(plain: text) else { continue }
            count += 1
            #expect(plain == UpstreamURL(base: nil, text), "\(text)")
        }
        #expect(count > 100)
    }
}
