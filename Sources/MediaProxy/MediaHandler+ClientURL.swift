import CachePolicy
import HTTPModel
import HTTPTransport

extension MediaHandler {
    /// The URL of a request as the client knows it: with the name, port and scheme that it used. Nil if these do
    /// not form a URL.
    ///
    /// If TLS ends in front of the proxy, the server that ends it states so: `Forwarded: proto=https` (RFC 7239
    /// §5.4) or `X-Forwarded-Proto: https`. A client that sends these fields without reason gets URLs that only
    /// itself cannot use.
    func clientURL(of exchange: Exchange) -> OriginURL? {
        let request = exchange.request
        let authority = request.value(of: "Host") ?? exchange.localAddress.reachable.description
        let scheme = Self.forwardedScheme(request) ?? .http
        // `Host` may contain characters that make the URL lead elsewhere.
        guard let own = try? OriginURL(url: scheme.rawValue + "://" + authority + "/"), own.pathAndQuery == "/" else {
            return nil
        }
        // Resolved as clients do, which removes dot segments; a path that begins with two slashes is not a host.
        return own.resolving(exchange.target.hasPrefix("//") ? "/." + exchange.target : exchange.target)
    }

    private static func forwardedScheme(_ request: RequestHead) -> OriginURL.Scheme? {
        let named = request.combined("X-Forwarded-Proto") ?? request.combined("Forwarded").flatMap(forwardedProtocol)
        // The first of several values is the client's.
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
