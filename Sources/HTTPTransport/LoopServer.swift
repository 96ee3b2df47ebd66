import Activity
import CLinux
import CachePolicy
import EventIO
import Glibc
import HTTPModel

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
    let clients: ClientRules
    let table: ClientLedger.SharedClients
    private let probes: ProbeLedger.SharedProbes
    var refusals: Refusals
    /// The last request that something was read from: the next connection's first is often like it.
    var former = FormerRequest()
    /// The lines of requests of all its connections.
    let lines = RequestLines()
    /// `TransportLimits.idleSeconds`.
    private let idleNanoseconds: UInt64
    private let balance: ConnectionBalance
    private var listener: SocketWatcher?
    /// Nil if another loop accepts the connections of this one.
    private let listeningSocket: Int32?
    private var limitsOfClients = (version: -1, limits: ClientLimits())
    /// Each knows its place.
    private var connections: [Connection] = []
    /// When to look for idle connections here, and when to have the other loops look.
    private var search = RoomSearch()
    private var searchElsewhere = RoomSearch()
    private var sweepTimer: LoopTimer!
    private var onEmpty: (() -> Void)?
    private var stage = Stage.serving
    /// When the last answer to a request that is no probe ended, while the server is draining.
    private var lastEnd: UInt64 = 0
    private var date = (second: 0, line: [UInt8]())

    private enum Stage {
        case serving
        /// It answers on, but each answer is the last one of its connection.
        case draining
        /// It accepts no more connections; running answers may end.
        case closing
    }

    init(
        loop: EventLoop, listeningSocket: Int32?, limits: TransportLimits, clients: ClientRules,
        table: ClientLedger.SharedClients, probes: ProbeLedger.SharedProbes, metrics: ProxyMetrics,
        balance: ConnectionBalance, handler: any RequestHandler, recorder: (any AccessRecorder)?
    ) {
        self.loop = loop
        self.listeningSocket = listeningSocket
        self.limits = limits
        refusals = Refusals(limits)
        idleNanoseconds = UInt64(saturating: limits.idleSeconds * 1e9)
        self.clients = clients
        self.table = table
        self.probes = probes
        self.metrics = metrics
        self.balance = balance
        self.handler = handler
        self.recorder = recorder
        sweepTimer = LoopTimer(on: loop) { [unowned self] in sweep() }
        listener = listeningSocket.map { socket in
            SocketWatcher(socket, .read, on: loop) { [unowned self] in accept(from: socket) }
        }
        listener?.arm()
        sweepTimer.schedule(afterSeconds: min(limits.sweepSeconds, limits.requestSeconds / 2))
    }

    deinit { scratch.deallocate() }

    /// Whether requests are recorded.
    var isRecording: Bool { recorder?.isOn == true }

    // MARK: Connections

    /// Parses the request that some bytes begin with, after a former one of its connection.
    func readHead(_ bytes: UnsafeRawBufferPointer, after former: RequestHead.Rest?) -> RequestParser.Outcome {
        RequestParser.parse(bytes, limits: limits.request, former: former, lines: lines)
    }

    var currentLimits: ClientLimits {
        let version = clients.limits.version
        if version != limitsOfClients.version { limitsOfClients = (version, clients.limits.value) }
        return limitsOfClients.limits
    }

    private var maxConnections: Int {
        currentLimits.connections == nil ? limits.maxConnections : limits.maxConnectionsWhenRefusing
    }

    private func accept(from listeningSocket: Int32) {
        // Only a few at a time: each may be answered here, and others get their turn in between.
        for _ in 0..<8 {
            guard balance.total < maxConnections else {
                makeRoom()
                balance.awaitRoom()
                // The last one elsewhere may have ended before that.
                if balance.total < maxConnections { listener?.arm() }
                return
            }
            guard var accepted = AcceptedSocket(from: listeningSocket) else {
                let code = errno
                guard !Self.isPassing(code) else { return }
                metrics.errors.add("accept")
                return Self.isShortage(code) ? makeRoom() : listener?.disarm() ?? ()
            }
            guard admits(&accepted) else { continue }
            guard Int(accepted.descriptor) <= limits.maxDescriptor || closeIdle() > 0 else {
                metrics.errors.add("accept")
                drop(accepted)
                return makeRoom()
            }
            metrics.acceptedConnections.add()
            let socket = accepted
            balance.place(socket, from: loop.index) { [unowned self] in adopt(socket) }
        }
    }

    /// Whether accepting failed for lack of a resource that an existing connection holds.
    private static func isShortage(_ code: Int32) -> Bool {
        code == EMFILE || code == ENFILE || code == ENOMEM || code == ENOBUFS
    }

    /// Whether there is nothing to accept, or one connection has gone (accept(2), "Error handling").
    private static func isPassing(_ code: Int32) -> Bool {
        [
            EAGAIN, EINTR, ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP,
            ENETUNREACH,
        ].contains(code)
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
        makeRoomElsewhere()
    }

    /// Called when a connection has ended anywhere while this loop, or another, waits for that.
    func acceptAgain() { if stage == .serving { listener?.arm() } }

    /// Has the other loops close connections that are idle there, and accepts again if one was.
    private func makeRoomElsewhere() {
        let now = MonotonicClock.nanoseconds()
        guard searchElsewhere.isDue(now) else { return }
        // Until one of them answers otherwise.
        searchElsewhere.foundNothing(now)
        let waiting = LoopBound(self, on: loop)
        balance.visit(besides: loop.index) { other in
            if other.closeIdle() > 0 { waiting.post { $0.hasRoomElsewhere() } }
        }
    }

    private func hasRoomElsewhere() {
        searchElsewhere.foundSome()
        listener?.arm()
    }

    /// Whether there are so many connections, and none here can be closed. Those of other loops can be for the next.
    func isFull(_ most: Int) -> Bool {
        guard balance.total >= most, closeIdle() == 0 else { return false }
        makeRoomElsewhere()
        return true
    }

    /// Closes the connections that have been idle for longest. Their clients retry on a new connection (RFC 9112
    /// §9.3.1).
    /// - Returns: how many; none if there were none a moment ago.
    private func closeIdle() -> Int {
        let now = MonotonicClock.nanoseconds()
        guard search.isDue(now) else { return 0 }
        let newest = now -| Self.leastIdleNanoseconds
        let oldest = now -| Self.longestOwedNanoseconds
        let idle = connections.filter { isUnneeded($0) && !$0.times.isNew(since: newest) }
        let longest = idle.sorted { $0.times.idleSince ?? .max < $1.times.idleSince ?? .max }.lazy.filter {
            !$0.hasUnreadInput && ($0.times.idleSince ?? .max < oldest || !self.owes($0))
        }
        .prefix(Self.roomAtOnce)
        let closed = Array(longest)
        for connection in closed {
            metrics.closedForRoom.add()
            connection.close()
        }
        if closed.isEmpty { search.foundNothing(now) }
        return closed.count
    }

    /// The first request on a new connection usually arrives within this time.
    private static let leastIdleNanoseconds: UInt64 = 1_000_000_000
    private static let roomAtOnce = 8
    /// A client that has taken nothing for so long has perhaps vanished.
    private static let longestOwedNanoseconds: UInt64 = 600_000_000_000

    /// Takes over a socket that is already counted for this loop.
    func adopt(_ socket: AcceptedSocket) {
        guard stage != .closing else {
            balance.removed(from: loop.index)
            return drop(socket)
        }
        metrics.connections.add(1)
        let connection = Connection(socket, server: self)
        connection.place = connections.count
        connections.append(connection)
        // Most clients' requests have arrived by now.
        connection.readable()
    }

    func remove(_ connection: Connection) {
        metrics.connections.add(-1)
        balance.removed(from: loop.index)
        // Whoever calls it holds it until that returns: its watchers' handlers, too, which these hold meanwhile.
        let last = connections.removeLast()
        if last !== connection { (connections[connection.place], last.place) = (last, connection.place) }
        callBackIfEmpty()
    }

    // MARK: Time

    func deadline(in seconds: Double) -> UInt64 {
        MonotonicClock.nanoseconds() +| UInt64(saturating: seconds * 1e9)
    }

    private func isUnneeded(_ connection: Connection) -> Bool {
        if case .lingering = connection.phase { true } else { connection.isIdle }
    }

    /// Whether a client, such as a paused player, has the end of its last answer to take. Once a socket is closed,
    /// Linux drops that after some minutes in which the client takes nothing.
    func owes(_ connection: Connection) -> Bool {
        !isDraining && connection.times.idleSince != nil && reel_unsent_bytes(connection.socket) > 0
    }

    /// How long a connection may be idle from now on.
    func idleTime() -> Range<UInt64> {
        let now = MonotonicClock.nanoseconds()
        return now..<(now +| idleNanoseconds)
    }

    private func sweep() {
        let now = MonotonicClock.nanoseconds()
        for connection in connections {
            if let deadline = connection.times.deadline, deadline <= now { connection.timeOut() }
        }
        refusals.closeAll()
        listener?.arm()
        sweepTimer.schedule(afterSeconds: min(limits.sweepSeconds, limits.requestSeconds / 2))
    }

    // MARK: Draining

    var isDraining: Bool { stage != .serving }

    /// From here on, each answer is the last one of its connection. Idle connections stay open: a balancer may be
    /// sending the next request on one of them.
    func drain() { stage = .draining }

    /// What is running, for a server that is draining.
    var look: DrainProgress.Look {
        // no trap: a count of connections
        DrainProgress.Look(running: connections.count { $0.isAnswering }, lastEnd: lastEnd)
    }

    /// Notes the end of an exchange.
    func noteEnd() {
        if isDraining { lastEnd = MonotonicClock.nanoseconds() }
    }

    /// Notes that somebody has asked how the server is.
    func noteProbe(from address: IPAddress) {
        let now = MonotonicClock.nanoseconds()
        probes.ledger.withLock { $0.note(from: address, isDraining: isDraining, now: now) }
    }

    /// Accepts no more connections.
    /// - Parameter keepsBacklog: whether connections that have not been accepted wait for the next process.
    func stopAccepting(keepingBacklog keepsBacklog: Bool) {
        stage = .draining
        listener = nil
        guard let listeningSocket else { return }
        if !keepsBacklog { acceptRest(from: listeningSocket) }
        close(listeningSocket)
    }

    /// Lets running answers finish if they have an end, then calls back. When all loops have stopped accepting, which
    /// hand connections to each other.
    func end(whenEmpty: @escaping () -> Void) {
        // Requests that have arrived are answered.
        for connection in connections where connection.isIdle && connection.hasUnreadInput {
            connection.readable()
        }
        stage = .closing
        onEmpty = whenEmpty
        let newest = MonotonicClock.nanoseconds() -| Self.leastIdleNanoseconds
        for connection in connections where connection.isIdle || connection.output.isEndless {
            // Whoever has just been let in is answered.
            let isNew = connection.isIdle && connection.times.isNew(since: newest)
            if isNew { connection.times.deadline = deadline(in: 1) } else { connection.close() }
        }
        callBackIfEmpty()
    }

    /// Accepts what has connected already: the kernel would reset it.
    private func acceptRest(from listeningSocket: Int32) {
        for _ in 0..<Self.mostRest {
            guard balance.total < maxConnections, var accepted = AcceptedSocket(from: listeningSocket) else {
                return
            }
            guard admits(&accepted) else { continue }
            metrics.acceptedConnections.add()
            balance.keep(on: loop.index)
            adopt(accepted)
        }
    }

    private static let mostRest = 1024

    /// Cuts the connections that are still open.
    func cut() {
        for connection in connections { connection.close() }
        refusals.closeAll()
        sweepTimer.cancel()
    }

    private func callBackIfEmpty() {
        guard stage == .closing, connections.isEmpty, let onEmpty else { return }
        self.onEmpty = nil
        onEmpty()
    }

    /// The line that all answers of a second share.
    func dateLine() -> [UInt8] {
        let second = time(nil)
        if second != date.second { date = (second, Array("Date: \(HTTPDate.format(Int64(second)))\r\n".utf8)) }
        return date.line
    }
}
