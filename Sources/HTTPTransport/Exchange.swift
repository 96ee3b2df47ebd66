import EventIO
import HTTPModel
import Metrics

/// Answers requests. One for each loop, loop-bound.
package protocol RequestHandler: AnyObject {
    /// Called for each request; the answer is given through the exchange, now or later.
    func handle(_ exchange: Exchange)
}

/// One request and its answer. Loop-bound.
package final class Exchange {
    package let request: RequestHead
    /// The request's target; in origin form also where an absolute one named this very server.
    package lazy var target = request.target
    /// Called when the client goes away before the answer was given. Not after `respond`: then the body's `finish`
    /// tells.
    package var onAbort: (() -> Void)?
    /// Where to record the time from the request to the first byte of its body.
    package var firstByteTimes: LatencyHistogram?
    /// Field lines that the answer bears whatever it is, each ended by CRLF.
    package var ownFields: [UInt8] = []
    /// The loop that the connection lives on.
    package let loop: EventLoop
    /// Called with the status and `Cache-Status` when the answer is given; not where the client went away before.
    package var onRespond: ((Int, String?) -> Void)?
    /// Whether somebody keeps a record of it, by what it is called there.
    package var isRecorded: Bool { connection.isRecorded }
    /// What the request is for, as the access log names it; nil for the target.
    package var resourceURL: String?
    /// Bytes of the body that were stored before they were asked for, and those that came from an origin since.
    package var bytesFromCache: Int64 = 0
    package var bytesFromOrigin: Int64 = 0
    /// Of the answer; nil before there is one.
    private(set) var status: Int?
    private(set) var cacheStatus: String?
    private(set) var firstByteAt: UInt64?
    private unowned let connection: Connection
    let startedAt: UInt64
    /// Whether the client still waits for this answer.
    package internal(set) var isOpen = true
    /// Whether the answer was given, though it may not be out yet.
    private(set) var isAnswered = false
    private var isBodyRead = false

    init(_ request: RequestHead, on connection: Connection, startedAt: UInt64) {
        self.request = request
        self.connection = connection
        loop = connection.server.loop
        self.startedAt = startedAt
    }

    /// Where the client has connected to. Asks the kernel.
    package var localAddress: ListenAddress { ListenAddress(localOf: connection.socket) }

    /// The address that the client has connected from, without its port. The kernel is asked once for each connection.
    package var clientHost: String { connection.peerAddress.host }

    // MARK: The request's body

    /// How many bytes of body the request announces: 0 where it has none, nil where it comes in chunks (RFC 9112 §7.1).
    package var bodyLength: Int64? {
        switch request.body {
        case .empty: 0
        case .length(let length): length
        case .chunked: nil
        }
    }

    /// Reads the request's body, from its first byte. Once, before `respond`, which ends the reading, unless it is told
    /// not to: the sink is told nothing more then. The sink may be told before this returns.
    ///
    /// Each piece has to come within `TransportLimits.requestSeconds` after the one before, pauses of the sink
    /// excepted.
    /// - Parameter limit: the most bytes that the sink takes; nil for any number. Of a longer body nothing is read
    ///   where its length was announced, and else nothing beyond the limit; the fault's status is 413.
    package func readBody(limit: Int64?, into sink: any BodySink) {
        precondition(!isBodyRead, "a body is read once")
        isBodyRead = true
        guard isOpen else { return sink.failed(.disconnected) }
        precondition(!isAnswered, "a body is read before the answer")
        connection.readBody(limit: limit, into: sink, for: self)
    }

    /// Reads the request's body into memory. Once, before `respond`.
    /// - Parameters:
    ///   - limit: the most bytes that it may have.
    ///   - completion: called once, maybe before this returns, with the body, or with why there is none. In that case
    ///     it may answer
    ///     itself (where the fault is not `disconnected`); otherwise the fault's status and one line of text are the answer.
    package func readBody(upTo limit: Int, completion: @escaping (Result<[UInt8], BodyFault>) -> Void) {
        readBody(limit: Int64(limit), into: BodyCollector(completion))
    }

    /// The sink that paused takes more now; it may be told before this returns. On the loop.
    package func resumeReading() {
        guard isOpen else { return }
        connection.resumeReading(of: self)
    }

    // MARK: The answer

    /// Answers the request. Once; ignored when the client is gone.
    /// - Parameters:
    ///   - body: must yield exactly `response.length` bytes where that is known. Not asked for HEAD, 204 and 304,
    ///     unless `keepsReading`: then for
    ///     its end alone.
    ///   - keepsReading: whether the sink has the request's body further on, until the answer is out and its source has
    ///     ended.
    package func respond(_ response: Response, body: (any BodySource)? = nil, keepsReading: Bool = false) {
        guard isOpen else {
            body?.finish()
            return
        }
        onAbort = nil
        isAnswered = true
        status = response.status
        if connection.isRecorded || onRespond != nil { cacheStatus = response.value(of: "Cache-Status") }
        onRespond?(response.status, cacheStatus)
        onRespond = nil
        var response = response
        response.fields(rendered: ownFields)
        connection.send(response, body: body, keepsReading: keepsReading, for: self)
    }

    /// Answers CONNECT: from here on bytes go both ways, until one side ends.
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

    /// Closes the connection, whatever of the answer is out: also of a client that takes no more of it. On the loop.
    package func cut() {
        guard isOpen else { return }
        connection.cut(self)
    }

    func noteFirstByte() {
        let now = MonotonicClock.nanoseconds()
        firstByteAt = now
        firstByteTimes?.record(nanoseconds: now -| startedAt)
    }

    /// The source that answered `wait` has something now. On the loop.
    package func resume() {
        guard isOpen else { return }
        connection.resumeBody(of: self)
    }
}
