import CachePolicy
import HTTPTransport
import Logging

extension ProxyConfiguration {
    /// The balancers that are believed.
    /// - Throws: `ProxyError` if one is not an address or a network, or PROXY headers are expected from nobody.
    func checkedTrusted() throws(ProxyError) -> TrustedAddresses {
        let addresses = try Self.parse("trusted", TrustedAddresses(trusted))
        guard expectsProxyHeader, addresses.isEmpty else { return addresses }
        throw .invalidSetting("proxy_protocol is true, but trusted is empty: add the balancer's address to trusted")
    }

    /// - Throws: `ProxyError` for a limit that is out of range.
    func clientLimits() throws(ProxyError) -> ClientLimits {
        var limits = ClientLimits()
        limits.connections = try Self.checked(maxConnections, "max_connections")
        limits.connectionsPerClient = try Self.checked(maxConnectionsPerClient, "max_connections_per_client")
        if let rate = maxRequestsPerClient {
            limits.requestsPerClient = try Self.parse("max_requests_per_client", RequestRate(rate))
        }
        return limits
    }

    private static func checked(_ number: Int?, _ name: String) throws(ProxyError) -> Int? {
        guard let number, !connectionsRange.contains(number) else { return number }
        throw .invalidSetting(
            "\(name) is a number from \(connectionsRange.lowerBound) to \(connectionsRange.upperBound), not \(number)")
    }
}

extension ClientLimits {
    /// With no more connections than there are files for and a few left to refuse the others with.
    func bounded(by descriptors: DescriptorBudget, _ logger: Logger) -> ClientLimits {
        guard let connections, connections > descriptors.admittedClients else { return self }
        logger.warning(
            "max_connections is \(connections), but there are files for \(descriptors.admittedClients) connections only, and those beyond are refused: raise the limit of open files (LimitNOFILE, ulimit -n), or lower max_connections"
        )
        var limits = self
        limits.connections = descriptors.admittedClients
        return limits
    }
}
