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
        case asking(NameResolver.Ticket)
        /// The network has changed since: the answer may be about the former one.
        case askingInVain(NameResolver.Ticket)
        case stopped
    }

    /// Seconds until the next query if no name server answers; doubled each time.
    private static let firstRetry = 10.0
    private static let lastRetry = 3600.0

    package init(_ addresses: Current<AddressPolicy>, _ resolver: NameResolver, on loop: EventLoop) {
        (self.addresses, self.resolver, self.loop) = (addresses, resolver, loop)
        retry = LoopTimer(on: loop) { [unowned self] in ask() }
    }

    /// This machine's networks have changed.
    /// - Parameter hasIPv6: whether anything can be reached over IPv6; if not, no name server is queried.
    package func networkChanged(hasIPv6: Bool) {
        self.hasIPv6 = hasIPv6
        failures = 0
        retry?.cancel()
        switch stage {
        case .idle: ask()
        case .asking(let ticket), .askingInVain(let ticket): stage = .askingInVain(ticket)
        case .stopped: break
        }
    }

    /// Stops querying. Call on the loop, before that ends.
    package func stop() {
        if case .asking(let ticket) = stage { resolver.cancel(ticket) }
        if case .askingInVain(let ticket) = stage { resolver.cancel(ticket) }
        stage = .stopped
        retry = nil
    }

    private func ask() {
        guard case .idle = stage else { return }
        guard hasIPv6 else { return learn([]) }
        // The known answer may come from another network.
        resolver.forget(TranslationPrefix.probe)
        let this = LoopBound(self, on: loop)
        switch resolver.resolve(TranslationPrefix.probe, waiter: { found in this.post { $0.answered(found) } }) {
        case .addresses(let found): learn(Self.prefixes(found))
        case .waiting(let ticket): stage = .asking(ticket)
        }
    }

    private func answered(_ found: [String]) {
        switch stage {
        case .idle, .stopped: return
        case .asking:
            stage = .idle
            // The name has IPv4 addresses everywhere: an empty result means that no server has answered.
            if found.isEmpty { askLater() } else { learn(Self.prefixes(found)) }
        case .askingInVain:
            stage = .idle
            ask()
        }
    }

    private static func prefixes(_ found: [String]) -> Set<TranslationPrefix> {
        Set(found.compactMap { IPAddress($0) }.flatMap(TranslationPrefix.told))
    }

    private func learn(_ prefixes: Set<TranslationPrefix>) {
        if addresses.value.translations != prefixes { addresses.change { $0.translations = prefixes } }
    }

    private func askLater() {
        retry?.schedule(afterSeconds: min(Self.firstRetry * Double(1 << min(failures, 20)), Self.lastRetry))
        failures = min(failures + 1, 20) // no trap: held
    }
}
