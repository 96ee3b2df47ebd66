import EventIO
import Synchronization

/// Spreads connections evenly over the loops: the kernel chooses among listeners by hash, and eight players must
/// not end up on one loop while another is idle.
final class ConnectionBalance: Sendable {
    private let counts: Mutex<[Int]>
    private let loops: [EventLoop]
    private let servers = Mutex<[Int: LoopBound<LoopServer>]>([:])
    /// Whether a loop accepts nothing until a connection has ended.
    private let isRoomAwaited = Atomic(false)

    init(loops: [EventLoop]) {
        self.loops = loops
        counts = Mutex(Array(repeating: 0, count: loops.count))
    }

    func register(_ server: LoopServer) {
        let bound = LoopBound(server, on: server.loop)
        let index = server.loop.index
        servers.withLock { $0[index] = bound }
    }

    /// Called when the server has stopped: its parts on the loops and this object release each other.
    func clear() {
        servers.withLock { $0 = [:] }
    }

    /// Calls back with the servers of the other loops, on their loops.
    func visit(besides loop: Int?, _ body: @escaping @Sendable (LoopServer) -> Void) {
        for (index, server) in servers.withLock({ $0 }) where index != loop { server.post(body) }
    }

    var total: Int { counts.withLock { $0.reduce(0, +) } }

    func removed(from loop: Int) {
        counts.withLock { $0[loop] -= 1 }
        guard isRoomAwaited.load(ordering: .relaxed),
            isRoomAwaited.exchange(false, ordering: .acquiringAndReleasing)
        else { return }
        visit(besides: nil) { $0.acceptAgain() }
    }

    /// Has the loops accept again when the next connection has ended.
    func awaitRoom() { isRoomAwaited.store(true, ordering: .releasing) }

    /// Counts a socket for the loop that accepted it.
    func keep(on loop: Int) {
        counts.withLock { $0[loop] += 1 }
    }

    /// Gives a new socket to the loop that accepted it, which costs nothing, unless another loop has fewer
    /// connections.
    func place(_ socket: AcceptedSocket, from loop: Int, here adopt: () -> Void) {
        let chosen = counts.withLock { counts in
            let least = counts.indices.min { counts[$0] < counts[$1] }!
            let chosen =
                counts[loop] > counts[least] + 1 || (counts[loop] >= 2 && counts[loop] > counts[least]) ? least : loop
            counts[chosen] += 1
            return chosen
        }
        guard chosen != loop, let server = servers.withLock({ $0[chosen] }) else { return adopt() }
        server.post { $0.adopt(socket) }
    }
}
