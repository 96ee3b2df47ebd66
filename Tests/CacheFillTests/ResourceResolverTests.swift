import CachePolicy
import DiskCache
import HTTPModel
import Testing

@testable import CacheFill

/// What is to be done for a request, by what is known of its resource. It is 1,000 s after the epoch.
@Suite struct ResourceResolverTests {
    private static let key = CacheKey(text: "https://example.com/a")
    private let buffer: PassThroughBuffer
    private let generation: Generation
    private var resolver = ResourceResolver(key)

    init() throws {
        buffer = try PassThroughBuffer()
        generation = try buffer.makeStored()
    }

    /// In words.
    private static func text(_ resolution: Resolution?) -> String {
        switch resolution {
        case .wait: "wait"
        case .use(_, _, .anyway): "use"
        case .use(_, _, .fresh): "use, fresh"
        case .use(_, _, .stale(_, revalidates: false)): "use, stale"
        case .use(_, _, .stale(_, revalidates: true)): "use, stale, and ask"
        case .validate(_, _, .stale): "validate, stale"
        case .validate(_, _, .request): "validate, as the request wants"
        case .turn(let key, _): "turn to \(key.text)"
        case .open: "open"
        case .replace: "replace"
        case .bypass(let reason): "bypass: \(reason)"
        case .refuse: "refuse"
        case nil: "it is for this one"
        }
    }

    private static func answer(_ request: String? = nil, ttl: Int64? = nil, isOffline: Bool = false)
        -> ResourceResolver.Purpose
    {
        .answer(RequestDirectives(cacheControl: request, pragma: nil), ttl: ttl, isOffline: isOffline)
    }

    private struct User: ResourceResolver.User {
        let purpose: ResourceResolver.Purpose
        var resolvedRule = ResolvedRule()
        var isAuthorized = false
        var own: (Variant) -> Variant = { $0 }

        func selection(of variant: Variant) -> Variant { own(variant) }

        func under(_ terms: CacheTerms) -> User {
            var user = self
            user.resolvedRule.terms = terms
            return user
        }
    }

    /// - Parameters:
    ///   - control: the stored response's `Cache-Control`; it is 10 s old.
    ///   - language: what the stored one was chosen for; nil where there is no `Vary`.
    private mutating func resolve(
        _ purpose: ResourceResolver.Purpose, control: String = "max-age=60", language: String? = nil, own: String = "de"
    ) -> String {
        store(control: control, language: language)
        let user = User(purpose: purpose, own: { _ in Self.variant(own) })
        return Self.text(resolver.resolve(.generation(generation), for: user, now: 1000, instant: 0))
    }

    private func store(control: String, language: String?) {
        generation.freshen { _ in
            GenerationHead(
                status: 200, fields: HeaderFields([HeaderFields.Line(name: "Cache-Control", value: control)]),
                variant: language.map(Self.variant) ?? Variant(), finalURL: Self.key.text, storedAt: 990)
        }
    }

    private static func user(_ language: String) -> User {
        User(purpose: answer(), own: { _ in variant(language) })
    }

    private static func variant(_ language: String) -> Variant {
        Variant([Variant.Field(name: "accept-language", value: language)])
    }

    // MARK: Nothing is stored

    @Test(
        arguments: [
            (.unknown, answer(), "open"), (.unknown, .presence, "open"),
            (.unreadable, answer(), "bypass: unreadable"), (.unreadable, .presence, "bypass: unreadable"),
            (.lookingUp, answer(), "wait"), (.lookingUp, .presence, "wait"),
            // RFC 9111 §5.2.1.7
            (.unknown, answer("only-if-cached"), "refuse"), (.unreadable, answer("only-if-cached"), "refuse"),
            (.lookingUp, answer("only-if-cached"), "wait"),
        ] as [(OpenResource.View, ResourceResolver.Purpose, String)])
    func whatIsNotKnownIsOpened(view: OpenResource.View, purpose: ResourceResolver.Purpose, resolution: String) {
        var resolver = resolver
        let user = User(purpose: purpose) { variant in
            Issue.record("nothing was chosen by fields")
            return variant
        }
        let found = resolver.resolve(view, for: user, now: 1000, instant: 0)
        #expect(Self.text(found) == resolution)
    }

    // MARK: Something is stored

    @Test(
        arguments: [
            (answer(), "max-age=60", "use, fresh"), (answer(), "max-age=9", "validate, stale"),
            // RFC 9111 §5.2.1.4, §5.2.1.7
            (answer("no-cache"), "max-age=60", "validate, as the request wants"),
            (answer("only-if-cached"), "max-age=60", "use, fresh"), (answer("only-if-cached"), "max-age=9", "refuse"),
            // RFC 5861 §3
            (answer(), "max-age=9, stale-while-revalidate=60", "use, stale, and ask"),
            (answer("max-stale"), "max-age=9", "use, stale"),
            // A rule's lifetime goes before the origin's.
            (answer(ttl: 60), "max-age=9", "use, fresh"), (answer(ttl: 5), "max-age=60", "validate, stale"),
            (answer(isOffline: true), "max-age=9", "use, stale"),
            // What is to be there is there, fresh or not.
            (.presence, "max-age=9", "use"), (.presence, "no-cache", "use"),
        ] as [(ResourceResolver.Purpose, String, String)])
    func whatIsStoredIsUsedOrValidated(purpose: ResourceResolver.Purpose, control: String, resolution: String) {
        var this = self
        #expect(this.resolve(purpose, control: control) == resolution)
    }

