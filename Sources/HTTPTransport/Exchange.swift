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
    /// Called when the client goes away before the answer was given. Not after `respond`: then the body's `finish` tells.
    package var onAbort: (() -> Void)?
    /// Where to record the time from the request to the first byte of its body.
    package var firstByteTimes: LatencyHistogram?
    /// The loop that the connection lives on.
    package let loop: EventLoop
    private unowned let connection: Connection
    let startedAt: UInt64
    /// Whether the client still waits for this answer.
    package internal(set) var isOpen = true

    init(_ request: RequestHead, on connection: Connection, startedAt: UInt64) {
        self.request = request
        self.connection = connection
        loop = connection.server.loop
        self.startedAt = startedAt
    }

    /// Answers the request. Once; ignored when the client is gone.
    /// - Parameter body: must yield exactly `response.length` bytes where that is known. Not asked for HEAD, 204 and 304.
    package func respond(_ response: Response, body: (any BodySource)? = nil) {
        guard isOpen else {
            body?.finish()
            return
        }
        onAbort = nil
        connection.send(response, body: body, for: self)
    }

    /// Answers with a short text.
    package func respond(_ status: Int, text: String, closes: Bool = false, configure: (inout Response) -> Void = { _ in }) {
        let bytes = Array((text + "\n").utf8)
        var response = Response(status, length: Int64(bytes.count))
        response.closes = closes
        response.field("Content-Type", "text/plain; charset=utf-8")
        configure(&response)
        respond(response, body: BytesSource(bytes))
    }

    /// The source that answered `wait` has something now. On the loop.
    package func resume() {
        guard isOpen else { return }
        connection.resumeBody(of: self)
    }
}
