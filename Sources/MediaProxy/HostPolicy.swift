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

    package func accepts(_ host: String?) -> Bool {
        // HTTP/1.0 has no Host; browsers always send one.
        guard let host else { return true }
        let name = Self.withoutPort(host).lowercased()
        return names.contains(name) || name.hasSuffix(".localhost") || IPAddress(name) != nil
    }

    private static func withoutPort(_ host: String) -> String {
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
            return String(host[host.index(after: host.startIndex)..<end])
        }
        return host.firstIndex(of: ":").map { String(host[..<$0]) } ?? host
    }
}
