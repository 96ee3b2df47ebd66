import EventIO
import Glibc
import HTTPModel

extension Connection {
    func send(_ response: Response, body: (any BodySource)?, keepsReading: Bool, for exchange: Exchange) {
        guard isCurrent(exchange) else {
            body?.finish()
            return
        }
        // A client that still waits for `100 Continue` would otherwise receive it in the middle of the answer.
        if !keepsReading || incoming?.isAwaited == true { dismissBody() }
        let request = exchange.request
        output.keepsAlive = request.keepsAlive && !response.closes && !server.isDraining && canReachNextRequest
        // RFC 9110 §9.3.2, §15.4.5: no content in these answers.
        let hasContent = request.method != .head && response.status != 304 && response.status != 204
        output.begin(server.statusLine(response.status), date: response.hasDate ? nil : server.dateLine())
        output.layOut(response, and: exchange.ownFields, for: request, hasContent: hasContent)
        if hasContent, case .untilClose = output.framing { setResetsOnClose(true) }
        output.bodyBytesTaken = 0
        if hasContent, let body {
            output.source = body
            output.isComplete = false
            output.isEndless = response.isEndless
        } else if keepsReading, let body {
            // The request's body is still being used: the answer is over when its source has ended, without a
            // byte.
            output.source = body
            output.isComplete = false
            output.framing = .length(0)
        } else {
            output.framing = .none
            output.isComplete = true
            body?.finish()
        }
        pump()
    }

    /// Sends `100 Continue` (RFC 9110 §10.1.1). The answer itself follows later.
    func sendContinue() {
        output.frame("HTTP/1.1 100 Continue\r\n\r\n")
        output.isComplete = false
        pump()
    }

    func sendInterim(_ status: Int, _ lines: [UInt8], for exchange: Exchange) {
        guard isCurrent(exchange) else { return }
        output.begin(server.statusLine(status), date: nil)
        output.framed.append(contentsOf: lines)
        output.frame("\r\n")
        output.isComplete = false
        pump()
    }

    func resumeBody(of exchange: Exchange) {
        guard isCurrent(exchange), output.source != nil else { return }
        pump()
    }

    func writable() {
        if exchange == nil { takeTurn() } else { pump() }
    }

    private static let leastCost = 4 << 10

    /// Sends until the socket is full, the source has nothing, the answer is sent, or the turn is over.
    private func pump() {
        var turn = server.limits.writeTurnBytes
        while let exchange {
            if output.span.isEmpty && !output.isComplete {
                guard pull(for: exchange) else { return }
            }
            guard output.hasUnsent else {
                // It stays armed until nothing is unsent, so that a long body costs no system calls for changing
                // it.
                writeWatcher.disarm()
                if output.isComplete { return finishAnswer() }
                return // the source calls `resume`
            }
            guard turn > 0 else {
                // Others first. The write event fires again, as the socket still accepts bytes.
                return writeWatcher.arm()
            }
            switch output.transmit(to: socket, server.limits.transmission) {
            // Each call has a cost, however little it sends: a body in very many parts must not keep the others
            // waiting.
            case .sent(let count): turn -= max(count, Self.leastCost)
            case .full: return writeWatcher.arm()
            case .failed: return close()
            case .unreadable:
                guard output.source?.takeBack(output.span.count) == true else {
                    server.metrics.errors.add("disk-read")
                    return close()
                }
                output.takeBack()
            }
        }
    }

    /// Requests the next span from the source.
    /// - Returns: false if the connection was cut.
    private func pull(for exchange: Exchange) -> Bool {
        guard let source = output.source else { return true }
        let limit = min(server.limits.maxWriteBytes, max(server.limits.firstWriteBytes, output.bodyBytesTaken))
        switch source.next(limit: output.owed > 0 ? min(limit, output.owed) : limit) {
        case .span(let span):
            if output.bodyBytesTaken == 0 { exchange.noteFirstByte() }
            if output.take(span) { return true }
        case .wait:
            return true
        case .end:
            if output.complete() { return true }
        case .cut:
            break
        }
        // RFC 9112 §8: closing the connection marks a message as incomplete; the client must not take it for
        // complete.
        close()
        return false
    }

    /// Sets whether closing the socket resets the connection. For an HTTP/1.0 client, the end of the connection is
    /// the end of the body. Until the body is complete, anything that ends the connection resets it, including the
    /// end of this process: otherwise half a body would look like a whole one.
    private func setResetsOnClose(_ resets: Bool) {
        var value = Glibc.linger(l_onoff: resets ? 1 : 0, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<Glibc.linger>.size))
    }

    private func finishAnswer() {
        let keepsAlive = output.keepsAlive
        if case .untilClose = output.framing { setResetsOnClose(false) }
        let exchange = exchange
        exchange?.isOpen = false
        dismissBody()
        output.end()
        if let exchange { ended(exchange, isComplete: true) }
        answered(keepsAlive: keepsAlive)
    }
}
