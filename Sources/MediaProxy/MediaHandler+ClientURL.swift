import CachePolicy
import HTTPModel
import HTTPTransport

extension MediaHandler {
    /// The URL by which a client has asked for something, as the client knows it: by the name, port and scheme that it
    /// uses. Nil where that is no URL.
    ///
    /// Where TLS ends before the proxy, whoever ends it says so: `Forwarded: proto=https` (RFC 7239 §5.4) or
    /// `X-Forwarded-Proto: https`. A client that says so without reason gets addresses that only itself cannot use.
    func clientURL(of exchange: Exchange) -> OriginURL? {
        let request = exchange.request
        let authority = request.value(of: "Host") ?? exchange.localAddress.reachable.description
        let scheme = Self.forwardedScheme(request) ?? .http
        // `Host` may hold what leads elsewhere.
        guard let own = try? OriginURL(url: scheme.rawValue + "://" + authority + "/"), own.pathAndQuery == "/" else {
            return nil
        }
        // Without dot segments, as clients resolve; a path that begins with two slashes is no host.
        return own.resolving(exchange.target.hasPrefix("//") ? "/." + exchange.target : exchange.target)
    }

    private static func forwardedScheme(_ request: RequestHead) -> OriginURL.Scheme? {
        let named = request.combined("X-Forwarded-Proto") ?? request.combined("Forwarded").flatMap(forwardedProtocol)
        // The first of several is the client's.
        return named.flatMap { $0.split(separator: ",").first }.map { ASCII.lowercased(ASCII.trimmed($0)) }
            .flatMap { OriginURL.Scheme(rawValue: String($0)) }
    }

    private static func forwardedProtocol(_ value: String) -> String? {
        guard let first = value.split(separator: ",").first else { return nil }
        for pair in first.split(separator: ";").map({ ASCII.trimmed($0) })
        where ASCII.begins(String(pair), with: "proto=") {
            return String(pair.dropFirst(6)).replacing("\"", with: "")
        }
        return nil
    }
}
