import CachePolicy
import EventIO

/// Keeps an address policy up to date with the prefixes by which this network leads IPv6 to IPv4, as its name servers
/// tell them (RFC 7050). Nothing waits for them: until they have answered, and where they do not, what was known before
/// holds, at first nothing. Loop-bound.
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
        /// The network has changed since: the answer may be the former one's.
        case askingInVain(NameResolver.Ticket)
        case stopped
    }

    /// Seconds until it is asked again where no name server answers: twice as many each time.
    private static let firstRetry = 10.0
    private static let lastRetry = 3600.0

    package init(_ addresses: Current<AddressPolicy>, _ resolver: NameResolver, on loop: EventLoop) {
        (self.addresses, self.resolver, self.loop) = (addresses, resolver, loop)
        retry = LoopTimer(on: loop) { [unowned self] in ask() }
    }

    /// This machine is on other networks than before.
    /// - Parameter hasIPv6: whether anything can be reached by IPv6; else no name server is asked.
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

    /// Asks no more. On the loop, before that ends.
    package func stop() {
        if case .asking(let ticket) = stage { resolver.cancel(ticket) }
        if case .askingInVain(let ticket) = stage { resolver.cancel(ticket) }
        stage = .stopped
        retry = nil
    }

    private func ask() {
        guard case .idle = stage else { return }
        guard hasIPv6 else { return learn([]) }
        // What is known may be of another network.
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
            // It has IPv4 addresses everywhere: with none at all nobody has answered.
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
