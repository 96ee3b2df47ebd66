import CachePolicy
import HTTPModel
import HTTPTransport

extension ProxyLoop {
    /// The `Referer` that a route's origin receives about the page that the client is on.
    func referrer(of exchange: Exchange, _ route: Route) -> Referrer {
        guard route.form != .absolute else { return .asSent }
        guard let value = exchange.request.value(of: "Referer") else { return .none }
        let host = exchange.request.value(of: "Host")
        return Referrer(
            value, for: route.url, isOfBrowser: Self.isOfBrowser(exchange.request), mounts: policy.mounts
        ) { url in
            // TLS may end in front of the proxy, on a port of another server: the authority in `Host` is known to
            // be this proxy.
            host.map { ASCII.equalIgnoringCase(url.authority, $0) } == true || isOwn(url, exchange)
        }
    }

    /// Browsers send one of these with each request to this machine. To other machines over http, they leave them out,
    /// but then they name no more of the page than its origin.
    private static func isOfBrowser(_ request: RequestHead) -> Bool {
        ["Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Origin"].contains { request.value(of: $0) != nil }
    }
}