    /// What the disk could not read is left alone, unless there is nothing else.
    @Test(
        arguments: [
            (answer(), "bypass: unreadable"), (.presence, "bypass: unreadable"),
            (answer("no-cache"), "bypass: unreadable"),
            (answer("only-if-cached"), "use, fresh"), (answer(isOffline: true), "use, fresh"),
        ] as [(ResourceResolver.Purpose, String)])
    func whatTheDiskCannotReadIsBypassed(purpose: ResourceResolver.Purpose, resolution: String) {
        _ = generation.noteUnreadable(0..<10)
        var this = self
        #expect(this.resolve(purpose) == resolution)
        #expect(this.resolve(purpose, language: "fr").hasPrefix("turn to"), "another variant may be readable")
    }

    // RFC 9111 §3.5, §5.2.2.7
    @Test(
        arguments: [
            (answer(), "private, max-age=60", "replace"), (answer(), "private", "replace"),
            (.presence, "private", "replace"), (answer("only-if-cached"), "private", "refuse"),
            (answer("max-stale"), "private", "replace"), (answer(ttl: 60), "private", "replace"),
            (answer(isOffline: true), "private, max-age=60", "bypass: unfit"),
            (answer(), "max-age=60", "use, fresh"), (answer(), "max-age=60, s-maxage=9", "validate, stale"),
            (answer("max-stale"), "max-age=9, proxy-revalidate", "validate, stale"), (.presence, "max-age=9", "use"),
        ] as [(ResourceResolver.Purpose, String, String)])
    func whatASharedCacheMustNotHaveIsReplaced(purpose: ResourceResolver.Purpose, control: String, resolution: String) {
        store(control: control, language: nil)
        var resolver = resolver
        let user = User(purpose: purpose).under(.shared)
        // Not even what has just been validated, for another request perhaps.
        for accepted in resolution == "replace" ? [nil, generation] : [nil] {
            resolver.accepted = accepted
            let found = resolver.resolve(.generation(generation), for: user, now: 1000, instant: 0)
            #expect(Self.text(found) == resolution)
        }
        let opened = resolver.resolve(opened: generation, for: user)
        #expect((opened == nil) == !control.contains("private"))
    }

    @Test func whatCredentialsOpenedIsReplacedForRequestsWithSome() {
        let variant = Variant([Variant.Field(name: "authorization", value: " #1")])
        generation.freshen { _ in
            GenerationHead(
                status: 200, fields: HeaderFields([.init(name: "Cache-Control", value: "max-age=60")]),
                variant: variant, finalURL: Self.key.text, storedAt: 990)
        }
        for (terms, isAuthorized, resolution) in [
            (CacheTerms.shared, true, "replace"), (.shared, false, "use, fresh"), (.private, true, "use, fresh"),
        ] {
            var resolver = resolver
            let user = User(purpose: Self.answer(), isAuthorized: isAuthorized).under(terms)
            let found = resolver.resolve(.generation(generation), for: user, now: 1000, instant: 0)
            #expect(Self.text(found) == resolution)
        }
    }

    @Test mutating func whatTheOriginHasJustVouchedForIsUsed() {
        resolver.accepted = generation
        #expect(resolve(Self.answer("no-cache"), control: "max-age=9") == "use")
        // Not what was chosen by other fields.
        #expect(resolve(Self.answer(), language: "en").hasPrefix("turn"))
    }

    // MARK: Variants

    @Test(arguments: [answer(), .presence, answer("only-if-cached")])
    func requestTurnsToTheVariantThatItsFieldsChoose(purpose: ResourceResolver.Purpose) {
        var this = self
        #expect(this.resolve(purpose, language: "de") != "turn to https://example.com/a accept-language=de")
        #expect(this.resolve(purpose, language: "en") == "turn to https://example.com/a accept-language=de")
    }

    @Test(
        arguments: [
            (answer(), "bypass: vary"), (.presence, "bypass: vary"), (answer("only-if-cached"), "refuse"),
        ] as [(ResourceResolver.Purpose, String)])
    func whoFindsAnotherSelectionEachTimeDoesNotTurnForEver(purpose: ResourceResolver.Purpose, resolution: String) {
        var this = self
        for turn in 1...3 {
            #expect(this.resolve(purpose, language: "en").hasPrefix("turn"))
            #expect(this.resolver.turns == turn)
        }
        #expect(this.resolve(purpose, language: "en") == resolution)
    }

    /// It may have come for a request that others have joined.
    @Test mutating func whatAnOpeningFoundIsForThisRequestOrNot() {
        store(control: "max-age=60", language: "en")
        let same = resolver.resolve(opened: generation, for: Self.user("en"))
        #expect(Self.text(same) == "it is for this one")
        let other = resolver.resolve(opened: generation, for: Self.user("de"))
        #expect(Self.text(other) == "turn to https://example.com/a accept-language=de")
    }
}
