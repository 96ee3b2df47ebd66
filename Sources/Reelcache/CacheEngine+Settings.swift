import CachePolicy
import Upstream

/// Settings that are changed while the cache is open.
extension CacheEngine {
    /// Applies those of the engine. The ones that decide about requests change in one step.
    /// - Throws: for the first invalid one, and for a failing disk. Then nothing has changed.
    func apply(_ new: ProxyConfiguration, insteadOf old: ProxyConfiguration) throws {
        let (policy, clients, outgoing) = (try new.policy(), try new.clientLimits(), try new.outgoingProxy())
        let addresses = try AddressPolicy(allow: new.allow)
        let maxBuffered = try ProxyConfiguration.checked(maxBuffered: new.maxBuffered)
        let maxShortResponses = try ProxyConfiguration.checked(maxShortResponses: new.maxShortResponses)
        if new.accessLog != old.accessLog { try accessLog.open(new.accessLog) }
        if (new.maxSize, new.minFree) != (old.maxSize, old.minFree) {
            do { try store.setLimits(maxSize: new.maxSize, minFree: new.minFree) } catch {
                try accessLog.open(old.accessLog)
                throw error
            }
        }
        change(to: policy)
        if new.allow != old.allow { self.addresses.change { $0 = addresses.on($0.local, $0.translations) } }
        if outgoing != self.outgoing.value {
            self.outgoing.value = outgoing
            noteOutgoingProxy()
        }
        filler.shortResponses.setLimit(Int(maxShortResponses))
        metrics.transit.setLimit(maxBuffered)
        accessLog.format.value = new.accessLogFormat
        if try clients != old.clientLimits() { clientLimits.value = clients.bounded(by: descriptors, logger) }
    }

    private func change(to policy: ProxyPolicy) {
        var policy = policy
        let old = self.policy.value
        // Learnt and chosen by the program, not configured.
        (policy.aliases, policy.adviceWords) = (old.aliases, old.adviceWords)
        guard policy != old else { return }
        self.policy.change {
            let aliases = $0.aliases
            $0 = policy
            $0.aliases = aliases
        }
    }

    /// Says in the log that another proxy decides which addresses are reached.
    func noteOutgoingProxy() {
        guard let proxy = outgoing.value else { return }
        logger.warning(
            """
            origins are reached through \(proxy.masked): it looks up their names, so their addresses cannot be checked here; \
            let it refuse addresses of your network
            """)
    }
}
