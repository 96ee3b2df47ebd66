import EventIO
import HTTPModel

/// Reading a request's body. This continues alongside everything else in the exchange, until the body is complete
/// or the answer begins.
extension Connection {
    func readBody(limit: Int64?, into sink: any BodySink, for exchange: Exchange) {
        guard isCurrent(exchange), incoming != nil else { return sink.ended() }
        incoming?.sink = sink
        incoming?.limit = limit ?? .max
        if let limit, let length = exchange.bodyLength, length > limit { return refuseBody(.bodyTooLong(limit)) }
        // Within `process`, its loop continues anyway.
        if !isProcessing { processPending() }
    }

    func resumeReading(of exchange: Exchange) {
        guard isCurrent(exchange), incoming?.isPaused == true else { return }
        incoming?.isPaused = false
        if !isProcessing { processPending() }
    }

    /// Takes the next piece of the body from `inHand` and gives it to the sink, or drops it if there is no sink.
    /// - Returns: whether to continue with the rest of `inHand`.
    func takeBody() -> Bool {
        do throws(RequestFault) {
            guard let step = try incoming?.decoder.next(in: inHand) else { return false }
            if !inHand.isEmpty { incoming?.isAwaited = false }
            switch step {
            case .content(let range):
                let piece = UnsafeRawBufferPointer(rebasing: inHand[range])
                dropFromHand(range.upperBound)
                deliver(piece)
                return true
            case .incomplete:
                dropFromHand(inHand.count)
                return false
            case .end(let consumed):
                dropFromHand(consumed)
                endBody()
                return true
            }
        } catch {
            dropFromHand(inHand.count)
            // The answer that was sent is the connection's last.
            if case .draining = phase { linger() } else { refuseBody(error) }
            return false
        }
    }

    private func deliver(_ piece: UnsafeRawBufferPointer) {
        guard let body = incoming, let sink = body.sink else { return }
        let received = body.received +| Int64(piece.count)
        guard received <= body.limit else { return refuseBody(.bodyTooLong(body.limit)) }
        incoming?.received = received
        // Before the call: a sink may resume within it.
        incoming?.isPaused = true
        if sink.received(piece) == .more { incoming?.isPaused = false }
    }

    private func endBody() {
        let sink = incoming?.sink
        incoming = nil
        if case .draining = phase { return awaitRequest() }
        deadline = nil
        sink?.ended()
    }

    /// Asks the client for more of the body, now that everything received has been used.
    func awaitBody() {
        guard case .answering = phase, let body = incoming, body.sink != nil else { return }
        let isReading = !body.isPaused && !body.isTunnel
        let left = incoming?.patience.wait(
            received: body.received, isReading: isReading, at: MonotonicClock.nanoseconds(),
            most: server.limits.requestSeconds)
        deadline = isReading ? left.map(server.deadline(in:)) : nil
        guard body.isAwaited else { return }
        incoming?.isAwaited = false
        sendContinue()
    }

    /// Refuses the body. The sink may answer the request; otherwise one line of text does.
    func refuseBody(_ fault: RequestFault) {
        guard let exchange, let sink = incoming?.sink else { return }
        server.metrics.errors.add(fault.status == 408 ? "request-timeout" : "bad-request")
        incoming?.isBroken = true
        dismissBody()
        // This also covers a client that does not read the answer.
        deadline = server.deadline(in: server.limits.lingerSeconds)
        sink.failed(.refused(fault))
        if exchange.isOpen && !exchange.isAnswered { exchange.respond(fault.status, text: fault.reason, closes: true) }
    }

    /// Drops the sink, as the rest of the body is not needed.
    func dismissBody() {
        guard let sink = incoming?.sink else { return }
        incoming?.sink = nil
        incoming?.isPaused = false
        deadline = nil
        updateReading()
        withExtendedLifetime(sink) {}
    }

    /// Whether another request can follow this one, whose body may be unread.
    var canReachNextRequest: Bool {
        guard let incoming else { return true }
        return isProcessing
            ? incoming.canBeDrained(after: inHand) : pending.withUnsafeBytes { incoming.canBeDrained(after: $0) }
    }
}
