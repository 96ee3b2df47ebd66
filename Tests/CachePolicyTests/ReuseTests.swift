import CachePolicy
import HTTPModel
import Testing

@Suite struct ReuseTests {
    /// 40 s old, fresh for 60 s more.
    private static let fresh = Freshness(lifetime: 100, age: 40, source: .explicit)
    /// Stale for 30 s.
    private static let stale = Freshness(lifetime: 10, age: 40, source: .explicit)

    private static func decide(_ request: String?, _ response: String, _ freshness: Freshness, isOffline: Bool = false)
        -> Reuse
    {
        .decide(
            RequestDirectives(cacheControl: request, pragma: nil), response: CacheControl(parsing: response), freshness,
            isOffline: isOffline)
    }

    @Test(
        arguments: [
            (nil, "", .fresh), (nil, "must-revalidate", .fresh), (nil, "private, s-maxage=0", .fresh),
            ("no-store", "", .fresh), ("only-if-cached", "", .fresh),
            // RFC 9111 §5.2.2.4, with and without arguments
            (nil, "no-cache", .validate(.stale)), (nil, "no-cache=\"set-cookie\"", .validate(.stale)),
            ("max-stale", "no-cache", .validate(.stale)),
            (nil, "no-cache, stale-while-revalidate=100", .validate(.stale)),
            ("only-if-cached", "no-cache", .gatewayTimeout),
            // §5.2.1.4
            ("no-cache", "", .validate(.request)), ("no-cache, only-if-cached", "", .gatewayTimeout),
            ("no-cache", "stale-while-revalidate=100", .validate(.request)),
            // §5.2.1.1
            ("max-age=40", "", .fresh), ("max-age=39", "", .validate(.request)), ("max-age=0", "", .validate(.request)),
            ("max-age=x", "", .validate(.request)),
            ("max-age=39, max-stale", "", .validate(.request)), ("max-age=0, only-if-cached", "", .gatewayTimeout),
            // RFC 8246 §2
            ("max-age=0", "immutable", .fresh), ("no-cache", "immutable", .validate(.request)),
            (nil, "immutable, no-cache", .validate(.stale)),
            ("min-fresh=61", "immutable", .validate(.request)),
            // §5.2.1.3
            ("min-fresh=60", "", .fresh), ("min-fresh=61", "", .validate(.request)),
            ("min-fresh=61, only-if-cached", "", .gatewayTimeout), ("min-fresh=x", "", .fresh),
        ] as [(String?, String, Reuse)])
    func freshResponseIsReused(request: String?, response: String, reuse: Reuse) {
        #expect(Self.decide(request, response, Self.fresh) == reuse)
    }

    @Test(
        arguments: [
            (nil, "", .validate(.stale)), (nil, "immutable", .validate(.stale)),
            ("only-if-cached", "", .gatewayTimeout),
            ("max-age=100", "", .validate(.stale)), ("max-age=0", "immutable", .validate(.stale)),
            // §5.2.1.2
            ("max-stale", "", .stale(revalidates: false)), ("max-stale=30", "", .stale(revalidates: false)),
            ("max-stale=29", "", .validate(.stale)),
            ("max-stale=0", "", .validate(.stale)), ("max-stale=x", "", .validate(.stale)),
            ("max-stale, only-if-cached", "", .stale(revalidates: false)),
            ("max-stale=99999999999999999999", "", .stale(revalidates: false)),
            ("max-stale, max-age=39", "", .validate(.stale)),
            ("max-stale, max-age=40", "", .stale(revalidates: false)),
            ("max-stale, min-fresh=0", "", .validate(.stale)),
            ("max-stale, no-cache", "", .validate(.request)),
            // §5.2.2.2: must-revalidate goes before.
            ("max-stale", "must-revalidate", .validate(.stale)), ("max-stale", "no-cache", .validate(.stale)),
            ("max-stale", "proxy-revalidate", .stale(revalidates: false)),
            // RFC 5861 §3
            (nil, "stale-while-revalidate=30", .stale(revalidates: true)),
            (nil, "stale-while-revalidate=29", .validate(.stale)),
            (nil, "stale-while-revalidate=99999999999999999999", .stale(revalidates: true)),
            (nil, "stale-while-revalidate", .validate(.stale)),
            (nil, "stale-while-revalidate=30, must-revalidate", .validate(.stale)),
            (nil, "stale-while-revalidate=30, no-cache", .validate(.stale)),
            ("max-age=100", "stale-while-revalidate=30", .validate(.stale)),
            ("min-fresh=0", "stale-while-revalidate=30", .validate(.stale)),
            ("no-cache", "stale-while-revalidate=30", .validate(.request)),
            ("only-if-cached", "stale-while-revalidate=30", .stale(revalidates: false)),
            ("max-stale=30", "stale-while-revalidate=30", .stale(revalidates: false)),
            ("max-stale=29", "stale-while-revalidate=30", .stale(revalidates: true)),
        ] as [(String?, String, Reuse)])
    func staleResponseIsAskedFor(request: String?, response: String, reuse: Reuse) {
        #expect(Self.decide(request, response, Self.stale) == reuse)
    }

