import CachePolicy
import DiskCache

/// A request's way to its resource, for players and downloads: which resource it is by what is known, the fetch that
/// opens it or validates what is stored, and how often that began anew. They act on what it says. Loop-bound.
package struct Opening {
    /// The requested resource; another one if its origin selects a variant by further request fields.
    package private(set) var resource: OpenResource
    package var resolver: ResourceResolver
    /// What opens the resource; nil if nothing does, or its bytes are read by now.
    package private(set) var fetch: SharedFetch?
    private var restarts = 0
    /// Whether the fetch sends this request to the origin, not another's.
    private var isOwn = false
    private let loop: LoopFiller
    private let follower: FollowerID
    private let pace: FillPace?
    private static let mostRestarts = 4

    /// - Parameters:
    ///   - follower: follows the fetch.
    ///   - pace: counts what is delivered to a download meanwhile.
    package init(_ key: CacheKey, _ follower: FollowerID, pace: FillPace? = nil, on loop: LoopFiller) {
        (resource, resolver) = (loop.filler.resource(key), ResourceResolver(key))
        (self.follower, self.pace, self.loop) = (follower, pace, loop)
    }

    // MARK: Looking

    /// What to do by what is known now.
    /// - Parameter wake: called if that is to wait.
    package mutating func look(
        for user: some ResourceResolver.User, wake: @autoclosure () -> @Sendable () -> Void
    ) -> Resolution {
        var view = loop.filler.look(at: resource, wake: wake())
        // It may have become unreachable since: what it is to replace plays.
        if case .generation(let generation) = view, generation.isHidden, loop.origins.isOffline {
            resource.leaveSuccession()
            view = loop.filler.look(at: resource, wake: wake())
        }
        let (resource, loop) = (resource, loop)
        return resolver.resolve(
            view, for: user, isConfirmed: Self.isConfirmed(resource, for: user, loop.filler),
            now: loop.filler.now(), instant: loop.filler.instant)
    }

    /// Whether a version that is to replace one that is kept may be used: a fetch of it runs, or it is whole and its
    /// host was not unreachable a moment ago.
    private static func isConfirmed(
        _ resource: OpenResource, for user: some ResourceResolver.User, _ filler: CacheFiller
    ) -> Bool {
        resource.mayBeFetched
            || resource.current?.isComplete == true
                && !filler.backoff.isDown(resource.key.withoutVariant.text, beside: user.resolvedRule.parents)
    }

    /// What to do instead of using what the fetch has found, perhaps for another request; nil if it is to be used. A
    /// player's request that joined shares what may be reused without validation (RFC 9111 §4, §5.2.2.4): its own
    /// directives (`no-cache`) are met, as it has just come.
    package mutating func alternative(to generation: Generation, for user: some ResourceResolver.User) -> Resolution? {
        guard follower.kind == .reader, fetch == nil || !isOwn else {
            return resolver.resolve(opened: generation, for: user)
        }
        let shared = ResourceResolver.Purpose.answer(RequestDirectives(), ttl: user.resolvedRule.ttl, isOffline: false)
        let resolution = resolver.resolve(
            .generation(generation), for: user, as: shared, now: loop.filler.now(), instant: loop.filler.instant)
        return if case .use = resolution { nil } else { resolution }
    }

    package mutating func turn(to key: CacheKey) { resource = loop.filler.resource(key) }

    /// Begins anew, as what was found is not what it was.
    /// - Returns: false after too many times.
    package mutating func restart(_ url: OriginURL, _ rule: ResolvedRule) -> Bool {
        guard restarts < Self.mostRestarts else { return false }
        restarts += 1
        // The resolver may have found that another page has the same media, which is cached under that one's key.
        guard rule.resolver != nil, case let key = loop.filler.policy.value.resolve(url).key, !resource.key.isOf(key)
        else { return true }
        (resource, resolver) = (loop.filler.resource(key), ResourceResolver(key))
        return true
    }

    // MARK: The fetch

    /// Has the resource opened.
    /// - Parameters:
    ///   - validated: the stored generation, if it is to be validated.
    ///   - alone: for this request alone, and past the cache.
    /// - Returns: whether another request had begun it; nil if another generation has become known.
    package mutating func open(_ demand: Demand, validating validated: Generation? = nil, alone: Bool = false) -> Bool?
    {
        let opened = loop.open(resource, demand, validating: validated, follower: follower, alone: alone)
        (fetch, isOwn) = (opened?.0, opened?.isCollapsed == false)
        return opened?.isCollapsed
    }

    /// Joins the fetch that opens the resource.
    /// - Returns: whether there is one.
    package mutating func join() -> Bool {
        (fetch, isOwn) = (resource.joinOpening(follower), false)
        return fetch != nil
    }

    package enum Outcome {
        case found(Opened, by: SharedFetch)
        case failed(FillError)
        /// It ended without an answer, which another request may get.
        case stopped(FillError)
    }

    /// What has come of the fetch, which is then to be left or handed over; nil if it is to be waited for.
    /// - Parameter wake: called once there is something, if there is nothing yet.
    package func outcome(orWake wake: @escaping @Sendable () -> Void) -> Outcome? {
        guard let fetch, let result = fetch.result(for: follower, orWake: wake) else { return nil }
        if let found = result.opening { return .found(found, by: fetch) }
        guard let end = result.end else { return nil }
        return if case .failed(let error) = end { .failed(error) } else {
            .stopped(.unusable("it ended before the header was complete"))
        }
    }

    package mutating func leave() {
        fetch?.leave(follower, counting: pace)
        fetch = nil
    }

    /// The fetch goes on for who reads what it has found.
    package mutating func handOver() { fetch = nil }
}
