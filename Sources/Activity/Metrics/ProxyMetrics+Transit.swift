import CachePolicy
import Synchronization

extension ProxyMetrics {
    /// The bytes in transit: what has come from origins and clients and waits in memory for whoever is to get it. One
    /// number for the whole process, with a limit.
    ///
    /// Each holder takes what it holds (`Share`), and asks how far it may go (`Share.window`): an eighth of what is
    /// left. So however many hold bytes for clients that do not read, something is left for the next one, and those who
    /// read wait for nobody. A quarter of the limit is set aside for the least that each may hold; of the rest, one
    /// client has three quarters at most.
    package final class Transit: Sendable {
        /// What each may hold, however little is left; in bytes.
        package static let leastWindow: Int64 = 64 << 10
        package static let leastLimit: Int64 = 4 << 20
        package static let standardLimit: Int64 = 64_000_000
        /// What a client is told whose answer would have to wait in memory when nothing is left.
        package static let exhausted =
            "too much waits in memory for slow clients: try again later, or raise max_buffered"

        private let most = Atomic<Int64>(standardLimit)
        private let taken = Atomic<Int64>(0)
        private let clients = Mutex<[IPAddress: (sum: ClientSum, shares: Int)]>([:])

        fileprivate final class ClientSum: Sendable {
            let taken = Atomic<Int64>(0)
        }

        package init() {}

        /// In bytes.
        package var limit: Int64 { most.load(ordering: .relaxed) }

        /// Changes the limit. What is held stays, and windows are smaller until it has been sent.
        package func setLimit(_ bytes: Int64) { most.store(max(bytes, Self.leastLimit), ordering: .relaxed) }

        /// The bytes that are held now.
        package var bytes: Int64 { taken.load(ordering: .relaxed) }

        /// - Parameter client: for whom, by the address under which it is counted; nil for the proxy itself.
        package func share(of client: IPAddress?) -> Share { Share(self, of: client) }

        fileprivate func enter(_ client: IPAddress) -> ClientSum {
            clients.withLock { clients in
                clients[client, default: (ClientSum(), 0)].shares += 1
                return clients[client]!.sum
            }
        }

        fileprivate func leave(_ client: IPAddress) {
            clients.withLock { clients in
                clients[client]?.shares -= 1
                if clients[client]?.shares == 0 { clients[client] = nil }
            }
        }

        fileprivate func count(_ change: Int64, _ sum: ClientSum?) {
            taken.wrappingAdd(change, ordering: .relaxed)
            sum?.taken.wrappingAdd(change, ordering: .relaxed)
            Counter.noteChange()
        }

        fileprivate func window(_ sum: ClientSum?) -> Int64 {
            let shared = limit / 4 * 3
            var left = shared - bytes
            if let sum { left = min(left, shared / 4 * 3 - sum.taken.load(ordering: .relaxed)) }
            return max(Self.leastWindow, left / 8)
        }
    }
}

extension ProxyMetrics.Transit {
    /// Bytes that many may send, which count once: in the share of the first, until the last has sent them.
    package final class SharedBytes: Sendable {
        private struct Holder { weak var share: Share? }
        private let holder = Mutex(Holder())

        package init() {}

        /// The share that counts them, for as long as it is retained: that of somebody who sends them, else this one.
        package func holder(else share: Share) -> Share {
            holder.withLock { holder in
                let known = holder.share ?? share
                holder.share = known
                return known
            }
        }
    }

    /// What one holder has taken; given back at its end. Safe to use from any thread.
    package final class Share: Sendable {
        private let transit: ProxyMetrics.Transit
        private let client: IPAddress?
        private let sum: ClientSum?
        private let held = Atomic<Int64>(0)

        fileprivate init(_ transit: ProxyMetrics.Transit, of client: IPAddress?) {
            (self.transit, self.client) = (transit, client)
            sum = client.map(transit.enter)
        }

        deinit {
            hold(0)
            if let client { transit.leave(client) }
        }

        /// States how many bytes it holds now.
        package func hold(_ bytes: Int64) {
            let former = held.exchange(bytes, ordering: .relaxed)
            if bytes != former { transit.count(bytes - former, sum) }
        }

        /// How many bytes it may hold. Beyond that, whoever brings more has to wait.
        package var window: Int64 { transit.window(sum) }
    }
}
