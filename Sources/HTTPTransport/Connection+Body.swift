import EventIO
import HTTPModel

/// Reading a request's body. This continues alongside everything else in the exchange, until the body is complete
/// or the answer begins.
extension Connection {
    func readBody(limit: Int64?, into sink: any BodySink, for exchange: Exchange) {
        guard isCurrent(exchange), let incoming else { return sink.ended() }
        incoming.sink = sink
        incoming.limit = limit ?? .max
        if let limit, let length = exchange.bodyLength, length > limit { return refuseBody(.bodyTooLong(limit)) }
        processPending()
    }

    func resumeReading(of exchange: Exchange) {
        guard isCurrent(exchange), let incoming, incoming.isPaused else { return }
        incoming.isPaused = false
        processPending()
    }

    /// Takes the next piece of the body from the turn's bytes and gives it to the sink, or drops it if there is none.
    /// - Returns: whether to continue with the rest of them.
    func takeBody() -> Bool {
        guard let incoming else { return false }
        let bytes = turn.bytes
        do throws(RequestFault) {
            let step = try incoming.decoder.next(in: bytes)
            if !bytes.isEmpty { incoming.isAwaited = false }
            switch step {
            case .content(let range):
                turn.drop(range.upperBound)
                let isWithinLimit = incoming.deliver(UnsafeRawBufferPointer(rebasing: bytes[range]))
                if !isWithinLimit { refuseBody(.bodyTooLong(incoming.limit)) }
                return true
            case .incomplete:
                turn.dropAll()
                return false
            case .end(let consumed):
                turn.drop(consumed)
                endBody()
                return true
            }
        } catch {
            turn.dropAll()
            // The answer that was sent is the connection's last.
            if case .draining = phase { linger() } else { refuseBody(error) }
            return false
        }
    }

    private func endBody() {
        let sink = incoming?.sink
        incoming = nil
        if case .draining = phase { return awaitRequest() }
        times.deadline = nil
        sink?.ended()
    }

    /// Asks the client for more of the body, now that everything received has been used.
    func awaitBody() {
        guard case .answering = phase, let incoming, incoming.sink != nil else { return }
        let left = incoming.wait(at: MonotonicClock.nanoseconds(), most: server.limits.requestSeconds)
        times.deadline = left.map(server.deadline(in:))
        guard incoming.isAwaited else { return }
        incoming.isAwaited = false
        sendContinue()
    }

    /// Refuses the body. The sink may answer the request; otherwise one line of text does.
    func refuseBody(_ fault: RequestFault) {
        guard let exchange, let sink = incoming?.sink else { return }
        server.metrics.errors.add(fault.status == 408 ? "request-timeout" : "bad-request")
        incoming?.isBroken = true
        dismissBody()
        // This also covers a client that does not read the answer.
        times.deadline = server.deadline(in: server.limits.lingerSeconds)
        sink.failed(.refused(fault))
        if exchange.isOpen && !exchange.isAnswered { exchange.respond(fault.status, text: fault.reason, closes: true) }
    }

    /// Drops the sink, as the rest of the body is not needed.
    func dismissBody() {
        guard let incoming, let sink = incoming.sink else { return }
        (incoming.sink, incoming.isPaused) = (nil, false)
        times.deadline = nil
        updateReading()
        withExtendedLifetime(sink) {}
    }

    /// Whether another request can follow this one, whose body may be unread.
    var canReachNextRequest: Bool {
        guard let incoming else { return true }
        return turn.isRunning
            ? incoming.canBeDrained(after: turn.bytes) : pending.withUnsafeBytes { incoming.canBeDrained(after: $0) }
    }
}
