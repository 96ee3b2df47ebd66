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
    var accepted: AcceptedSocket
    /// What a balancer says of the connection that it forwards; nil if it says nothing.
    var forwarded: ProxyHeader?
    var phase = Phase.reading
    /// Bytes received and not used yet.
    var pending = ReadAhead()
    /// The bytes that `process` has yet to use.
    private(set) var inHand = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var isProcessing = false
    /// The body of the request that is being answered, until it is complete.
    var incoming: IncomingBody?
    /// Of the last request, to compare the next one with.
    private var former: RequestHead.Rest?
    /// What the handler has read from it (`Exchange.reading`).
    var reading: AnyObject?
    /// Whether the fields of the last request are kept.
    var hasShortHead: Bool { former != nil }
    /// The client's address and port, and the address alone, as text.
    private(set) lazy var clientText = client.description
    private(set) lazy var clientHost = client.address.description
    var client: IPEndpoint { forwarded?.client ?? accepted.peer }
    /// When the connection is dropped unless it makes progress; nil while an answer is being sent, however long it
    /// takes.
    var deadline: UInt64?
    /// When the connection became idle; nil from the first byte of a request to the end of its answer.
    private(set) var idleSince: UInt64? = MonotonicClock.nanoseconds()
    /// Whether a request was answered on this connection, so that its client can do without it.
    private(set) var hasAnswered = false
    /// How many more requests are answered before the loop's other connections get their turn.
    private var requestsLeft = 0
    /// How many bytes were in `inHand` when they did not contain a whole header.
    private var incompleteHead = 0
    let output = Output()
    private(set) var readWatcher: SocketWatcher!
    private(set) var writeWatcher: SocketWatcher!

    init(_ accepted: AcceptedSocket, server: LoopServer) {
        self.accepted = accepted
        socket = accepted.descriptor
        self.server = server
        if server.clients.expectsProxyHeader, isPeerTrusted { phase = .introducing }
        readWatcher = SocketWatcher(socket, .read, on: server.loop) { [unowned self] in readable() }
        writeWatcher = SocketWatcher(socket, .write, on: server.loop) { [unowned self] in writable() }
        deadline = server.deadline(in: server.limits.requestSeconds)
        readWatcher.arm()
    }

    var exchange: Exchange? {
        if case .answering(let exchange) = phase { exchange } else { nil }
    }

    func isCurrent(_ exchange: Exchange) -> Bool {
        if let current = self.exchange { current === exchange } else { false }
    }

    var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

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

    /// Whether the connection has been open for no longer than since then, and its first request has yet to arrive.
    func isNew(since newest: UInt64) -> Bool { !hasAnswered && idleSince ?? .max >= newest }

    /// Closes the connection unless its first request begins soon.
    func hasToBegin(within seconds: Double) { deadline = server.deadline(in: seconds) }

    /// Whether an answer is being sent that has an end, to somebody who uses it.
    var isAnswering: Bool {
        if let exchange { !output.isEndless && !exchange.isProbe } else { false }
    }

    /// Whether a request may come next.
    private var isIntroduced: Bool {
        if case .introducing = phase { false } else { true }
    }

    // MARK: Input

    /// How many bytes are read ahead from a pipelining client while it waits for its answer.
    private static let maxReadAhead = 64 << 10

    func readable() {
        let scratch = server.scratch
        let count = recv(socket, scratch.baseAddress, scratch.count, 0)
        if count < 0 {
            if errno != EAGAIN && errno != EINTR { close() }
            return
        }
        // A client that closes its half no longer needs an answer: players, browsers and curl never close just one
        // half.
        guard count > 0 else { return close() }
        received(UnsafeRawBufferPointer(rebasing: scratch[0..<count]))
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .reading where pending.isEmpty, .introducing where pending.isEmpty, .draining:
            use(bytes)
        case .introducing:
            keep(bytes)
            processPending()
        case .reading:
            let mayBeWhole = mayEndHead(bytes)
            keep(bytes)
            if mayBeWhole { processPending() }
        case .answering where incoming?.isWanted == true:
            use(bytes)
        case .answering:
            keep(bytes)
            updateReading()
        case .lingering, .closed:
            break
        }
    }

    /// Whether it is worthwhile to parse a header again, now that these bytes have arrived. A long header in small
    /// pieces would be parsed as often as there are pieces: the work would grow with the square of its length.
    private func mayEndHead(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let count = pending.count + bytes.count
        return count <= Self.shortHead || count >= 2 * incompleteHead || count >= server.limits.request.maxHeadBytes
            || bytes.contains(ASCII.lineFeed)
    }

    /// Up to this many bytes, a header is parsed again with each piece that arrives: invalid ones are answered at
    /// once.
    private static let shortHead = 2048

    /// Keeps bytes that cannot be used yet: they are in transit.
    private func keep(_ bytes: UnsafeRawBufferPointer) {
        let address = (exchange?.client ?? client).address
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
        guard !pending.isEmpty || incoming != nil else { return }
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
        isProcessing = true
        requestsLeft = server.limits.requestsPerTurn
        inHand = bytes
        while step() {}
        isProcessing = false
        let left = inHand.count
        inHand = UnsafeRawBufferPointer(start: nil, count: 0)
        return left
    }

    /// - Returns: whether to continue with the rest of `inHand`.
    private func step() -> Bool {
        switch phase {
        case .introducing: return !inHand.isEmpty && takeProxyHeader()
        case .reading: return takeHead()
        case .answering: return incoming?.isWanted == true && takeBody()
        case .draining: return takeBody()
        case .lingering, .closed:
            dropFromHand(inHand.count)
            return false
        }
    }

    private func takeHead() -> Bool {
        guard !inHand.isEmpty, requestsLeft > 0 else { return false }
        switch RequestParser.parse(inHand, limits: server.limits.request, former: former) {
        case .complete(let head, let consumed):
            dropFromHand(consumed)
            requestsLeft -= 1
            begin(head)
            return true
        case .incomplete:
            noteIncompleteHead()
            return false
        case .invalid(let fault):
            refuseBytes(self.fault(of: inHand, else: fault))
            return false
        }
    }

    /// Refuses all that has arrived, and closes.
    func refuseBytes(_ fault: RequestFault) {
        server.metrics.errors.add("bad-request")
        let target = isRecorded ? Self.target(inBroken: inHand) : "-"
        dropFromHand(inHand.count)
        refuse(fault, target)
    }

    func dropFromHand(_ count: Int) {
        inHand = UnsafeRawBufferPointer(rebasing: inHand[count...])
    }

    /// Adjusts the watchers, the deadline and `100 Continue` once everything usable has been used.
    private func awaitMore() {
        guard !isClosed else { return }
        if isTurnOver { writeWatcher.arm() }
        updateReading()
        if incoming != nil { awaitBody() }
    }

    /// Whether requests wait here only because the loop's other connections have their turn. The next turn begins
    /// when the socket accepts bytes: until the client has read its answers, no more requests are answered.
    private var isTurnOver: Bool {
        if case .reading = phase { requestsLeft == 0 && !pending.isEmpty } else { false }
    }

    func takeTurn() {
        writeWatcher.disarm()
        processPending()
    }

    /// Stops reading while the bytes are not used, so that the client has to wait.
    func updateReading() {
        if incoming?.isPaused == true || pending.count >= Self.maxReadAhead {
            readWatcher.disarm()
        } else {
            readWatcher.arm()
        }
    }

    private func begin(_ head: RequestHead) {
        let exchange = Exchange(head, on: self, startedAt: MonotonicClock.nanoseconds())
        phase = .answering(exchange)
        if head.rest !== former { reading = nil }
        // An idle connection must not hold a long one.
        former = head.rest.bytes.count <= Self.shortHead ? head.rest : nil
        if head.body != .empty { incoming = IncomingBody(head) }
        deadline = nil
        idleSince = nil
        incompleteHead = 0
        if admits(exchange) { server.handler.handle(exchange) }
    }

    private func noteIncompleteHead() {
        incompleteHead = inHand.count
        guard idleSince != nil else { return }
        idleSince = nil
        deadline = server.deadline(in: server.limits.requestSeconds)
    }

    /// Answers bytes that never became a request, and closes.
    /// - Parameter target: what they ask for, as far as it can be told.
    private func refuse(_ fault: RequestFault, _ target: String) {
        let exchange = Exchange(.simplest, on: self, startedAt: MonotonicClock.nanoseconds())
        exchange.unparsedTarget = target
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
            deadline = server.deadline(in: server.limits.requestSeconds)
        }
        readWatcher.arm()
        // Within `process`, its loop continues anyway.
        if !isProcessing { processPending() }
    }

    /// Waits for the next request; the previous one is over.
    func awaitRequest() {
        guard !server.isDraining else { return linger() }
        phase = .reading
        hasAnswered = true
        idleSince = MonotonicClock.nanoseconds()
        deadline = server.deadline(in: server.limits.idleSeconds)
    }

    // MARK: End

    /// Called when the deadline has passed.
    func timeOut() {
        switch phase {
        case .reading where !pending.isEmpty, .introducing where !pending.isEmpty:
            server.metrics.errors.add("request-timeout")
            let part = isIntroduced ? "the request" : "the PROXY header"
            let fault = RequestFault.tooSlow("\(part) did not arrive", server.limits.requestSeconds)
            refuse(fault, pending.withUnsafeBytes { Self.target(inBroken: $0) })
        case .answering where incoming?.sink != nil:
            refuseBody(.tooSlow("too little of the body arrived", server.limits.requestSeconds))
        default:
            close()
        }
    }

    /// Sends no more, and waits for the client to close first: closing a socket that holds unread input resets it,
    /// and the client may lose the answer.
    func linger() {
        phase = .lingering
        pending = ReadAhead()
        incoming = nil
        shutdown(socket, Int32(SHUT_WR)) // no trap: a constant
        readWatcher.arm()
        deadline = server.deadline(in: server.limits.lingerSeconds)
    }

    /// Sends nothing more of this answer.
    func cut(_ exchange: Exchange) {
        if isCurrent(exchange) { close() }
    }

    func close() {
        let ended = phase
        guard !isClosed else { return }
        phase = .closed
        let sink = incoming?.sink
        incoming = nil
        if case .answering(let exchange) = ended {
            exchange.isOpen = false
            sink?.failed(.disconnected)
            exchange.onAbort?()
            exchange.onAbort = nil
            exchange.onRespond = nil
        }
        output.end()
        if case .answering(let exchange) = ended { self.ended(exchange, isComplete: false) }
        readWatcher.disarm()
        writeWatcher.disarm()
        if let counted = accepted.counted { server.table.leave(counted) }
        server.remove(self)
        Glibc.close(socket)
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
