import CachePolicy
import ControlAPI
import EventIO
import HTTPModel

/// Who may read and change what the control interface reaches: whoever shows a token, a signed-in dashboard, and for
/// reading also programs and people of this machine.
struct ControlAccess {
    /// The token for everything.
    let token: ControlToken
    /// The token for reading; nil if only this machine can send requests, and no balancer forwards any.
    let readToken: ControlToken?
    let sessions: SharedDashboardSessions
    let policy: Current<ProxyPolicy>

    /// The time for links and sessions, in seconds. They live in memory only, so no other clock is needed than one that
    /// nobody sets back.
    // no trap: the seconds of any number of nanoseconds are few
    static var now: Int64 { Int64(MonotonicClock.nanoseconds() / 1_000_000_000) }

    /// Whether the request may change things and see secrets.
    func permitsChanges(_ request: RequestHead) -> Bool {
        token.isShown(by: request.value(of: "Authorization")) || isSignedIn(request)
    }

    /// - Throws: if the request may not change anything.
    func checkChanging(_ request: RequestHead) throws(ControlError) {
        guard permitsChanges(request) else { throw .unauthorized(tokenIn: place(of: token, for: request)) }
    }

    /// Requires a token or a session for reading beyond the loopback interface, and everywhere for requests from
    /// pages other than the dashboard.
    func checkReading(_ request: RequestHead) throws(ControlError) {
        if readsFreely(request), !isOfOtherPage(request) { return }
        if readToken?.isShown(by: request.value(of: "Authorization")) == true || permitsChanges(request) { return }
        throw .unauthorized(tokenIn: place(of: readToken ?? token, for: request))
    }

    /// Where a token is, as it is told to whoever does not show it: other machines need not know this one's
    /// directories.
    func place(of token: ControlToken, for request: RequestHead) -> String {
        readsFreely(request) ? token.path : "\(token.name) in the cache directory"
    }

    /// Whether reading needs no token. A request that was forwarded may come from anywhere, even if the proxy is not
    /// configured to believe from where.
    func readsFreely(_ request: RequestHead) -> Bool {
        readToken == nil && !ForwardedRequest.isClaimed(by: request)
    }

    /// Whether a script other than the dashboard's could read the response. Following a link from another site shows
    /// it to the user, but not to the page with the link.
    private func isOfOtherPage(_ request: RequestHead) -> Bool {
        switch request.value(of: "Sec-Fetch-Site") {
        case nil, "none": false
        case "cross-site": request.value(of: "Sec-Fetch-Mode") != "navigate"
        case "same-origin": !hasDashboard
        default: true
        }
    }

    // MARK: The dashboard

    /// Whether the dashboard is served: only if no page but its own has the proxy's origin. Everything that origins
    /// serve is in a sandbox, unless the proxy stands for a single one of them.
    var hasDashboard: Bool { !policy.value.isOneSite }

    /// Whether the request is the dashboard's, from a browser that is signed in. Browsers state the origin of each
    /// request that is neither GET nor HEAD; one that does not could be no page's own.
    func isSignedIn(_ request: RequestHead) -> Bool {
        let secrets = Self.secrets(of: request)
        guard hasDashboard, !secrets.isEmpty, Requester(request) == .own else { return false }
        switch request.method {
        case .get, .head: break
        default: guard request.value(of: "Origin") != nil else { return false }
        }
        return sessions.update { sessions in secrets.contains { sessions.isValid($0, at: Self.now) } }
    }

    /// The secrets that a request shows: the key with each cookie of the name. A server on another port of this host
    /// can set further cookies of that name, which must not keep the owner out.
    static func secrets(of request: RequestHead) -> [DashboardSessions.Secrets] {
        guard let key = request.value(of: "Reelcache-Dashboard"), let cookies = request.value(of: "Cookie") else {
            return []
        }
        let name = cookieName(for: request) + "="
        return cookies.split(separator: ";").lazy.map(ASCII.trimmed).filter { $0.hasPrefix(name) }
            .prefix(mostCookies).map { .init(cookie: String($0.dropFirst(name.count)), key: key) }
    }

    private static let mostCookies = 16

    /// Contains the port, because browsers keep the cookies of a host without it, and several proxies may run there.
    static func cookieName(for request: RequestHead) -> String {
        // It may be empty (RFC 9112 §3.2).
        guard let host = request.value(of: "Host"), let colon = host.utf8.lastIndex(of: ASCII.colon) else {
            return "reelcache"
        }
        let port = host.utf8[host.utf8.index(after: colon)...]
        guard !port.isEmpty, port.allSatisfy(ASCII.isDigit), port.count <= 5 else { return "reelcache" }
        return "reelcache-\(Substring(port))"
    }
}
