import CachePolicy
import HTTPModel
import HTTPTransport

extension ProxyLoop {
    /// The URL of a request as the client knows it: with the name, port and scheme that it used. Nil if these do
    /// not form a URL.
    ///
    /// If TLS ends in front of the proxy, or the proxy has another name or port there, the server that does so says
    /// it: `Forwarded` (RFC 7239 §5), `X-Forwarded-Proto`, `X-Forwarded-Host`, `X-Forwarded-Port`.
    func clientURL(of exchange: Exchange) -> OriginURL? {
        guard let own = ownURL(exchange) else { return nil }
        // Resolved as clients do, which removes dot segments; a path that begins with two slashes is not a host.
        return own.resolving(exchange.target.hasPrefix("//") ? "/." + exchange.target : exchange.target)
    }

    private func ownURL(_ exchange: Exchange) -> OriginURL? {
        let forwarded = exchange.forwarded
        let host = forwarded?.host ?? exchange.request.value(of: "Host")
        let authority = host ?? exchange.localAddress.reachable.description
        let scheme = forwarded?.scheme ?? .http
        // `Host` may contain characters that make the URL lead elsewhere.
        guard let own = try? OriginURL(url: scheme.rawValue + "://" + authority + "/"), own.pathAndQuery == "/" else {
            return nil
        }
        // `Host` has none where it is the usual one, which the balancer's may be.
        guard let port = forwarded?.port, own.port == nil, !Self.namesPort(authority) else { return own }
        return try? OriginURL(url: "\(scheme.rawValue)://\(authority):\(port)/")
    }

    private static func namesPort(_ authority: String) -> Bool {
        guard let last = authority.utf8.lastIndex(of: ASCII.colon) else { return false }
        return authority.utf8.last != UInt8(ascii: "]") && authority.utf8.index(after: last) != authority.utf8.endIndex
    }
}
