import CachePolicy
import EventIO
import Synchronization

extension ClientLedger {
    /// The ledger of clients that all loops share. Without limits for single clients, nobody locks it.
    final class SharedClients: Sendable {
        private let ledger = Mutex(ClientLedger())

        func enter(_ client: IPAddress, atMost limit: Int) -> Bool {
            let now = MonotonicClock.nanoseconds()
            return ledger.withLock { $0.enter(client, atMost: limit, now: now) }
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
}
