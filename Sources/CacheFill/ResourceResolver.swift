import CachePolicy
import DiskCache

/// What is to be done for a request, by what is known of its resource.
package enum Resolution {
    /// The index is being asked: whoever has asked is woken.
    case wait
    /// What is stored, as it was when it was looked at, is what it wants.
    case use(Generation, Generation.Snapshot, Use)
    /// So it may be: its origin is asked whether that still holds, by an opening with validators.
    case validate(Generation, Freshness, Reuse.Need)
    /// What is stored was chosen by other request fields: the answer to these stands under this key (RFC 9111 §4.1).
    case turn(to: CacheKey)
    /// Nothing is stored: an opening finds out what it is.
    case open
    /// The origin is asked for this request alone, and nothing is kept.
    case bypass(Bypass)
    /// The origin would have to be asked, and is not to be (RFC 9111 §5.2.1.7).
    case refuse

    package enum Use {
        /// Whatever its age.
        case anyway
        case fresh(Freshness)
        /// Where it revalidates, the origin is asked meanwhile (RFC 5861 §3).
        case stale(Freshness, revalidates: Bool)
    }

    package enum Bypass {
        /// A rule says so.
        case rule
        /// Nothing may take the place of what is perhaps there, and cannot be read just now.
        case unreadable
        /// The origin chooses by other fields each time.
        case vary
    }
}

/// How one request finds what it wants: looks the resource up, turns to the variant that its fields choose, uses what is
/// stored or has it validated, or has the resource opened. The one answer for players and downloads: a value, which does
/// nothing of that itself.
///
/// What its origin chose by request fields stands under several keys. The URL's own has the first answer that came, and
/// that one's `Vary` says which fields count.
package struct ResourceResolver {
    /// What it is wanted for.
    package enum Purpose {
        /// To be given to a client, as its request's directives, and a rule's lifetime in seconds, allow.
        case answer(RequestDirectives, ttl: Int64?, isOffline: Bool)
        /// To be in the cache, fresh or not.
        case presence

        fileprivate var mayAsk: Bool {
            if case .answer(let directives, _, _) = self { !directives.control.onlyIfCached } else { true }
        }
    }

    /// The URL's own.
    private let key: CacheKey
    /// How often it has turned to another variant.
    package private(set) var turns = 0
    /// What holds for this request, whatever its age: its origin has been asked, or could not tell.
    package var accepted: Generation?
    private static let mostTurns = 3

    package init(_ key: CacheKey) { self.key = key }

    /// - Parameters:
    ///   - view: what is known of the resource that it has come to.
    ///   - now: seconds since 1970.
    ///   - instant: nanoseconds of a clock that never goes back.
    ///   - selection: the request fields by which a variant was chosen, as this request has them.
    package mutating func resolve(
        _ view: OpenResource.View, for purpose: Purpose, now: @autoclosure () -> Int64,
        instant: @autoclosure () -> UInt64, selection: (Variant) -> Variant
    ) -> Resolution {
        switch view {
        case .lookingUp: return .wait
        case .unknown: return purpose.mayAsk ? .open : .refuse
        case .unreadable: return purpose.mayAsk ? .bypass(.unreadable) : .refuse
        case .generation(let generation):
            let stored = generation.snapshot, head = stored.head
            if let turn = turn(from: head.variant, purpose, selection) { return turn }
            guard case .answer(let directives, let ttl, let isOffline) = purpose, generation !== accepted else {
                return .use(generation, stored, .anyway)
            }
            let freshness = head.freshness(ttl: ttl, now: now(), instant: instant())
            return switch Reuse.decide(directives, response: head.cacheControl, freshness, isOffline: isOffline) {
            case .fresh: .use(generation, stored, .fresh(freshness))
            case .stale(let revalidates): .use(generation, stored, .stale(freshness, revalidates: revalidates))
            case .validate(let need): .validate(generation, freshness, need)
            case .gatewayTimeout: .refuse
            }
        }
    }

    /// An opening has found this: perhaps for another request, which others have joined.
    /// - Returns: nil where it is for this one.
    package mutating func resolve(
        opened generation: Generation, for purpose: Purpose, selection: (Variant) -> Variant
    ) -> Resolution? {
        turn(from: generation.head.variant, purpose, selection)
    }

    /// RFC 9111 §4.1
    private mutating func turn(
        from variant: Variant, _ purpose: Purpose, _ selection: (Variant) -> Variant
    ) -> Resolution? {
        guard !variant.isEmpty else { return nil }
        let own = selection(variant)
        guard own != variant else { return nil }
        guard turns < Self.mostTurns else { return purpose.mayAsk ? .bypass(.vary) : .refuse }
        turns += 1
        return .turn(to: own.variantKey(of: key))
    }
}
