import CLinux
import EventIO
import Glibc
import HTTPModel
import Metrics
import Synchronization

/// An HTTP/1.1 server on several loops that share a port (`SO_REUSEPORT`). Each connection belongs to one loop.
package final class HTTPServer: Sendable {
    /// The address, with the port that was actually bound.
    package let address: ListenAddress
    private let servers: [LoopBound<LoopServer>]
    private let balance: ConnectionBalance
    private let isStopped = Mutex(false)

    /// Listens and serves at once.
    /// - Parameters:
    ///   - recorder: receives the records of requests.
    ///   - makeHandler: called on each loop to make that loop's handler.
    /// - Throws: `ListenError`, including if another process uses the port.
    package init(
        _ address: ListenAddress, loops: [EventLoop], limits: TransportLimits, metrics: ProxyMetrics,
        recorder: (any AccessRecorder)? = nil,
        makeHandler: @escaping @Sendable (EventLoop) -> any RequestHandler
    ) throws(ListenError) {
        // With SO_REUSEPORT, the kernel would let two processes share the port. A listener without it detects
        // that.
        close(try address.listen(shared: false, unsentBytes: limits.unsentBytes))
        let first = try address.listen(shared: true, unsentBytes: limits.unsentBytes)
        let bound = ListenAddress(host: address.host, port: ListenAddress.port(of: first))
        var sockets = [first]
        for _ in loops.dropFirst() { sockets.append(try bound.listen(shared: true, unsentBytes: limits.unsentBytes)) }
        let balance = ConnectionBalance(loops: loops)
        self.balance = balance
        servers = zip(loops, sockets).map { loop, socket in
            loop.sync {
                let server = LoopServer(
                    loop: loop, listeningSocket: socket, limits: limits, metrics: metrics, balance: balance,
                    handler: makeHandler(loop),
                    recorder: recorder)
                balance.register(server)
                return LoopBound(server, on: loop)
            }
        }
        self.address = bound
    }

    /// Accepts no more connections, gives running answers this many seconds to finish, then cuts them. Blocks;
    /// must not be called on a loop.
    package func stop(graceSeconds: Double) {
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        guard isFirst else { return }
        let drained = Latch(servers.count)
        for server in servers {
            server.post { $0.drain { drained.countDown() } }
        }
        drained.wait(seconds: graceSeconds)
        for server in servers {
            server.loop.sync { server.value.cut() }
        }
        balance.clear()
    }
}

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

    func wait(seconds: Double) {
        var until = timespec()
        // The monotonic clock: if the wall clock were set back, the wait would be longer by that much.
        clock_gettime(CLOCK_MONOTONIC, &until)
        until.tv_sec +|= Int(saturating: seconds)
        until.tv_nsec += Int((seconds - seconds.rounded(.down)) * 1e9) // no trap: below a second
        if until.tv_nsec >= 1_000_000_000 {
            until = timespec(tv_sec: until.tv_sec + 1, tv_nsec: until.tv_nsec - 1_000_000_000)
        }
        while sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR {}
    }
}
