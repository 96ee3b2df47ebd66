import CLinux
import EventIO
import Glibc
import HTTPModel
import Metrics

/// The part of the server that belongs to one loop: its listener and its connections. Loop-bound.
final class LoopServer {
    let loop: EventLoop
    let limits: TransportLimits
    let metrics: ProxyMetrics
    let handler: any RequestHandler
    /// Receives the records of requests.
    let recorder: (any AccessRecorder)?
    /// A buffer that input is received into, before any of it has to be kept.
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 64)
    private let balance: ConnectionBalance
    private var listener: SocketWatcher?
    private var listeningSocket: Int32
    private var connections: [ObjectIdentifier: Connection] = [:]
    private var sweepTimer: LoopTimer!
    private var onDrained: (() -> Void)?
    private(set) var isDraining = false
    private var date = (second: 0, line: [UInt8]())
    private var statusLines: [Int: [UInt8]] = [:]

    init(
        loop: EventLoop, listeningSocket: Int32, limits: TransportLimits, metrics: ProxyMetrics,
        balance: ConnectionBalance, handler: any RequestHandler,
        recorder: (any AccessRecorder)?
    ) {
        self.loop = loop
        self.listeningSocket = listeningSocket
        self.limits = limits
        self.metrics = metrics
        self.balance = balance
        self.handler = handler
        self.recorder = recorder
        sweepTimer = LoopTimer(on: loop) { [unowned self] in sweep() }
        listener = SocketWatcher(listeningSocket, .read, on: loop) { [unowned self] in accept() }
        listener?.arm()
        sweepTimer.schedule(afterSeconds: 1)
    }

    deinit { scratch.deallocate() }

    // MARK: Connections

    private func accept() {
        // Only a few at a time: each may be answered here, and others get their turn in between.
        for _ in 0..<8 {
            guard balance.total < limits.maxConnections else { return makeRoom() }
            // no trap: constants
            let socket = accept4(listeningSocket, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
            guard socket >= 0 else {
                guard Self.isShortage(errno) else { return }
                metrics.errors.add("accept")
                return makeRoom()
            }
            guard Int(socket) <= limits.maxDescriptor || closeIdle() > 0 else {
                metrics.errors.add("accept")
                close(socket)
                return makeRoom()
            }
            metrics.acceptedConnections.add()
            balance.place(socket, from: loop.index) { [unowned self] in adopt(socket) }
        }
    }

    /// Whether accepting failed for lack of a resource that an existing connection holds.
    private static func isShortage(_ code: Int32) -> Bool {
        code == EMFILE || code == ENFILE || code == ENOMEM || code == ENOBUFS
    }

    // MARK: Room for new connections

    /// Closes connections that are idle between requests, here or on another loop, to make room for new ones in
    /// the kernel's backlog.
    ///
    /// The listener stays readable meanwhile and would keep the loop busy: it is armed again when there is room,
    /// or by the next sweep.
    private func makeRoom() {
        if closeIdle() > 0 { return }
        listener?.disarm()
        let waiting = LoopBound(self, on: loop)
        balance.visit(besides: loop.index) { other in
            if other.closeIdle() > 0 { waiting.post { $0.listener?.arm() } }
        }
    }

    /// Closes the connections that have been idle for longest. Their clients retry on a new connection (RFC 9112
    /// §9.3.1).
    /// - Returns: how many.
    private func closeIdle() -> Int {
        let newest = MonotonicClock.nanoseconds() -| Self.leastIdleNanoseconds
        let idle = connections.values.filter { $0.isIdle && ($0.hasAnswered || $0.idleSince ?? .max < newest) }
        let longest = idle.sorted { $0.idleSince ?? .max < $1.idleSince ?? .max }.lazy.filter { !$0.hasUnreadInput }
            .prefix(Self.roomAtOnce)
        let closed = Array(longest)
        for connection in closed {
            metrics.closedForRoom.add()
            connection.close()
        }
        return closed.count
    }

    /// The first request on a new connection usually arrives within this time.
    private static let leastIdleNanoseconds: UInt64 = 1_000_000_000
    private static let roomAtOnce = 8

    /// Takes over a socket that is already counted for this loop.
    func adopt(_ socket: Int32) {
        guard !isDraining else {
            balance.removed(from: loop.index)
            close(socket)
            return
        }
        metrics.connections.add(1)
        let connection = Connection(socket: socket, server: self)
        connections[ObjectIdentifier(connection)] = connection
        // Most clients' requests have arrived by now.
        connection.readable()
    }

    func remove(_ connection: Connection) {
        metrics.connections.add(-1)
        balance.removed(from: loop.index)
        // Its watcher's callback may be running: release it after that has returned.
        let removed = connections.removeValue(forKey: ObjectIdentifier(connection))
        loop.afterCallback { withExtendedLifetime(removed) {} }
        drainedIfEmpty()
    }

    // MARK: Time

    func deadline(in seconds: Double) -> UInt64 {
        MonotonicClock.nanoseconds() +| UInt64(saturating: seconds * 1e9)
    }

    private func sweep() {
        let now = MonotonicClock.nanoseconds()
        for connection in Array(connections.values) {
            if let deadline = connection.deadline, deadline <= now { connection.timeOut() }
        }
        listener?.arm()
        sweepTimer.schedule(afterSeconds: min(1, limits.requestSeconds / 2))
    }

    // MARK: Draining

    /// Accepts no more connections, lets running answers finish if they have an end, then calls back.
    func drain(whenEmpty: @escaping () -> Void) {
        isDraining = true
        listener = nil
        close(listeningSocket)
        onDrained = whenEmpty
        for connection in Array(connections.values) where connection.isIdle || connection.output.isEndless {
            connection.close()
        }
        drainedIfEmpty()
    }

    /// Cuts the connections that are still open.
    func cut() {
        for connection in Array(connections.values) { connection.close() }
        sweepTimer.cancel()
    }

    private func drainedIfEmpty() {
        guard isDraining, connections.isEmpty, let onDrained else { return }
        self.onDrained = nil
        onDrained()
    }

    // MARK: Lines shared by many answers

    func dateLine() -> [UInt8] {
        let second = time(nil)
        if second != date.second { date = (second, Array("Date: \(HTTPDate.format(Int64(second)))\r\n".utf8)) }
        return date.line
    }

    func statusLine(_ status: Int) -> [UInt8] {
        if let line = statusLines[status] { return line }
        let line = Array("HTTP/1.1 \(status) \(StatusCode.reason(status))\r\n".utf8)
        statusLines[status] = line
        return line
    }
}
