import CachePolicy
import EventIO

/// Keeps an address policy up to date with the prefixes that this network uses to translate between IPv6 and IPv4, as
/// its name servers publish them (RFC 7050). Nothing waits for them: until they are known, the last known prefixes
/// apply, at first none. Loop-bound.
package final class TranslationWatch {
    private let addresses: Current<AddressPolicy>
    private let resolver: NameResolver
    private let loop: EventLoop
    private var stage = Stage.idle
    private var hasIPv6 = false
    private var retry: LoopTimer?
    private var failures = 0

    private enum Stage {
        case idle
        case requesting(NameResolver.Ticket)
        /// The network has changed since: the answer may be about the former one.
        case unanswered(NameResolver.Ticket)
        case stopped
    }

    /// Seconds until the next query if no name server answers; doubled each time.
    private static let firstRetry = 10.0
    private static let lastRetry = 3600.0

    package init(_ addresses: Current<AddressPolicy>, _ resolver: NameResolver, on loop: EventLoop) {
        (self.addresses, self.resolver, self.loop) = (addresses, resolver, loop)
        retry = LoopTimer(on: loop) { [unowned self] in request() }
    }

    /// This machine's networks have changed.
    /// - Parameter hasIPv6: whether anything can be reached over IPv6; if not, no name server is queried.
    package func networkChanged(hasIPv6: Bool) {
        self.hasIPv6 = hasIPv6
        failures = 0
        retry?.cancel()
        switch stage {
        case .idle: request()
        case .requesting(let ticket), .unanswered(let ticket): stage = .unanswered(ticket)
        case .stopped: break
        }
    }

    /// Stops querying. Call on the loop, before that ends.
    package func stop() {
        if case .requesting(let ticket) = stage { resolver.cancel(ticket) }
        if case .unanswered(let ticket) = stage { resolver.cancel(ticket) }
        stage = .stopped
        retry = nil
    }

    private func request() {
        guard case .idle = stage else { return }
        guard hasIPv6 else { return learn([]) }
        // The known answer may come from another network.
        resolver.forget(TranslationPrefix.probe)
        let this = LoopBound(self, on: loop)
        switch resolver.resolve(TranslationPrefix.probe, waiter: { found in this.post { $0.answered(found) } }) {
        case .addresses(let found): take(found)
        case .waiting(let ticket): stage = .requesting(ticket)
        }
    }

    private func answered(_ found: [String]) {
        switch stage {
        case .idle, .stopped: return
        case .requesting:
            stage = .idle
            take(found)
        case .unanswered:
            stage = .idle
            request()
        }
    }

    private func take(_ found: [String]) {
        // The name has IPv4 addresses everywhere: an empty result means that no server has answered.
        guard !found.isEmpty else { return requestLater() }
        learn(Set(found.compactMap { IPAddress($0) }.flatMap(TranslationPrefix.announced)))
    }

    private func learn(_ prefixes: Set<TranslationPrefix>) {
        if addresses.value.translations != prefixes { addresses.change { $0.translations = prefixes } }
    }

    private func requestLater() {
        retry?.schedule(afterSeconds: min(Self.firstRetry * Double(1 << min(failures, 20)), Self.lastRetry))
        failures = min(failures + 1, 20) // no trap: held
    }
}
