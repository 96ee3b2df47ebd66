import CachePolicy
import HTTPModel
import Testing

/// RFC 9111 §3
@Suite struct StoringTests {
    private static func decide(
        _ fields: HeaderFields, status: Int = 200, total: Int64? = 100, request: String? = nil,
        expectsMedia: Bool = false, isAuthorized: Bool = false, passesCookies: Bool = false, isUnreadable: Bool = false,
        change: (inout ResolvedRule) -> Void = { _ in }
    ) -> Storing {
        var resolvedRule = ResolvedRule()
        change(&resolvedRule)
        return .decide(
            status: status, fields: fields, total: total,
            .init(
                RequestDirectives(cacheControl: request, pragma: nil), isAuthorized: isAuthorized,
                passesCookies: passesCookies), expectsMedia: expectsMedia, isUnreadable: isUnreadable, resolvedRule)
    }

    @Test func onlyMediaAreKept() {
        for status in 100...599 {
            #expect(
                Self.decide(["Cache-Control: max-age=100, public"], status: status)
                    == (status == 200 || status == 206 ? .store : .pass(.status)), "\(status)")
        }
    }

    @Test(
        arguments: [
            ([], .store), (["Cache-Control: max-age=0"], .store), (["Expires: 0"], .store),
            (["Cache-Control: no-cache, must-revalidate"], .store),
            // Not for a private cache: §5.2.2.7, §5.2.2.10; §7.3.
            (["Cache-Control: private"], .store),
            (["Cache-Control: private=\"x\", s-maxage=0, proxy-revalidate"], .store), (["Set-Cookie: a=b"], .store),
            // §5.2.2.5
            (["Cache-Control: no-store"], .pass(.noStore)),
            (["Cache-Control: max-age=100", "Cache-Control: No-Store"], .pass(.noStore)),
            (["Cache-Control: no-store=\"x\", public"], .pass(.noStore)), (["Cache-Control: ext=\"no-store\""], .store),
            // §5.2.2.3
            (["Cache-Control: no-store, must-understand"], .store),
            // §4.1
            (["Vary: *"], .pass(.varyAny)), (["Vary: Origin", "Vary: a, *"], .pass(.varyAny)),
            (["Vary: Origin"], .store), (["Vary: "], .store),
            // RFC 9110 §8.4
            (["Content-Encoding: Identity"], .store),
            (["Content-Encoding: aws-chunked"], .store), (["Content-Encoding: None, UTF-8"], .store),
            (["Content-Encoding: "], .store), (["Content-Encoding: identity", "Content-Encoding: identity"], .store),
        ] as [(HeaderFields, Storing)])
    func originMayForbidIt(fields: HeaderFields, storing: Storing) {
        #expect(Self.decide(fields) == storing)
        #expect(Self.decide(fields, status: 206) == storing)
    }

    // §5.2.2.7. Its own directives are what counts, in whichever field they are (RFC 9213 §2.2).
    @Test(
        arguments: [
            (["Cache-Control: private"], .pass(.forOneUser)), (["Cache-Control: public, PRIVATE"], .pass(.forOneUser)),
            (["Cache-Control: private=\"\", max-age=60"], .pass(.forOneUser)),
            (["Cache-Control: private, s-maxage=60"], .pass(.forOneUser)),
            (["Cache-Control: private=\"set-cookie\""], .store), (["Cache-Control: s-maxage=0"], .store),
            (["Cache-Control: proxy-revalidate"], .store), ([], .store), (["Cache-Control: x=\"private\""], .store),
            (["Cache-Control: no-store, private"], .pass(.noStore)),
            (["Cache-Control: private", "CDN-Cache-Control: max-age=60"], .store),
            (["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"], .store),
            (["Cache-Control: max-age=60", "CDN-Cache-Control: private"], .pass(.forOneUser)),
            (["Cache-Control: max-age=60", "CDN-Cache-Control: no-store"], .pass(.noStore)),
            (["Cache-Control: private", "CDN-Cache-Control: "], .pass(.forOneUser)),
            (["Cache-Control: private", "CDN-Cache-Control: max-age=60,"], .pass(.forOneUser)),
            (["Cache-Control: private", "Other-Cache-Control: max-age=60"], .pass(.forOneUser)),
        ] as [(HeaderFields, Storing)])
    func sharedCacheStoresNothingForOneUser(fields: HeaderFields, storing: Storing) {
        for status in [200, 206] { #expect(Self.decide(fields, status: status) { $0.terms = .shared } == storing) }
    }

    // §3.5
    @Test(
        arguments: [
            ([], .pass(.authorization)), (["Cache-Control: max-age=60"], .pass(.authorization)),
            (["Cache-Control: proxy-revalidate"], .pass(.authorization)),
            (["Cache-Control: no-cache"], .pass(.authorization)),
            (["Expires: Thu, 01 Jan 2099 00:00:00 GMT"], .pass(.authorization)),
            (["Cache-Control: public"], .store), (["Cache-Control: s-maxage=0"], .store),
            (["Cache-Control: must-revalidate"], .store),
            (["Cache-Control: public, private"], .pass(.forOneUser)),
            (["Cache-Control: public", "CDN-Cache-Control: max-age=60"], .pass(.authorization)),
            (["CDN-Cache-Control: max-age=60, must-revalidate"], .store),
        ] as [(HeaderFields, Storing)])
    func sharedCacheStoresWhatCredentialsOpenedOnlyWhereThatIsAllowed(fields: HeaderFields, storing: Storing) {
        #expect(Self.decide(fields, isAuthorized: true) { $0.terms = .shared } == storing)
        #expect(Self.decide(fields) { $0.terms = .shared } == (storing == .pass(.authorization) ? .store : storing))
        #expect(Self.decide(fields, isAuthorized: true) == .store)
    }

    /// A session that one client begins is nobody else's.
    @Test func sharedCacheDoesNotStoreWhatSetsACookieForItsClient() {
        let fields: HeaderFields = ["Cache-Control: public, max-age=60", "Set-Cookie: a=b"]
        for (isShared, passes, storing) in [
            (true, true, .pass(.setCookie)), (true, false, .store), (false, true, .store), (false, false, .store),
        ] as [(Bool, Bool, Storing)] {
            #expect(Self.decide(fields, passesCookies: passes) { $0.terms = isShared ? .shared : .private } == storing)
        }
        #expect(Self.decide([], passesCookies: true) { $0.terms = .shared } == .store)
    }

    /// RFC 9110 §8.4: only the whole, because another answer may encode anew.
    @Test(arguments: ["gzip", "br", "identity, br"])
    func encodedContentIsStoredAsItCameIfItComesAsAWhole(coding: String) {
        let fields: HeaderFields = HeaderFields([.init(name: "Content-Encoding", value: coding)])
        #expect(Self.decide(fields) == .store)
        #expect(Self.decide(fields, status: 206) == .pass(.encoded))
        #expect(Self.decide(fields, isUnreadable: true) == .pass(.encoded))
        #expect(Self.decide([], isUnreadable: true) == .store)
    }

    // §5.2.1.5
    @Test(
        arguments: [("no-store", .pass(.requestNoStore)), ("no-cache", .store), ("max-age=0", .store), (nil, .store)]
            as [(String?, Storing)])
    func clientMayForbidIt(request: String?, storing: Storing) {
        #expect(Self.decide([], request: request) == storing)
    }

    @Test func rulesGoBeforeBoth() {
        #expect(Self.decide(["Cache-Control: no-store"], request: "no-store") { $0.ignoresNoStore = true } == .store)
        #expect(Self.decide(["Vary: *"]) { $0.ignoresNoStore = true } == .pass(.varyAny))
        #expect(Self.decide([]) { $0.bypasses = true } == .pass(.rule))
    }

    @Test(arguments: [(100, .store), (101, .pass(.tooLong)), (nil, .store)] as [(Int64?, Storing)])
    func whatIsTooLongPasses(total: Int64?, storing: Storing) {
        #expect(Self.decide([], total: total) { $0.largestStored = 100 } == storing)
    }

    @Test func pageInThePlaceOfMediaPasses() {
        for status in [200, 206] {
            #expect(Self.decide(["Content-Type: text/html"], status: status, expectsMedia: true) == .pass(.page))
            #expect(Self.decide(["Content-Type: text/html"], status: status) == .store)
            #expect(Self.decide(["Content-Type: video/mp4"], status: status, expectsMedia: true) == .store)
        }
        #expect(Self.decide(["Content-Type: text/html"], status: 404, expectsMedia: true) == .pass(.status))
        #expect(Self.decide(["Content-Type: text/html"], expectsMedia: true) { $0.storesPages = true } == .store)
    }

    @Test func reasonsAreTokensOfCacheStatus() {
        let reasons: [Storing.Reason] = [
            .status, .noStore, .forOneUser, .authorization, .setCookie, .requestNoStore, .varyAny, .encoded, .tooLong,
            .page, .fields, .rule,
        ]
        #expect(
            reasons.map(\.rawValue) == [
                "status", "no-store", "private", "authorization", "set-cookie", "request-no-store", "vary", "encoded",
                "max-object", "page", "fields", "rule",
            ])
    }
}
