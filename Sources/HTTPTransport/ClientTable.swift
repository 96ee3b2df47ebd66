import CachePolicy
import EventIO
import Synchronization

/// The ledger of clients that all loops share. Without limits for single clients, nobody locks it.
final class ClientTable: Sendable {
    private let ledger = Mutex(ClientLedger())
    private let probers = Mutex(Probers())

    func enter(_ client: IPAddress, atMost limit: Int) -> Bool {
        let now = MonotonicClock.nanoseconds()
        return ledger.withLock { $0.enter(client, atMost: limit, now: now) }
    }

    /// Notes the answer to a balancer that asks whether to send requests here.
    func probe(of peer: IPAddress, isDraining: Bool) {
        let now = MonotonicClock.nanoseconds()
        probers.withLock { $0.answered(peer, isDraining: isDraining, now: now) }
    }

    /// Whether all balancers know that the server is draining.
    var haveProbersNoticed: Bool {
        let now = MonotonicClock.nanoseconds()
        return probers.withLock { $0.haveNoticed(now: now) }
    }

    func leave(_ client: IPAddress) {
        let now = MonotonicClock.nanoseconds()
        ledger.withLock { $0.leave(client, now: now) }
    }

    /// - Returns: how long to wait if there were too many, in nanoseconds; otherwise nil.
    func request(of client: IPAddress, atMost rate: RequestRate) -> UInt64? {
        let now = MonotonicClock.nanoseconds()
        return ledger.withLock { $0.request(of: client, atMost: rate, now: now) }
    }
}
