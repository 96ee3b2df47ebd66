import EventIO
import Glibc
import HTTPModel

/// A client's connection: reads requests, one at a time, and writes their answers. Loop-bound.
final class Connection {
    enum Phase {
        /// Between requests, or in the middle of a head.
        case reading
        /// A request is being answered.
        case answering(Exchange)
        /// The last answer is out; what the client still sends is dropped until it closes.
        case lingering
        case closed
    }

    unowned let server: LoopServer
    let socket: Int32
    var phase = Phase.reading
    /// What was received and not yet parsed.
    var pending: [UInt8] = []
    var isParsing = false
    /// When the connection is dropped unless it gets further; nil while an answer is on its way, however long it takes.
    var deadline: UInt64?
    /// Whether the deadline is the one for connections that ask nothing.
    private var isIdling = false
    var output = Output()
    private(set) var readWatcher: SocketWatcher!
    private(set) var writeWatcher: SocketWatcher!

    init(socket: Int32, server: LoopServer) {
        self.socket = socket
        self.server = server
        readWatcher = SocketWatcher(socket, .read, on: server.loop) { [unowned self] in readable() }
        writeWatcher = SocketWatcher(socket, .write, on: server.loop) { [unowned self] in writable() }
        deadline = server.deadline(in: server.limits.requestSeconds)
        readWatcher.arm()
    }

    var exchange: Exchange? {
        if case .answering(let exchange) = phase { exchange } else { nil }
    }

    var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    var isIdle: Bool {
        if case .reading = phase { pending.isEmpty } else { false }
    }

    // MARK: Input

    /// A pipelining client is read ahead no further than this while it waits for its answer.
    private static let maxReadAhead = 64 << 10

    func readable() {
        let scratch = server.scratch
        let count = recv(socket, scratch.baseAddress, scratch.count, 0)
        if count < 0 {
            if errno != EAGAIN && errno != EINTR { close() }
            return
        }
        // A client that closes its half no longer wants an answer: players, browsers and curl never close one half alone.
        guard count > 0 else { return close() }
        received(UnsafeRawBufferPointer(rebasing: scratch[0..<count]))
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .reading where pending.isEmpty:
            parse(bytes)
        case .reading:
            pending.append(contentsOf: bytes)
            parsePending()
        case .answering:
            pending.append(contentsOf: bytes)
            if pending.count >= Self.maxReadAhead { readWatcher.disarm() }
        case .lingering, .closed:
            break
        }
    }

    private func parsePending() {
        guard !pending.isEmpty else { return }
        let bytes = pending
        pending.removeAll(keepingCapacity: bytes.count <= 4096)
        bytes.withUnsafeBytes { parse($0) }
    }

    /// Handles requests for as long as they are answered at once; keeps the rest.
    private func parse(_ bytes: UnsafeRawBufferPointer) {
        isParsing = true
        var rest = bytes
        parsing: while case .reading = phase, !rest.isEmpty {
            switch RequestParser.parse(rest, limits: server.limits.request) {
            case .complete(let head, let consumed):
                rest = UnsafeRawBufferPointer(rebasing: rest[consumed...])
                begin(head)
            case .incomplete:
                if isIdling { startRequestDeadline() }
                break parsing
            case .invalid(let fault):
                server.metrics.errors.add("bad-request")
                return refuse(fault.status, fault.reason)
            }
        }
        isParsing = false
        guard !isClosed else { return }
        if !rest.isEmpty { pending.insert(contentsOf: rest, at: 0) }
    }

    private func begin(_ head: RequestHead) {
        let exchange = Exchange(head, on: self, startedAt: MonotonicClock.nanoseconds())
        phase = .answering(exchange)
        deadline = nil
        isIdling = false
        server.handler.handle(exchange)
    }

    private func startRequestDeadline() {
        isIdling = false
        deadline = server.deadline(in: server.limits.requestSeconds)
    }

    /// What never became a request is answered as if it were the simplest one.
    private static let noRequest: RequestHead = {
        let bytes = Array("GET / HTTP/1.0\r\n\r\n".utf8)
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ RequestParser.parse($0, limits: RequestLimits()) }) else {
            preconditionFailure("the parser refuses the simplest request")
        }
        return head
    }()

    /// Answers what never became a request, and closes.
    private func refuse(_ status: Int, _ reason: String) {
        isParsing = false
        let exchange = Exchange(Self.noRequest, on: self, startedAt: 0)
        phase = .answering(exchange)
        exchange.respond(status, text: reason, closes: true)
    }

    /// The answer is out: the next request, or the end of the connection.
    func answered(keepsAlive: Bool) {
        guard keepsAlive && !server.isDraining else { return linger() }
        phase = .reading
        isIdling = true
        deadline = server.deadline(in: server.limits.idleSeconds)
        readWatcher.arm()
        // Within `parse` its loop goes on by itself.
        if !isParsing { parsePending() }
    }

    // MARK: End

    /// The deadline has passed.
    func timeOut() {
        switch phase {
        case .reading where !pending.isEmpty:
            server.metrics.errors.add("request-timeout")
            refuse(408, "the request did not arrive within \(Int(server.limits.requestSeconds)) seconds")
        default:
            close()
        }
    }

    /// Closing a socket that holds unread input resets it, and the client may lose the answer: so the client closes first.
    private func linger() {
        phase = .lingering
        pending = []
        shutdown(socket, Int32(SHUT_WR))
        readWatcher.arm()
        deadline = server.deadline(in: server.limits.lingerSeconds)
    }

    func close() {
        let ended = phase
        guard !isClosed else { return }
        phase = .closed
        if case .answering(let exchange) = ended {
            exchange.isOpen = false
            exchange.onAbort?()
            exchange.onAbort = nil
        }
        output.end()
        readWatcher.disarm()
        writeWatcher.disarm()
        server.remove(self)
        Glibc.close(socket)
    }
}
