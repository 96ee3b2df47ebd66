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
    package let request: RequestHead
    /// The request's target; in origin form even if an absolute one named this server.
    package var target: String
    /// Called when the client disconnects before the answer was given. Not called after `respond`: from then on,
    /// the body's `finish` reports it.
    package var onAbort: (() -> Void)?
    /// Notified when the exchange is over, and released then.
    package var follower: (any ExchangeFollower)?
    /// Where to record the time from the request to the first byte of its body.
    package var firstByteTimes: LatencyHistogram?
    /// What the handler has read from the fields and the client alone. It is kept for the connection's next request if
    /// that has the same fields, byte for byte, and few of them.
    package var reading: AnyObject? {
        get { connection.reading }
        set { if connection.hasShortHead { connection.reading = newValue } }
    }
    /// Field lines that every answer to this request carries, each ended by CRLF.
    package var ownFields: [UInt8] = []
    /// The loop to which the connection belongs.
    package let loop: EventLoop
    /// Called with the status and `Cache-Status` when the answer is given; not if the client disconnects before.
    package var onRespond: ((Int, CacheStatus?) -> Void)?
    /// Whether the request is recorded, so that `resourceURL` is worth setting.
    package var isRecorded: Bool { connection.isRecorded }
    /// The URL of the requested resource for the access log; nil to log the target.
    package var resourceURL: String?
    /// For the access log, the target of what never became a request, as far as it could be read; nil for a request.
    var unparsedTarget: String?
    /// Bytes of the body that were stored before they were requested, and those that have arrived from an origin
    /// since.
    package var bytesFromCache: Int64 = 0
    package var bytesFromOrigin: Int64 = 0
    /// The status of the answer; nil before there is one.
    package private(set) var status: Int?
    private(set) var cacheStatus: CacheStatus?
    private(set) var firstByteAt: UInt64?
    private let connection: Connection
    /// When the header of the request was complete; monotonic, in nanoseconds.
    package let startedAt: UInt64
    /// Whether the client is still waiting for this answer.
    package internal(set) var isOpen = true
    /// Whether the answer was given, though perhaps not sent yet.
    package private(set) var isAnswered = false
    private var isBodyRead = false
    /// How many interim responses, and how many bytes of them, may still be sent: they are held in memory for a client
    /// that does not read.
    private var interimsLeft = (count: 16, bytes: 32 << 10)

    init(_ request: RequestHead, on connection: Connection, startedAt: UInt64) {
        self.request = request
        target = request.target
        self.connection = connection
        loop = connection.server.loop
        self.startedAt = startedAt
    }

    // MARK: Who sent it

    /// What trusted balancers state about this request; nil if it did not come from one.
    package internal(set) var forwarded: ForwardedRequest?
    /// Whether a trusted balancer wrote it: what its fields state about the client may be passed on.
    package var isForwarded: Bool { forwarded != nil && connection.isSenderTrusted }
    /// The address under which the running request is counted; nil if its connection is.
    var counted: IPAddress?
    /// Whether a limit refused it: such requests are counted, but have no line in the access log.
    var isRefused = false
    /// Whether it is for the control interface and not for media: it doesn't count as a player's.
    package var isControl = false
    /// Whether it has a line in the access log only if it fails: a page asks again and again.
    package var isRoutine = false
    /// Whether it only asks how the proxy is: a server that is shutting down does not wait for such requests to end.
    package var isProbe = false

    /// The address that the client connected to: here, or at its balancer. May call the kernel.
    package var localAddress: ListenAddress {
        guard let server = connection.forwarded?.server else { return ListenAddress(localOf: connection.socket) }
        return ListenAddress(host: server.address.description, port: server.port.map(Int.init) ?? 0)
    }

    /// The client, as far as trusted balancers name it; otherwise whoever is connected.
    package var client: IPEndpoint { forwarded?.client ?? connection.client }

    /// Its address, without the port.
    package var clientHost: String { forwarded?.client?.address.description ?? connection.clientHost }

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
        onAbort = nil
        isAnswered = true
        status = response.status
        if !isControl { connection.server.metrics.responses.add(response.status) }
        if isRecorded { cacheStatus = response.cacheStatus }
        if let onRespond {
            self.onRespond = nil
            onRespond(response.status, response.cacheStatus)
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

    /// Answers CONNECT: from here on, bytes are forwarded both ways, until one side ends.
    package func openTunnel(_ ends: any BodySink & BodySource) {
        guard isOpen else { return ends.finish() }
        connection.openTunnel(ends, for: self)
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

    func notifyFollower() {
        let follower = follower
        self.follower = nil
        follower?.ended(self)
    }

    func noteFirstByte() {
        let now = MonotonicClock.nanoseconds()
        firstByteAt = now
        firstByteTimes?.record(nanoseconds: now -| startedAt)
    }

    /// Tells the connection that a source that returned `wait` has bytes now. On the loop.
    package func resume() {
        guard isOpen else { return }
        connection.resumeBody(of: self)
    }
}