    @Test func lifetimeThatNobodyStatedMakesNothingImmutable() {
        #expect(
            Self.decide("max-age=0", "immutable", Freshness(lifetime: 100, age: 40, source: .heuristic))
                == .validate(.request))
        #expect(Self.decide("max-age=0", "immutable", Freshness(lifetime: 100, age: 40, source: .rule)) == .fresh)
    }

    @Test func whatIsStaleForEverIsTakenOnlyByWhoTakesAnything() {
        let old = Freshness(lifetime: 0, age: .max, source: .explicit)
        #expect(Self.decide("max-stale", "", old) == .stale(revalidates: false))
        #expect(Self.decide("max-stale=9999999", "", old) == .validate(.stale))
        #expect(Self.decide(nil, "stale-while-revalidate=9999999", old) == .validate(.stale))
    }

    @Test(
        arguments: [
            (nil, "no-cache", .fresh, .validate(.stale)),
            ("no-cache", "no-cache", .validate(.request), .validate(.request)),
            ("max-stale", "must-revalidate, no-cache", .fresh, .stale(revalidates: false)),
            (nil, "must-revalidate, stale-while-revalidate=30", .fresh, .stale(revalidates: true)),
        ] as [(String?, String, Reuse, Reuse)])
    func aRulesLifetimeGoesBeforeWhatTheOriginSaysOfAskingAgain(
        request: String?, response: String, fresh: Reuse, stale: Reuse
    ) {
        #expect(Self.decide(request, response, Freshness(lifetime: 100, age: 40, source: .rule)) == fresh)
        #expect(Self.decide(request, response, Freshness(lifetime: 10, age: 40, source: .rule)) == stale)
    }

    @Test(
        arguments: [nil, "no-cache", "max-age=0", "only-if-cached", "min-fresh=1000"],
        ["", "no-cache", "must-revalidate", "immutable"])
    func offlineWhatIsTherePlays(request: String?, response: String) {
        #expect(Self.decide(request, response, Self.fresh, isOffline: true) == .fresh)
        #expect(Self.decide(request, response, Self.stale, isOffline: true) == .stale(revalidates: false))
    }

    // RFC 9111 §5.4
    @Test(
        arguments: [
            (nil, nil, false), (nil, "no-cache", true), (nil, "foo, No-Cache", true), (nil, "foo", false),
            (nil, "no-cachet", false),
            ("max-age=5", "no-cache", false), ("", "no-cache", false), ("no-cache", nil, true),
        ] as [(String?, String?, Bool)])
    func pragmaCountsOnlyWithoutCacheControl(cacheControl: String?, pragma: String?, noCache: Bool) {
        #expect(RequestDirectives(cacheControl: cacheControl, pragma: pragma).control.noCache == noCache)
    }

    // MARK: Errors

    @Test(
        arguments: [
            // §4.2.4: disconnected, or the origin has a bad moment: what is there plays.
            (nil, "", true, true), ("no-cache", "", true, true), ("max-age=0", "", true, true),
            // §5.2.2.2, §5.2.2.4
            (nil, "must-revalidate", false, false), (nil, "no-cache", false, false),
            (nil, "must-revalidate, stale-if-error=1000", false, false),
            ("stale-if-error=1000", "must-revalidate", false, false), ("max-stale", "must-revalidate", false, false),
            // RFC 5861 §4: the origin's limit holds for its errors, the client's for any.
            (nil, "stale-if-error=30", true, true), (nil, "stale-if-error=29", true, false),
            (nil, "stale-if-error", true, false),
            (nil, "stale-if-error=99999999999999999999", true, true),
            ("stale-if-error=30", "", true, true), ("stale-if-error=29", "", false, false),
            ("stale-if-error=30", "stale-if-error=29", true, true),
            ("stale-if-error=29", "stale-if-error=30", false, false),
        ] as [(String?, String, Bool, Bool)])
    func staleResponseIsGivenOutOnError(request: String?, response: String, disconnected: Bool, error: Bool) {
        #expect(Self.mayServe(request, response, Self.stale, isDisconnected: true) == disconnected)
        #expect(Self.mayServe(request, response, Self.stale, isDisconnected: false) == error)
    }

    @Test(
        arguments: [
            (nil, "", true), ("no-cache", "", true), (nil, "must-revalidate", true),
            ("no-cache", "must-revalidate, stale-if-error=0", true), ("stale-if-error=0", "", true),
            (nil, "no-cache", false),
        ] as [(String?, String, Bool)])
    func freshResponseThatWasAskedForAllTheSameIsGivenOutOnError(request: String?, response: String, isGiven: Bool) {
        for isDisconnected in [true, false] {
            #expect(Self.mayServe(request, response, Self.fresh, isDisconnected: isDisconnected) == isGiven)
        }
    }

    @Test(arguments: ["must-revalidate", "no-cache"])
    func whoRunsTheProxyMayOverruleTheOrigin(response: String) {
        for isDisconnected in [true, false] {
            #expect(Self.mayServe(nil, response, Self.stale, isDisconnected: isDisconnected, .everything))
            #expect(
                Self.mayServe(
                    nil, response, Freshness(lifetime: 10, age: 40, source: .rule), isDisconnected: isDisconnected))
        }
    }

    @Test(
        arguments: [
            (.nothing, false, nil, "no-cache", .refusedByOrigin), (.nothing, true, nil, "no-cache", .refusedByOrigin),
            (.kept, false, nil, "no-cache", .refusedByOrigin), (.kept, true, nil, "no-cache", .serve),
            (.kept, true, nil, "must-revalidate", .serve),
            (.kept, true, nil, "stale-if-error=1", .serve), (.kept, true, "no-cache", "no-cache", .serve),
            // The client is not the origin: what it says for itself is heard.
            (.kept, true, "stale-if-error=29", "no-cache", .refusedByRequest),
            (.kept, true, "stale-if-error=30", "no-cache", .serve),
            (.everything, false, "stale-if-error=0", "no-cache", .serve),
        ] as [(StalePlay, Bool, String?, String, Reuse.OnError)])
    func whatIsPinnedOrDownloadedPlaysWhateverItsOriginSaid(
        _ play: StalePlay, isKept: Bool, request: String?, response: String, verdict: Reuse.OnError
    ) {
        for isDisconnected in [true, false] {
            #expect(
                Self.onError(request, response, Self.stale, isDisconnected: isDisconnected, play, isKept: isKept)
                    == verdict)
        }
    }

    private static func mayServe(
        _ request: String?, _ response: String, _ freshness: Freshness, isDisconnected: Bool, _ play: StalePlay = .kept
    ) -> Bool {
        onError(request, response, freshness, isDisconnected: isDisconnected, play, isKept: false) == .serve
    }

    private static func onError(
        _ request: String?, _ response: String, _ freshness: Freshness, isDisconnected: Bool, _ play: StalePlay,
        isKept: Bool
    ) -> Reuse.OnError {
        Reuse.onError(
            RequestDirectives(cacheControl: request, pragma: nil), response: CacheControl(parsing: response), freshness,
            isDisconnected: isDisconnected, play,
            isKept: isKept)
    }

    @Test func errorsAreToldFromWhatBecameOfTheResource() {
        for isRefusable in [false, true] {
            let errors = (100...599).filter { Reuse.isError(status: $0, isKept: false, isRefusable: isRefusable) }
            #expect(errors == [408, 429] + Array(500...599))
        }
        // Of what is kept, also that it is gone; and of what is whole for one user, that it is refused.
        #expect((400...410).filter { Reuse.isError(status: $0, isKept: true, isRefusable: true) } == [404, 408, 410])
        #expect((100...499).filter { Reuse.isError(status: $0, isKept: true, isRefusable: false) } == Array(400...499))
        #expect((100...599).filter(Reuse.isGone) == [404, 410])
    }

    @Test(
        arguments: [
            // Habits of players
            ("no-cache", nil, ""), ("max-age=0", nil, ""), (nil, "no-cache", ""), ("no-cache, max-age=0", nil, ""),
            ("max-age=x", nil, ""), (nil, nil, ""), ("no-cache", "no-cache", ""),
            // What is meant as it is said
            ("max-age=1", nil, "max-age=1"), ("no-cache, no-store", nil, "no-store"),
            ("only-if-cached, no-cache", nil, "only-if-cached"), ("min-fresh=60, max-age=0", nil, "min-fresh=60"),
            ("no-cache, max-stale=9", nil, "max-stale=9"), ("no-cache, stale-if-error=9", nil, "stale-if-error=9"),
        ] as [(String?, String?, String)])
    func whatIsAskedForAgainByHabitNeedNotBe(cacheControl: String?, pragma: String?, rest: String) {
        let directives = RequestDirectives(cacheControl: cacheControl, pragma: pragma)
        #expect(directives.ignoringReload == RequestDirectives(cacheControl: rest, pragma: nil))
    }
}
