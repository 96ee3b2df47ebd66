import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// A client's connection: reads requests, one at a time, and sends their answers. Loop-bound.
final class Connection {
    enum Phase {
        /// Before the PROXY header of a balancer.
        case introducing
        /// Between requests, or in the middle of a head.
        case reading
        /// A request is being answered; its body may still be coming in.
        case answering(Exchange)
        /// The answer has been sent; the rest of the request's body is dropped, up to the next request.
        case draining
        /// The last answer has been sent; anything that the client still sends is dropped until it closes.
        case lingering
        case closed
    }

    let server: LoopServer
    let socket: Int32
    /// Taken out of this object while a call changes it, as is `former`: no access to it is checked then.
    var peer: Peer
    var phase = Phase.reading
    /// Bytes received and not used yet.
    var pending = ReadAhead()
    var turn = InputTurn()
    var former: FormerRequest
    /// The body of the request that is being answered, until it is complete.
    var incoming: IncomingBody?
    var times: ConnectionTimes
    let output: Output
    private(set) var readWatcher: SocketWatcher!
    /// Made when the socket is full for the first time: most never are.
    private(set) var writeWatcher: SocketWatcher?
    /// Among those of its loop.
    var place = 0

    init(_ accepted: AcceptedSocket, server: LoopServer) {
        (socket, self.server, output) = (accepted.descriptor, server, Output(server.limits))
        (peer, former) = (Peer(accepted, server.clients), server.former)
        times = ConnectionTimes(
            MonotonicClock.nanoseconds(), deadline: server.deadline(in: server.limits.requestSeconds))
        if peer.sendsHeader { phase = .introducing }
        readWatcher = SocketWatcher(socket, .read, on: server.loop) { [unowned self] in readable() }
        readWatcher.arm()
    }

    var exchange: Exchange? { if case .answering(let exchange) = phase { exchange } else { nil } }

    func isCurrent(_ exchange: Exchange) -> Bool { self.exchange === exchange }

    /// Whether bytes have arrived that were not read yet.
    var hasUnreadInput: Bool {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    var isIdle: Bool {
        switch phase {
        case .introducing, .reading: pending.isEmpty
        default: false
        }
    }

    /// Whether an answer is being sent that has an end, to somebody who uses it.
    var isAnswering: Bool { exchange.map { !output.isEndless && $0.role != .probe } ?? false }

    // MARK: Input

    /// How many bytes are read ahead from a pipelining client while it waits for its answer.
    private static let maxReadAhead = 64 << 10

    func readable() {
        let scratch = server.scratch
        let count = recv(socket, scratch.baseAddress, scratch.count, 0)
        guard count >= 0 || errno != EAGAIN && errno != EINTR else { return }
        // A client that closes its half no longer needs an answer: players, browsers and curl never close just one
        // half.
        guard count > 0 else { return close() }
        received(UnsafeRawBufferPointer(rebasing: scratch[0..<count]))
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .reading where pending.isEmpty, .introducing where pending.isEmpty, .draining:
            use(bytes)
        case .introducing, .reading:
            let mayBeWhole = turn.mayEndHead(
                pending.count + bytes.count, with: bytes, longest: server.limits.request.maxHeadBytes)
            keep(bytes)
            if mayBeWhole { processPending() }
        case .answering where incoming?.isWanted == true:
            use(bytes)
        case .answering:
            keep(bytes)
            updateReading()
        // Whoever sends on is no paused player.
        case .lingering, .closed: times.headBegan(times.deadline ?? 0)
        }
    }

    /// Keeps bytes that cannot be used yet: they are in transit.
    private func keep(_ bytes: UnsafeRawBufferPointer) {
        let address = (exchange?.client ?? peer.client).address
        let counted = server.clients.trusted.contains(address) ? nil : address.ofClient
        pending.append(bytes, in: server.metrics.transit, for: counted)
    }

    /// Uses bytes that have just arrived, if none are pending before them.
    private func use(_ bytes: UnsafeRawBufferPointer) {
        let left = process(bytes)
        if left > 0 { keep(UnsafeRawBufferPointer(rebasing: bytes.suffix(left))) }
        awaitMore()
    }

    func processPending() {
        // Within `process`, its loop continues anyway.
        guard !turn.isRunning, !pending.isEmpty || incoming != nil else { return }
        var taken = pending
        pending = ReadAhead()
        let left = taken.withUnsafeBytes { process($0) }
        taken.keep(last: left)
        pending = taken
        awaitMore()
    }

    /// Handles requests for as long as they are answered at once, and reads bodies for as long as their sinks
    /// accept them.
    /// - Returns: how many bytes at the end are left for later.
    private func process(_ bytes: UnsafeRawBufferPointer) -> Int {
        turn.begin(bytes, requests: server.limits.requestsPerTurn)
        while step() {}
        return turn.end()
    }

    /// - Returns: whether to continue with the rest of the turn's bytes.
    private func step() -> Bool {
        switch phase {
        case .introducing: return !turn.bytes.isEmpty && takeProxyHeader()
        case .reading: return takeHead()
        case .answering: return incoming?.isWanted == true && takeBody()
        case .draining: return takeBody()
        case .lingering, .closed:
            turn.dropAll()
            return false
        }
    }

    private func takeHead() -> Bool {
        guard turn.mayTakeHead else { return false }
        switch server.readHead(turn.bytes, after: former.rest) {
        case .complete(let head, let consumed):
            turn.takeHead(consumed)
            begin(head)
            return true
        case .incomplete:
            turn.noteIncompleteHead()
            times.headBegan(server.deadline(in: server.limits.requestSeconds))
            return false
        case .invalid(let fault):
            refuseBytes(self.fault(of: turn.bytes, else: fault))
            return false
        }
    }

