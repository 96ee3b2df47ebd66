import CachePolicy
import HTTPTransport

extension ProxyConfiguration {
    /// The balancers that are believed.
    /// - Throws: `ProxyError` if one is not an address or a network, or PROXY headers are expected from nobody.
    func checkedTrusted() throws(ProxyError) -> TrustedAddresses {
        do throws(RuleError) {
            let addresses = try TrustedAddresses(trusted)
            guard expectsProxyHeader, addresses.isEmpty else { return addresses }
        } catch { throw .invalidSetting("trusted: \(error)") }
        throw .invalidSetting("proxy_protocol is true, but trusted is empty: add the balancer's address to trusted")
    }

    /// - Throws: `ProxyError` for a limit that is out of range.
    func clientLimits() throws(ProxyError) -> ClientLimits {
        var limits = ClientLimits()
        limits.connections = try Self.checked(maxConnections, "max_connections")
        limits.connectionsPerClient = try Self.checked(maxConnectionsPerClient, "max_connections_per_client")
        do throws(RuleError) {
            limits.requestsPerClient = try maxRequestsPerClient.map { text throws(RuleError) in try RequestRate(text) }
        } catch { throw .invalidSetting("max_requests_per_client: \(error)") }
        return limits
    }

    private static func checked(_ number: Int?, _ name: String) throws(ProxyError) -> Int? {
        guard let number, !connectionsRange.contains(number) else { return number }
        throw .invalidSetting(
            "\(name) is a number from \(connectionsRange.lowerBound) to \(connectionsRange.upperBound), not \(number)")
    }
}
