import CachePolicy
import HTTPModel
import HTTPTransport

/// CONNECT (RFC 9110 §9.3.6). The proxy can neither read nor cache the bytes in a tunnel, so it refuses tunnels
/// unless the configuration allows them.
extension MediaHandler {
    func connect(_ exchange: Exchange) {
        guard let ports = proxy.policy.tunnelPorts else { return refuseTunnel(exchange) }
        guard proxy.policy.servesAnyOrigin else { return refuse(exchange, .mountsAlone, closes: true) }
        guard !proxy.filler.origins.isOffline else {
            return refuse(
                exchange, .init(status: 504, reason: "the proxy is offline and contacts no origin"), closes: true)
        }
        guard let url = Self.authority(exchange.target), exchange.bodyLength == 0 else {
            return refuse(exchange, .authority, closes: true)
        }
        let port = url.port ?? url.scheme.defaultPort
        guard ports.contains(port) else {
            let allowed = ports.sorted().map(String.init).joined(separator: ", ")
            return refuse(
                exchange,
                .init(
                    status: 403,
                    reason: "tunnels to port \(port) are not allowed, only to \(allowed): add it to tunnel_ports"),
                closes: true)
        }
        if let parent = proxy.filler.origins.upstream.proxy(to: url.host) {
            let reason =
                "tunnels do not go through \(parent) (upstream_proxy): add \(url.host) to upstream_proxy_except to connect directly"
            return refuse(exchange, .init(status: 403, reason: reason), closes: true)
        }
        proxy.metrics.requests.add()
        Tunnel(exchange, proxy).start(url)
    }

    /// RFC 9112 §3.2.3: a host and a port, and nothing else.
    private static func authority(_ target: String) -> OriginURL? {
        guard !target.utf8.contains(where: { "/?#@".utf8.contains($0) }), let last = target.utf8.last,
            ASCII.isDigit(last),
            let url = try? OriginURL(url: "https://" + target), url.port != nil || target.hasSuffix(":443")
        else { return nil }
        return url
    }

    private func refuseTunnel(_ exchange: Exchange) {
        let own = exchange.localAddress
        let host = exchange.target.hasSuffix(":443") ? exchange.target.dropLast(4) : exchange.target[...]
        refuse(
            exchange,
            .init(
                status: 405,
                reason:
                    "CONNECT is not supported, as nothing in a tunnel can be cached: open http://\(own)/https/\(host.prefix(200))/PATH instead"
            ),
            allowing: "GET, HEAD, OPTIONS")
    }

    private func refuse(_ exchange: Exchange, _ refusal: MediaRoutes.Refusal, closes: Bool) {
        proxy.metrics.errors.add("refused")
        exchange.respond(refusal.status, text: refusal.reason, closes: closes)
    }
}

extension MediaRoutes.Refusal {
    fileprivate static let authority = Self(
        status: 400, reason: "CONNECT needs a host and a port, such as example.org:443, without a body")
}
