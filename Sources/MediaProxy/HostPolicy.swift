import CachePolicy
import HTTPModel

/// The values of `Host` that name this proxy.
///
/// A page of another site can let its own name resolve to 127.0.0.1, and then read answers as if they were its own
/// (DNS rebinding). Such a request carries that name, so only IP addresses and the proxy's own names are served.
package struct HostPolicy: Sendable {
    private let names: Set<String>

    /// - Parameter names: the names that the proxy listens on, besides `localhost`.
    package init(names: [String]) {
        self.names = Set((names + ["localhost"]).map { $0.lowercased() })
    }

    /// - Parameter host: the value of `Host`, or what a balancer says that it was.
    package func accepts(_ host: String?) -> Bool {
        // HTTP/1.0 has no Host; browsers always send one.
        guard let host else { return true }
        // What counts is where a URL with it leads: `evil.example#.localhost` leads elsewhere.
        guard let url = try? OriginURL(url: "http://\(host)/"), url.pathAndQuery == "/" else { return false }
        return accepts(name: url.host)
    }

    /// - Parameter name: the host of a URL.
    package func accepts(name host: String) -> Bool {
        let name = host.lowercased()
        return names.contains(name) || name.hasSuffix(".localhost") || IPAddress(name) != nil
    }
}
