import CachePolicy
import EventIO
import HTTPModel
import Presentations

/// How a client says which resource it means.
enum RouteForm: Sendable {
    /// `/https/host/path`: to a browser, all origins are the proxy.
    case path
    /// `GET https://host/path`: the client takes this for an HTTP proxy (RFC 9112 §3.2.2).
    case absolute
    /// Below a mount: the client takes this for the origin.
    case mount

    /// Whether what the client says of itself to the origin, and the origin of who may read it, is meant for the other
    /// side.
    var isTransparent: Bool { self != .path }
}

/// Which resource a request is for, and how it is handled.
struct Route: Sendable {
    let url: OriginURL
    let key: CacheKey
    let resolvedRule: ResolvedRule
    let form: RouteForm
    /// Whether a rule has made the key.
    let hasOwnKey: Bool
    /// Whether a client's cookies for this target are the origin's.
    let passesCookies: Bool
    /// Whether the proxy serves nothing but the origin of this resource: then that is what its name stands for.
    let isOneSite: Bool

    /// Whether it is a playlist that was recorded: no origin has it.
    let isRecording: Bool

    /// Whether anybody could have the same from the origin: fields of a rule may be what opens it.
    var isOpen: Bool { resolvedRule.headers.lines.isEmpty }
}

/// Reads which resource a request target means; what was read lately is remembered. Loop-bound.
final class MediaRoutes {
    /// Why a target names nothing that is served.
    struct Refusal: Error {
        let status: Int
        let reason: String
    }

    let policy: Current<ProxyPolicy>
    private var recent: [String: Route] = [:]
    private var version: Int
    private static let capacity = 1024

    init(_ policy: Current<ProxyPolicy>) {
        self.policy = policy
        version = policy.version
    }

    /// - Parameter target: in origin form or in absolute form.
    /// - Returns: nil where it names no resource of an origin, but something of the proxy's own, or nothing.
    func route(_ target: String) throws(Refusal) -> Route? {
        if version != policy.version {
            version = policy.version
            recent.removeAll(keepingCapacity: true)
        }
        if let route = recent[target] { return route }
        let policy = policy.value
        let meant: (url: OriginURL, form: RouteForm)?
        do throws(OriginURLError) { meant = try Self.read(target, policy.mounts) } catch {
            throw Refusal(status: 400, reason: error.reason)
        }
        guard let (url, form) = meant else { return nil }
        guard form == .mount || policy.servesAnyOrigin else { throw Refusal.mountsAlone }
        let (key, resolvedRule) = policy.resolve(url)
        let route = Route(
            url: url, key: key, resolvedRule: resolvedRule, form: form, hasOwnKey: key != url.cacheKey,
            passesCookies: form == .absolute || form == .mount && policy.isOneSite, isOneSite: policy.isOneSite,
            isRecording: RecordingName.isOfRecording(url))
        if recent.count >= Self.capacity { recent.removeAll(keepingCapacity: true) }
        recent[target] = route
        return route
    }

    private static func read(_ target: String, _ mounts: [Mount]) throws(OriginURLError) -> (OriginURL, RouteForm)? {
        guard target.utf8.first == UInt8(ascii: "/") else { return (try OriginURL(url: target), .absolute) }
        guard OriginURL.isTarget(target) else { return try mounts.url(for: target).map { ($0, .mount) } }
        return (try OriginURL(target: target), .path)
    }
}

extension MediaRoutes.Refusal {
    static let mountsAlone = MediaRoutes.Refusal(status: 403, reason: ProxyPolicy.mountsAloneReason)
}
