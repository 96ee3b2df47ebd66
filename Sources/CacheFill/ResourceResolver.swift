import CachePolicy
import DiskCache

/// What to do for a request, given what is known of its resource.
package enum Resolution {
    /// The index is being read: wait to be woken.
    case wait
    /// Use the stored generation, as the snapshot shows it.
    case use(Generation, Generation.Snapshot, Use)
    /// Revalidate the stored generation: open the resource with its validators.
    case validate(Generation, Freshness, Reuse.Need)
    /// Turn to another variant: the stored one was selected by other request fields, and this request's variant has
    /// this key (RFC 9111 §4.1). If that can't be had, what is kept serves.
    case turn(to: CacheKey, kept: Generation?)
    /// Nothing is stored: open the resource.
    case open
    /// What is stored must not answer requests: remove it, and open the resource. It was stored while the cache was
    /// private (RFC 9111 §3.5, §5.2.2.7).
    case replace(Generation)
    /// Ask the origin for this request alone, and store nothing.
    case bypass(Bypass)
    /// The origin would have to be contacted, and must not be (RFC 9111 §5.2.1.7).
    case refuse

    package enum Use {
        /// Whatever its age.
        case anyway
        case fresh(Freshness)
        /// If it revalidates, the origin is contacted while the response is served (RFC 5861 §3).
        case stale(Freshness, revalidates: Bool)
    }

    package enum Bypass {
        /// A rule says so.
        case rule
        /// Something is stored, or may be, that cannot be read at the moment, and must not be replaced.
        case unreadable
        /// The origin selects by other fields each time.
        case vary
        /// What is stored must not answer requests, and stays: it is pinned, or no origin may be contacted.
        case unfit
    }
}

/// Decides how a request gets its resource: look it up, turn to the variant that its fields select, use the stored
/// response, revalidate it, or open the resource. The same rules serve players and downloads. A value: the caller acts
/// on the result.
///
/// Variants are stored under several keys. The first answer is stored under the URL's own key, and its `Vary` says
/// which fields count.
package struct ResourceResolver {
    /// What the resource is wanted for.
    package enum Purpose {
        /// To answer a client, within its request's directives and a rule's lifetime in seconds.
        case answer(RequestDirectives, ttl: Int64?, isOffline: Bool)
        /// To be in the cache, fresh or stale.
        case presence

        fileprivate var mayRequest: Bool {
            if case .answer(let directives, _, _) = self { !directives.control.onlyIfCached } else { true }
        }

        fileprivate var isOffline: Bool { if case .answer(_, _, true) = self { true } else { false } }
    }

    /// Whose request needs the resource.
    package protocol User {
        var purpose: Purpose { get }
        var resolvedRule: ResolvedRule { get }
        /// Those of the rule, without a copy of that.
        var cacheTerms: CacheTerms { get }
        /// Whether the request has credentials of its client's own.
        var isAuthorized: Bool { get }
        /// The variant that the request's fields select.
        func selection(of variant: Variant) -> Variant
    }

    /// The URL's own key.
    private let key: CacheKey
    /// How often it has turned to another variant.
    package private(set) var turns = 0
    /// A generation to use whatever its age: it has just been validated, or validation failed and it may be served
    /// stale.
    package var accepted: Generation?
    private static let mostTurns = 3

    package init(_ key: CacheKey) { self.key = key }

    /// - Parameters:
    ///   - view: what is known of the resource.
    ///   - purpose: nil for the user's own.
    ///   - isConfirmed: whether its origin is known to be there.
    ///   - now: seconds since 1970.
    ///   - instant: nanoseconds of a monotonic clock.
    package mutating func resolve(
        _ view: OpenResource.View, for user: some User, as purpose: Purpose? = nil,
        isConfirmed: @autoclosure () -> Bool = true, now: @autoclosure () -> Int64, instant: @autoclosure () -> UInt64
    ) -> Resolution {
        let purpose = purpose ?? user.purpose
        switch view {
        case .lookingUp: return .wait
        case .unknown: return purpose.mayRequest ? .open : .refuse
        case .unreadable: return purpose.mayRequest ? .bypass(.unreadable) : .refuse
        case .generation(let generation):
            let stored = generation.snapshot, head = stored.head
            if let turn = turn(from: generation, stored, purpose, user) { return turn }
            if generation.isUnreadable, purpose.mayRequest, !purpose.isOffline { return .bypass(.unreadable) }
            let reading = head.reading(user.cacheTerms)
            if let other = refusal(of: generation, stored, reading, purpose, user) { return other }
            guard case .answer(let directives, let ttl, let isOffline) = purpose, generation !== accepted else {
                return .use(generation, stored, .anyway)
            }
            let freshness = head.freshness(ttl: ttl, reading, now: now(), instant: instant())
            // Without its origin, what it is to replace plays: it is used only while that is there, however fresh.
            if generation.isHidden, purpose.mayRequest, !isOffline, !isConfirmed() {
                return .validate(generation, freshness, .stale)
            }
            return
                switch Reuse.decide(directives, response: reading.directives.obeyed, freshness, isOffline: isOffline)
            {
            case .fresh: .use(generation, stored, .fresh(freshness))
            case .stale(let revalidates): .use(generation, stored, .stale(freshness, revalidates: revalidates))
            case .validate(let need): .validate(generation, freshness, need)
            case .gatewayTimeout: .refuse
            }
        }
    }

    /// Resolves a generation that an opening has found, perhaps for another request that started it.
    /// - Returns: nil if it is the right variant.
    package mutating func resolve(opened generation: Generation, for user: some User) -> Resolution? {
        let stored = generation.snapshot, purpose = user.purpose
        return turn(from: generation, stored, purpose, user)
            ?? refusal(of: generation, stored, stored.head.reading(user.cacheTerms), purpose, user)
    }

    /// What to do instead if a stored response must not answer the request; nil if it may.
    private func refusal(
        of generation: Generation, _ stored: Generation.Snapshot, _ reading: @autoclosure () -> GenerationHead.Reading,
        _ purpose: Purpose, _ user: some User
    ) -> Resolution? {
        let head = stored.head
        guard user.cacheTerms.kind == .shared,
            !reading().directives.permitsUse(of: head.fields, head.variant, isAuthorized: user.isAuthorized)
        else { return nil }
        guard purpose.mayRequest else { return .refuse }
        return stored.isKept || purpose.isOffline ? .bypass(.unfit) : .replace(generation)
    }

    /// RFC 9111 §4.1, but for what the user keeps: the proxy downloaded it in its own name, for any player.
    private mutating func turn(
        from generation: Generation, _ stored: Generation.Snapshot, _ purpose: Purpose, _ user: some User
    ) -> Resolution? {
        let variant = stored.head.variant
        guard !variant.fields.isEmpty else { return nil }
        let own = user.selection(of: variant)
        guard own != variant else { return nil }
        let isKept = stored.isKept && user.resolvedRule.playsKept
        if isKept, own.differsByClientAlone(from: variant) { return nil }
        guard turns < Self.mostTurns else { return purpose.mayRequest ? .bypass(.vary) : .refuse }
        turns += 1
        let serves = isKept && generation.isComplete && own.hasSameCredentials(as: variant)
        return .turn(to: own.variantKey(of: key), kept: serves ? generation : nil)
    }
}

extension ResourceResolver.User {
    package var cacheTerms: CacheTerms { resolvedRule.terms }
}