    /// Refuses all that has arrived, and closes.
    func refuseBytes(_ fault: RequestFault) {
        server.metrics.errors.add("bad-request")
        let target = server.isRecording ? ExchangeAccount.target(inBroken: turn.bytes) : "-"
        turn.dropAll()
        refuse(fault, target)
    }

    /// Adjusts the watchers, the deadline and `100 Continue` once everything usable has been used.
    private func awaitMore() {
        if case .closed = phase { return }
        // Requests that wait only because the loop's other connections have their turn are answered when the socket
        // accepts bytes: not before the client has read its answers.
        if case .reading = phase, turn.requestsLeft == 0, !pending.isEmpty { awaitRoom() }
        updateReading()
        if incoming != nil { awaitBody() }
    }

    /// Has `writable` called as long as the socket accepts bytes.
    func awaitRoom() {
        writeWatcher = writeWatcher ?? SocketWatcher(socket, .write, on: server.loop) { [unowned self] in writable() }
        writeWatcher?.arm()
    }

    /// Stops reading while the bytes are not used, so that the client has to wait.
    func updateReading() {
        let isPaused = incoming?.isPaused == true || pending.count >= Self.maxReadAhead
        if isPaused { readWatcher.disarm() } else { readWatcher.arm() }
    }

    private func begin(_ head: RequestHead) {
        var forwarded: ForwardedRequest?, fault: RequestFault?
        if peer.isTrusted {
            let peer = peer
            do throws(RequestFault) { forwarded = try peer.forwarded(head, server.clients) } catch { fault = error }
        }
        let exchange = Exchange(head, forwarded, server.lines.last, on: self)
        phase = .answering(exchange)
        if head.rest !== former.rest { former = former.noting(head.rest) }
        if case .empty = head.body {} else { incoming = IncomingBody(head) }
        times.requestBegan()
        if let fault {
            server.metrics.errors.add("bad-request")
            exchange.respond(fault.status, text: fault.reason)
        } else if server.admits(exchange) {
            server.handler.handle(exchange)
        }
    }

    /// Answers bytes that never became a request, and closes.
    /// - Parameter target: what they ask for, as far as it can be told.
    private func refuse(_ fault: RequestFault, _ target: String) {
        let exchange = Exchange(.simplest, nil, nil, on: self)
        exchange.account.unparsedTarget = target
        phase = .answering(exchange)
        exchange.respond(fault.status, text: fault.reason, closes: true)
    }

    /// Continues after the answer was sent: with the next request, or with the end of the connection.
    func answered(keepsAlive: Bool) {
        guard keepsAlive && !server.isDraining else { return linger() }
        if incoming == nil {
            awaitRequest()
        } else {
            phase = .draining
            times.deadline = server.deadline(in: server.limits.requestSeconds)
        }
        readWatcher.arm()
        processPending()
    }

    /// Waits for the next request; the previous one is over.
    func awaitRequest() {
        guard !server.isDraining else { return linger() }
        phase = .reading
        times.requestEnded(server.idleTime())
    }

    // MARK: End

    /// Called when the deadline has passed.
    func timeOut() {
        switch phase {
        case .reading where !pending.isEmpty: refuseSlow("the request")
        case .introducing where !pending.isEmpty: refuseSlow("the PROXY header")
        case .answering where incoming?.sink != nil:
            refuseBody(.tooSlow("too little of the body arrived", server.limits.requestSeconds))
        case .reading where server.owes(self), .lingering where server.owes(self):
            times.deadline = server.deadline(in: server.limits.lingerSeconds)
        default: close()
        }
    }

    private func refuseSlow(_ part: String) {
        server.metrics.errors.add("request-timeout")
        let fault = RequestFault.tooSlow("\(part) did not arrive", server.limits.requestSeconds)
        refuse(fault, pending.withUnsafeBytes { ExchangeAccount.target(inBroken: $0) })
    }

    /// Sends no more, and waits for the client to close first: closing a socket that holds unread input resets it,
    /// and the client may lose the answer.
    func linger() {
        (phase, pending, incoming) = (.lingering, ReadAhead(), nil)
        shutdown(socket, Int32(SHUT_WR)) // no trap: a constant
        readWatcher.arm()
        times.requestEnded(MonotonicClock.nanoseconds()..<server.deadline(in: server.limits.lingerSeconds))
    }

    /// Sends nothing more of this answer.
    func cut(_ exchange: Exchange) { if isCurrent(exchange) { close() } }

    func close() {
        if case .closed = phase { return }
        let ended = exchange
        phase = .closed
        let sink = incoming?.sink
        incoming = nil
        if let ended {
            ended.end()
            sink?.failed(.disconnected)
            ended.abort()
        }
        output.end()
        if let ended { server.ended(ended, isComplete: false) }
        readWatcher.disarm()
        writeWatcher?.disarm()
        if let counted = peer.counted { server.table.leave(counted) }
        Glibc.close(socket)
        server.remove(self)
    }
}

extension RequestHead {
    /// Stands in for bytes that never became a request.
    fileprivate static let simplest: RequestHead = {
        let bytes = Array("GET / HTTP/1.0\r\n\r\n".utf8)
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ RequestParser.parse($0, limits: RequestLimits()) })
        else {
            preconditionFailure("the parser refuses the simplest request")
        }
        return head
    }()
}
