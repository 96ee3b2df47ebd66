import Activity
import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import HTTPTransport
import Presentations

/// What the requests of one loop share. Loop-bound.
package final class ProxyLoop {
    let filler: LoopFiller
    let library: PlaylistLibrary
    let next: NextItems
    let metrics: ProxyMetrics
    /// Which private origins are allowed.
    let addresses: Current<AddressPolicy>
    let via: Via
    let hosts: HostPolicy
    let routes: MediaRoutes
    private var acceptedHost: String?

    /// - Parameters:
    ///   - shelf: the playlists, which all loops share, as they do `ahead` and `next`.
    ///   - via: identifies this proxy among others; the same as in its requests to origins.
    package init(
        _ filler: LoopFiller, shelf: PlaylistShelf, ahead: SegmentAhead, next: NextItems, policy: Current<ProxyPolicy>,
        addresses: Current<AddressPolicy>, via: Via, hosts: HostPolicy
    ) {
        (self.filler, self.next, metrics) = (filler, next, filler.filler.metrics)
        library = PlaylistLibrary(shelf, ahead, on: filler)
        (self.addresses, self.via, self.hosts) = (addresses, via, hosts)
        routes = MediaRoutes(policy)
    }

    var policy: ProxyPolicy { routes.policy.value }

    func reading(of exchange: Exchange) -> FieldReading {
        if let known = exchange.reading as? FieldReading, known.version == routes.policy.version { return known }
        let reading = FieldReading(exchange, routes, via, accepts: accepts)
        exchange.keep(reading)
        return reading
    }

    /// Remembers the last accepted host: clients of one proxy nearly always use the same name.
    private func accepts(_ host: String?) -> Bool {
        if let host, host == acceptedHost { return true }
        guard hosts.accepts(host) else { return false }
        acceptedHost = host
        return true
    }

    /// Whether a URL leads to this proxy, by one of its names or by the address that the client connected to.
    func isOwn(_ url: OriginURL, _ exchange: Exchange) -> Bool {
        guard url.scheme == .http, hosts.accepts(name: url.host) else { return false }
        let own = exchange.localAddress
        guard url.port ?? url.scheme.defaultPort == own.port else { return false }
        guard let address = IPAddress(url.host) else { return true }
        return address.unwrapped == IPAddress(own.host)?.unwrapped
    }
}
