import Activity
import CachePolicy
import EventIO
import HTTPModel

/// Answers requests. One per loop, loop-bound.
package protocol RequestHandler: AnyObject {
    /// Called for each request; the answer is given through the exchange, now or later.
    func handle(_ exchange: Exchange)
}

/// Is notified of the end of an exchange. Loop-bound.
package protocol ExchangeFollower: AnyObject {
    /// The answer was sent, or the client has disconnected. Called once, after the body's `finish`.
    func ended(_ exchange: Exchange)
}

/// One request and its answer. Loop-bound.
package final class Exchange {
    /// Whom a request is from, as far as that changes how it is counted.
    package enum Role {
        /// A player.
        case player
        /// A user of the control interface.
        case control
        /// A page of the control interface that asks again and again: it has a line in the access log only if it fails.
        case page
        /// Somebody who only asks how the proxy is: a server that is shutting down does not wait for the end.
        case probe
    }

    package let request: RequestHead
    /// The beginning of its line, if that is remembered: what is found for its target is kept there.
    package let line: RequestLines.Line?
    /// The loop to which the connection belongs.
    package let loop: EventLoop
    /// When the header of the request was complete; monotonic, in nanoseconds.
    package let startedAt = MonotonicClock.nanoseconds()
    private let connection: Connection
    /// What trusted balancers state about this request; nil if it did not come from one.
    package let forwarded: ForwardedRequest?
    /// The address under which the running request is counted; nil if its connection is.
    var counted: IPAddress?
    private(set) var role = Role.player
    /// Field lines that the answer to this request carries, whatever it is, each ended by CRLF.
    private(set) var ownFields: [UInt8] = []
    /// The target in origin form of a request that was sent in absolute form and names this server.
    private var originForm: String?
    private var abortAction: (() -> Void)?
    private var answerAction: ((Int, CacheStatus?) -> Void)?
    private var follower: (any ExchangeFollower)?
    var account = ExchangeAccount()
    /// Whether the answer was sent, or the client is gone.
    private var isOver = false
    private var isBodyRead = false
    /// How many interim responses, and how many bytes of them, may still be sent: they are held in memory for a client
    /// that does not read.
    private var interimsLeft = (count: 16, bytes: 32 << 10)

    init(
        _ request: RequestHead, _ forwarded: ForwardedRequest?, _ line: RequestLines.Line?, on connection: Connection
    ) {
        (self.request, self.forwarded, self.line) = (request, forwarded, line)
        (self.connection, loop) = (connection, connection.server.loop)
        isRecorded = connection.server.isRecording
    }

    // Other modules reach no stored `var`: each access of theirs would be checked for another at the same time.

    /// The request's target; in origin form even if an absolute one named this server.
    package var target: String { originForm ?? request.target }

    /// Sets the target of a request that was sent in absolute form and names this server.
    package func retarget(_ originForm: String) { self.originForm = originForm }

    /// Whether the client is still waiting for this answer.
    package var isOpen: Bool { !isOver }

    /// Whether the answer was given, though perhaps not sent yet.
    package var isAnswered: Bool { account.status != nil }

    /// Has `action` called when the client disconnects before the answer was given. It is not called after `respond`:
    /// from then on, the body's `finish` reports it.
    package func onAbort(_ action: @escaping () -> Void) { abortAction = action }

    /// Has `action` called with the status and `Cache-Status` when the answer is given; not if the client disconnects
    /// before.
    package func onRespond(_ action: @escaping (Int, CacheStatus?) -> Void) { answerAction = action }

    /// Has it notified when the exchange is over, and releases it then.
    package func follow(by follower: any ExchangeFollower) { self.follower = follower }

    /// Sets field lines that the answer to this request carries, whatever it is, each ended by CRLF.
    package func carry(_ fields: [UInt8]) { ownFields = fields }

    package func count(as role: Role) { self.role = role }

    /// What the handler has read from the client and the fields but `Range`, for an earlier request with the same ones.
    package var reading: AnyObject? {
        guard let known = connection.former.reading, known.client == client.address else { return nil }
        return known.of
    }

    /// Keeps what the handler has read from the client and the fields but `Range`, for the next request that has the
    /// same ones, byte for byte, and few of them.
    package func keep(_ reading: AnyObject) {
        let former = connection.former.keeping(reading, for: client.address)
        (connection.former, connection.server.former) = (former, former)
    }

    // MARK: What is counted of it

    /// Whether the request is recorded, so that `resourceURL` is worth setting.
    package let isRecorded: Bool

    /// Whether it has a line in the access log.
    var isLogged: Bool { !account.isRefused && (role != .page || account.status ?? 0 >= 400) }

    /// Sets the URL of the requested resource for the access log, which has the target otherwise.
    package func record(url: String) { account.resourceURL = url }

    /// Records the time from the request to the first byte of its body.
    package func recordFirstByte(in times: LatencyHistogram) { account.firstByteTimes = times }

    /// Counts bytes of the body that were stored before they were requested, and those that have arrived from an origin
    /// since.
    package func count(fromCache: Int64 = 0, fromOrigin: Int64 = 0) {
        account.bytesFromCache +|= fromCache
        account.bytesFromOrigin +|= fromOrigin
    }

    /// The status of the answer, nil before there is one, and what was counted of its body.
    package var answered: (status: Int?, fromCache: Int64, fromOrigin: Int64) {
        (account.status, account.bytesFromCache, account.bytesFromOrigin)
    }

    /// Bytes of the body that were given to the connection.
    var bytesOfBody: Int64 { isAnswered ? Int64(connection.output.bodyBytesTaken) : 0 }

    func noteFirstByte() {
        let now = MonotonicClock.nanoseconds(), times = account.firstByteTimes
        account.firstByteAt = now
        times?.record(nanoseconds: now -| startedAt)
    }

    // MARK: Who sent it

    /// Whether a trusted balancer wrote it: what its fields state about the client may be passed on.
    package var isForwarded: Bool { forwarded != nil && connection.peer.isSenderTrusted }

    /// The address that the client connected to: here, or at its balancer. May call the kernel.
    package var localAddress: ListenAddress {
        guard let server = connection.peer.header?.server else { return ListenAddress(localOf: connection.socket) }
        return ListenAddress(host: server.address.description, port: server.port.map(Int.init) ?? 0)
    }

    /// The client, as far as trusted balancers name it; otherwise whoever is connected.
    package var client: IPEndpoint { forwarded?.client ?? connection.peer.client }

    /// Its address, without the port.
    package var clientHost: String { client.address.description }

    /// Its address and port.
    var clientText: String { forwarded?.client?.description ?? connection.clientText }

    /// The address under which its client is counted; nil for a trusted balancer that names none.
    package var countedClient: IPAddress? {
        let address = client.address
        return connection.server.clients.trusted.contains(address) ? nil : address.ofClient
    }

    /// Whether the server is shutting down: this may be the last answer on its connection.
    package var isDraining: Bool { connection.server.isDraining }

    // MARK: The request's body

    /// The length of the body that the request announces: 0 if it has none, nil if it arrives in chunks (RFC 9112
    /// §7.1).
    package var bodyLength: Int64? {
        switch request.body {
        case .empty: 0
        case .length(let length): length
        case .chunked: nil
        }
    }

    /// Reads the request's body, from its first byte. Once, before `respond`, which ends the reading unless
    /// `keepsReading` is set: the sink is not called again then. The sink may be called before this returns.
    ///
    /// Each piece has to arrive within `TransportLimits.requestSeconds` after the previous one, not counting
    /// pauses of the sink.
    /// - Parameter limit: the most bytes that the sink accepts; nil for any number. Nothing is read of a longer
    ///   body whose length was announced; of others, nothing beyond the limit. The fault's status is 413.
    package func readBody(limit: Int64?, into sink: any BodySink) {
        precondition(!isBodyRead, "a body is read once")
        isBodyRead = true
        guard isOpen else { return sink.failed(.disconnected) }
        precondition(!isAnswered, "a body is read before the answer")
        connection.readBody(limit: limit, into: sink, for: self)
    }

    /// Reads the request's body into memory. Once, before `respond`.
    /// - Parameters:
    ///   - limit: the maximum length of the body in bytes.
    ///   - completion: called once, perhaps before this returns, with the body, or with the reason why there is
    ///     none. In that case it may answer the request itself (unless the fault is `disconnected`); otherwise the
    ///     answer is the fault's status and one line of text.
    package func readBody(upTo limit: Int, completion: @escaping (Result<[UInt8], BodyFault>) -> Void) {
        readBody(
            limit: Int64(limit),
            into: BodyCollector(connection.server.metrics.transit.share(of: countedClient), completion))
    }

    /// Tells the connection that a paused sink accepts more; the sink may be called before this returns. On the
    /// loop.
    package func resumeReading() {
        guard isOpen else { return }
        connection.resumeReading(of: self)
    }

    // MARK: The answer

    /// Answers the request. Once; ignored if the client is gone.
    /// - Parameters:
    ///   - body: must yield exactly `response.length` bytes if that is known. Not read for HEAD, 204 and 304,
    ///     unless `keepsReading` is set: then only its end matters.
    ///   - keepsReading: whether the sink continues to receive the request's body, until the answer is sent and
    ///     its source has ended.
    package func respond(_ response: Response, body: (any BodySource)? = nil, keepsReading: Bool = false) {
        assert(HeldLocks.areNone, "an answer is given under a lock")
        guard isOpen else {
            body?.finish()
            return
        }
        abortAction = nil
        account.status = response.status
        if role == .player { connection.server.metrics.responses.add(response.status) }
        if isRecorded { account.cacheStatus = response.cacheStatus }
        if let answerAction {
            self.answerAction = nil
            answerAction(response.status, response.cacheStatus)
        }
        connection.send(response, body: body, keepsReading: keepsReading, for: self)
    }

    /// Sends a response before the answer (RFC 9110 §15.2). Not to clients of HTTP/1.0, which know of none (§15.2), nor
    /// more than a few.
    /// - Parameter fields: must be well-formed.
    package func sendInterim(_ status: Int, _ fields: HeaderFields) {
        precondition((102..<200).contains(status), "an interim response for the client")
        guard isOpen, !isAnswered, request.version == .http11 else { return }
        let lines = fields.lines.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
        guard interimsLeft.count > 0, lines.count <= interimsLeft.bytes else { return }
        interimsLeft = (interimsLeft.count - 1, interimsLeft.bytes - lines.count)
        connection.sendInterim(status, lines, for: self)
    }

    /// Answers CONNECT: from here on, bytes are forwarded both ways, until one side ends. The input is a body without
    /// end, and the output ends with the connection.
    package func openTunnel(_ ends: any BodySink & BodySource) {
        guard isOpen else { return ends.finish() }
        connection.incoming = IncomingBody(tunnelInto: ends)
        var response = Response(200, length: nil)
        (response.opensTunnel, response.closes) = (true, true)
        // A server that is shutting down does not wait for it.
        response.isEndless = true
        respond(response, body: ends, keepsReading: true)
        connection.processPending()
    }

    /// Answers with a short text.
    package func respond(
        _ status: Int, text: String, closes: Bool = false, configure: (inout Response) -> Void = { _ in }
    ) {
        let bytes = Array((text + "\n").utf8)
        var response = Response(status, length: Int64(bytes.count))
        response.closes = closes
        response.field("Content-Type", "text/plain; charset=utf-8")
        configure(&response)
        respond(response, body: BytesSource(bytes))
    }

    /// The body of an answer from memory. If it is long, it counts as bytes in transit until it is sent.
    /// - Parameters:
    ///   - range: which of the bytes; nil for all.
    ///   - shared: stands for the bytes if other answers may send them, too; nil if they are this answer's own.
    /// - Returns: nil if there is no room for it, which is counted: the answer is 503 (`Transit.exhausted`).
    package func source(
        of bytes: [UInt8], _ range: Range<Int>? = nil, sharedBy shared: ProxyMetrics.Transit.SharedBytes? = nil
    ) -> BytesSource? {
        let least = ProxyMetrics.Transit.leastWindow
        guard Int64(bytes.count) > least else { return BytesSource(bytes, range) }
        let metrics = connection.server.metrics, share = metrics.transit.share(of: countedClient)
        // Whatever its length: otherwise the longest might never be answered.
        guard share.window > least else {
            metrics.errors.add(FailureKind.proxyBusy.rawValue)
            return nil
        }
        let holder = shared?.holder(else: share) ?? share
        // no trap: the length of an array
        share.hold(Int64((holder === share ? bytes.count : 0) + BytesSource.longestPiece))
        return BytesSource(bytes, range, countedBy: [share, holder])
    }

    /// Closes the connection, however much of the answer was sent, even if the client reads no more of it. On the
    /// loop.
    package func cut() {
        guard isOpen else { return }
        connection.cut(self)
    }

    /// The answer was sent, or the client is gone.
    func end() { isOver = true }

    /// The client is gone before the answer was sent.
    func abort() {
        let action = abortAction
        (abortAction, answerAction) = (nil, nil)
        action?()
    }

    func notifyFollower() {
        let follower = follower
        self.follower = nil
        follower?.ended(self)
    }

    /// Tells the connection that a source that returned `wait` has bytes now. On the loop.
    package func resume() {
        guard isOpen else { return }
        connection.resumeBody(of: self)
    }
}
