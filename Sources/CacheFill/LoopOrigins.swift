import Activity
import EventIO
import Upstream

/// The origins as the fetches of one loop reach them. Loop-bound.
package final class LoopOrigins {
    package let filler: CacheFiller
    package let loop: EventLoop
    package let upstream: UpstreamClient
    /// The offline setting, and the version of the policy that it was read from.
    private var knownOffline = (version: -1, isOffline: false)
    /// The counters of the hosts that this loop has met, so that looking them up takes no lock.
    private var counters: [String: OriginCounters.Origin] = [:]
    /// Those of the last request: the next one is often of the same host.
    private var last: (host: String, counters: OriginCounters.Origin)?
    private var fetchCount: UInt64 = 0

    init(_ filler: CacheFiller, _ upstream: UpstreamClient, _ loop: EventLoop) {
        (self.filler, self.upstream, self.loop) = (filler, upstream, loop)
    }

    /// Whether the proxy is offline and must not contact origins.
    package var isOffline: Bool {
        let version = filler.policy.version
        if knownOffline.version != version { knownOffline = (version, filler.policy.value.isOffline) }
        return knownOffline.isOffline
    }

    /// The counters of a host.
    package func counters(of host: String) -> OriginCounters.Origin {
        if let last, last.host == host { return last.counters }
        let found = counters[host] ?? filler.metrics.origins.origin(host)
        if counters.count < OriginCounters.capacity { counters[host] = found }
        last = (host, found)
        return found
    }

    func numberOfNextFetch() -> UInt64 {
        fetchCount &+= 1
        return fetchCount
    }
}
