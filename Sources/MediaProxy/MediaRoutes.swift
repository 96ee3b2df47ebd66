import CachePolicy
import EventIO
import HTTPModel
import Presentations

/// How a client names a resource.
enum RouteForm: Sendable {
    /// `/https/host/path`: a browser sees all origins as the proxy.
    case path
    /// `GET https://host/path`: the client uses this as an HTTP proxy (RFC 9112 §3.2.2).
    case absolute
    /// Below a mount: the client regards this as the origin.
    case mount

    /// Whether client and origin address each other: the client's fields about itself are meant for the origin,
    /// and the origin's fields about permitted readers for the client.
    var isTransparent: Bool { self != .path }
}

/// The resource that a request is for, and how it is handled. Shared by all its requests. Loop-bound.
final class Route {
    let url: OriginURL
    /// The URL as playlists name it: without what a player reports of itself in it.
    let mediaURL: OriginURL
    /// The URL as text.
    let text: String
    let key: CacheKey
    let resolvedRule: ResolvedRule
    let form: RouteForm
    /// Whether a rule determined the key.
    let hasOwnKey: Bool
    /// Whether a client's cookies for this target are the origin's.
    let passesCookies: Bool
    /// Whether the proxy serves only the origin of this resource, so that its name stands for that origin.
    let isOneSite: Bool

    /// That of the policy.
    let version: Int

    /// Whether it is the playlist of a recording, which no origin has.
    let isRecording: Bool

    /// How the last client of this playlist reaches what it lists, and that client's `Host`: a proxy has only a few
    /// names.
    var listing: (host: String, form: PlaylistForm)?
    /// The play of its last request that no playlist named (`LoopPlays`).
    var play: AnyObject?

    /// - Parameter bypasses: whether it is neither stored nor answered from the cache, whatever the rules say.
    init(_ url: OriginURL, _ form: RouteForm, _ policy: ProxyPolicy, version: Int, bypasses: Bool = false) {
        let media = url.withoutReport, own = media.cacheKey, isMedia = media.pathAndQuery == url.pathAndQuery
        (self.url, mediaURL, self.form, self.version) = (url, media, form, version)
        text = isMedia && !url.hasEncoded ? own.text : url.absolute
        var (key, rule) = policy.resolve(url, own: own)
        if bypasses { rule.bypass() }
        (self.key, resolvedRule) = (key, rule)
        hasOwnKey = key != own
        passesCookies = form == .absolute || form == .mount && policy.isOneSite
        isOneSite = policy.isOneSite
        isRecording = url.isOfRecording
    }

    /// Whether anyone could get the same from the origin: the fields and cookies that a rule adds, or a resolver that
    /// acts for the user, may be what grants access.
    var isOpen: Bool {
        resolvedRule.headers.lines.isEmpty && resolvedRule.cookies.isEmpty && resolvedRule.resolver == nil
    }
}

/// Finds the resource that a request target names. The line of a request remembers it. Loop-bound.
final class MediaRoutes {
    /// Why a target is not served.
    struct Refusal: Error {
        let status: Int
        let reason: String
    }

    let policy: Current<ProxyPolicy>
    private var knownWebOrigins: WebOrigins
    /// That of the policy.
    private(set) var version: Int

    init(_ policy: Current<ProxyPolicy>) {
        self.policy = policy
        version = policy.version
        knownWebOrigins = policy.value.webOrigins
    }

    /// - Parameters:
    ///   - target: in origin form or in absolute form.
    ///   - line: keeps the result for its next request.
    /// - Returns: nil if it names no resource of an origin, but something of the proxy's own, or nothing.
    func route(_ target: String, _ line: RequestLines.Line?) throws(Refusal) -> Route? {
        renew()
        if let known = line?.found as? Route, known.version == version { return known }
        let policy = policy.value
        let meant: (url: OriginURL, form: RouteForm)?
        do throws(OriginURLError) { meant = try Self.read(target, policy.mounts) } catch {
            throw Refusal(status: 400, reason: error.reason)
        }
        guard let (url, form) = meant else { return nil }
        // What it serves below a mount, it serves as a parent too.
        guard form == .mount || policy.servesAnyOrigin || form == .absolute && policy.target(of: url) != nil else {
            throw Refusal.mountsAlone
        }
        let route = Route(url, form, policy, version: version)
        line?.found = route
        return route
    }

    /// Pages that may read what is served, as the policy lists them now.
    var webOrigins: WebOrigins {
        renew()
        return knownWebOrigins
    }

    /// Notices that the policy has changed.
    private func renew() {
        guard version != policy.version else { return }
        version = policy.version
        knownWebOrigins = policy.value.webOrigins
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
