import Testing

@testable import HTTPModel

@Suite struct CacheStatusTests {
    @Test(arguments: [
        (CacheStatus.hit(), "reelcache; hit"), (.hit(ttl: 376), "reelcache; hit; ttl=376"),
        (.hit(ttl: -5), "reelcache; hit; ttl=-5"),
        (.hit(ttl: .max), "reelcache; hit; ttl=999999999999999"),
        (.forwarded(.uriMiss, isStored: true, isCollapsed: true), "reelcache; fwd=uri-miss; stored; collapsed"),
        (.forwarded(.stale, status: 503), "reelcache; fwd=stale; fwd-status=503"),
        (.forwarded(.varyMiss), "reelcache; fwd=vary-miss"),
        (.forwarded(.partial, detail: "a \"b\" \\ \u{E9}\n"), #"reelcache; fwd=partial; detail="a \"b\" \\ ??""#),
        (CacheStatus(isHit: true, forward: .miss), "reelcache; fwd=miss"),
        (CacheStatus(key: "https://a/b"), "reelcache; key=\"https://a/b\""),
    ])
    func fieldIsWritten(status: CacheStatus, field: String) {
        #expect(status.fieldValue == field)
    }

    // RFC 9211 §2.2
    @Test func forwardReasonsAreTheRegisteredTokens() {
        let tokens = ["bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial"]
        #expect(CacheStatus.Forward.allCases.map(\.rawValue) == tokens)
    }
}
