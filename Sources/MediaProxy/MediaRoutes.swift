import CachePolicy
import HTTPModel

/// Reads which resource a request target means; what was read lately is remembered. Loop-bound.
final class MediaRoutes {
    struct Route {
        let url: OriginURL
        let key: CacheKey
        let treatment: Treatment
        /// Whether a rule has made the key.
        let hasOwnKey: Bool
    }

    private let policy: Current<ProxyPolicy>
    private var version = -1

    init(_ policy: Current<ProxyPolicy>) { self.policy = policy }

    private var recent: [String: Route] = [:]
    private static let capacity = 1024

    /// Whether the target names a resource of an origin, well-formed or not.
    static func isMedia(_ target: String) -> Bool {
        target.hasPrefix("/http/") || target.hasPrefix("/https/") || target.hasPrefix("/http:") || target.hasPrefix("/https:")
    }

    func route(_ target: String) throws(OriginURLError) -> Route {
        if policy.version != version {
            version = policy.version
            recent = [:]
        }
        if let route = recent[target] { return route }
        let url = try OriginURL(target: target)
        let (key, treatment) = policy.value.resolve(url)
        let route = Route(url: url, key: key, treatment: treatment, hasOwnKey: key != url.cacheKey)
        if recent.count >= Self.capacity { recent.removeAll(keepingCapacity: true) }
        recent[target] = route
        return route
    }
}
