import Activity
import CLinux
import EventIO
import Glibc
import HTTPModel
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// An HTTP/1.1 server on several loops that share a port (`SO_REUSEPORT`). Each connection belongs to one loop.
package final class HTTPServer: Sendable {
    /// The address, with the port that was actually bound.
    package let address: ListenAddress
    private let servers: [LoopBound<LoopServer>]
    private let balance: ConnectionBalance
    let probes = ProbeLedger.SharedProbes()
    private let isStopped = Mutex(false)
    private let isHurried = Atomic(false)
    /// Whether a service manager keeps the listening socket, for the next process.
    private let isInherited: Bool

    /// Listens and serves at once.
    /// - Parameters:
    ///   - listener: a socket to serve on, in place of one that is bound to `address`.
    ///   - clients: whose word counts about clients, and how much each may do.
    ///   - recorder: receives the records of requests.
    ///   - makeHandler: called on each loop to make that loop's handler.
    /// - Throws: `ListenError`, including if another process uses the port.
    package init(
        _ address: ListenAddress, listener: InheritedListener? = nil, loops: [EventLoop], limits: TransportLimits,
        clients: ClientRules = ClientRules(), metrics: ProxyMetrics, recorder: (any AccessRecorder)? = nil,
        makeHandler: @escaping @Sendable (EventLoop) -> any RequestHandler
    ) throws(ListenError) {
        let sockets: [Int32?]
        (sockets, self.address) = try Self.sockets(address, listener, count: loops.count, limits)
        isInherited = listener != nil
        let balance = ConnectionBalance(loops: loops)
        self.balance = balance
        let table = ClientLedger.SharedClients()
        servers = zip(loops, sockets).map { [probes] loop, socket in
            loop.sync {
                let server = LoopServer(
                    loop: loop, listeningSocket: socket, limits: limits, clients: clients, table: table,
                    probes: probes, metrics: metrics, balance: balance, handler: makeHandler(loop), recorder: recorder)
                balance.register(server)
                return LoopBound(server, on: loop)
            }
        }
    }

    /// A listening socket for each loop. One that is inherited is for a single loop, which spreads its connections:
    /// each new one would wake all loops, and sockets beside it would lose theirs at a restart.
    private static func sockets(
        _ address: ListenAddress, _ listener: InheritedListener?, count: Int, _ limits: TransportLimits
    ) throws(ListenError) -> ([Int32?], ListenAddress) {
        if let listener {
            ListenAddress.configure(listener.descriptor, unsentBytes: limits.unsentBytes)
            return ([listener.descriptor] + Array(repeating: nil, count: count - 1), listener.address)
        }
        // With SO_REUSEPORT, the kernel would let two processes share the port. A listener without it detects
        // that.
        close(try address.listen(shared: false, unsentBytes: limits.unsentBytes))
        let first = try address.listen(shared: true, unsentBytes: limits.unsentBytes)
        let bound = address.withPort(ListenAddress.port(of: first))
        var sockets = [first]
        do throws(ListenError) {
            for _ in 1..<count { sockets.append(try bound.listen(shared: true, unsentBytes: limits.unsentBytes)) }
        } catch {
            for socket in sockets { close(socket) }
            throw error
        }
        return (sockets, bound)
    }

    /// Accepts no more connections, gives running answers this many seconds to finish, then cuts them. Blocks;
    /// must not be called on a loop.
    /// - Parameters:
    ///   - quietSeconds: nil to close at once. Otherwise it drains first, within the same time: it answers on, but
    ///     `Exchange.isDraining` is set and each answer is the last one of its connection, so that balancers send their
    ///     requests elsewhere and none fails. It closes when nothing has run for so long and, unless that is zero,
    ///     whoever probes it regularly has heard often enough that it drains.
    package func stop(graceSeconds: Double, quietSeconds: Double? = nil) {
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        guard isFirst else { return }
        let now = MonotonicClock.nanoseconds()
        let end = now +| UInt64(saturating: graceSeconds * 1e9)
        if let quietSeconds {
            drain(DrainProgress(began: now, end: end, quiet: UInt64(saturating: quietSeconds * 1e9)))
        }
        let closed = Latch(servers.count)
        for server in servers {
            server.loop.sync { [isInherited] in server.value.stopAccepting(keepingBacklog: isInherited) }
        }
        for server in servers { server.post { $0.end { closed.countDown() } } }
        waitForClosing(closed, until: end)
        for server in servers {
            server.loop.sync { server.value.cut() }
        }
        balance.clear()
    }
}

extension HTTPServer {
    /// Makes `stop`, which runs on another thread, cut what still runs.
    package func hurry() { isHurried.store(true, ordering: .relaxed) }

    /// So long a loop's answers may have ended before that is noticed: nothing but the end waits for it.
    private static let lookMicroseconds: UInt32 = 20_000

    private func drain(_ progress: DrainProgress) {
        for server in servers { server.post { $0.drain() } }
        while !isHurried.load(ordering: .relaxed), progress.continues(look(), now: MonotonicClock.nanoseconds()) {
            usleep(Self.lookMicroseconds)
        }
    }

    private func look() -> DrainProgress.Look {
        let now = MonotonicClock.nanoseconds()
        let isAwaited = probes.ledger.withLock { $0.awaitsMore(now: now) }
        return servers.reduce(into: DrainProgress.Look(isAwaited: isAwaited)) { sum, server in
            let look = server.loop.sync { server.value.look }
            sum.running += look.running
            sum.lastEnd = max(sum.lastEnd, look.lastEnd)
        }
    }

    private func waitForClosing(_ closed: Latch, until end: UInt64) {
        while !isHurried.load(ordering: .relaxed) {
            let left = Double(end -| MonotonicClock.nanoseconds()) / 1e9
            if closed.wait(seconds: min(left, 0.25)) || left <= 0 { return }
        }
    }
}

extension HTTPServer {
    /// Counts down to zero while another thread waits for it.
    /// `@unchecked Sendable` because a semaphore may be used by several threads.
    private final class Latch: @unchecked Sendable {
        private let remaining: Mutex<Int>
        private var semaphore = sem_t()

        init(_ count: Int) {
            remaining = Mutex(count)
            sem_init(&semaphore, 0, 0)
        }

        deinit { sem_destroy(&semaphore) }

        func countDown() {
            let isLast = remaining.withLock { count in
                count -= 1
                return count == 0
            }
            if isLast { sem_post(&semaphore) }
        }

        /// - Returns: whether zero was reached in that time. Not called again afterwards.
        func wait(seconds: Double) -> Bool {
            var until = timespec()
            // The monotonic clock: if the wall clock were set back, the wait would be longer by that much.
            clock_gettime(CLOCK_MONOTONIC, &until)
            until.tv_sec +|= Int(saturating: seconds)
            until.tv_nsec += Int((seconds - seconds.rounded(.down)) * 1e9) // no trap: below a second
            if until.tv_nsec >= 1_000_000_000 {
                until = timespec(tv_sec: until.tv_sec + 1, tv_nsec: until.tv_nsec - 1_000_000_000)
            }
            while sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until) != 0 {
                if errno != EINTR { return false }
            }
            return true
        }
    }
}
