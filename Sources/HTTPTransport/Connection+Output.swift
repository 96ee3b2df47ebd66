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
        output.begin(
            response, date: server.dateLine(), and: exchange.ownFields, for: request, body: body,
            keepsReading: keepsReading)
        output.setResetsOnClose(true, of: socket)
        pump()
    }

    /// Sends `100 Continue` (RFC 9110 §10.1.1). The answer itself follows later.
    func sendContinue() {
        output.interim(100, [])
        pump()
    }

    func sendInterim(_ status: Int, _ lines: [UInt8], for exchange: Exchange) {
        guard isCurrent(exchange) else { return }
        output.interim(status, lines)
        pump()
    }

    func resumeBody(of exchange: Exchange) {
        guard isCurrent(exchange), output.source != nil else { return }
        pump()
    }

    func writable() {
        guard exchange == nil else { return pump() }
        writeWatcher?.disarm()
        processPending()
    }

    /// Sends as much of the answer as is possible now.
    private func pump() {
        guard let exchange else { return }
        switch output.send(to: socket, begin: { exchange.noteFirstByte() }) {
        // It stays armed until nothing is unsent, so that a long body costs no system calls for changing it.
        case .waiting: writeWatcher?.disarm()
        // The write event fires as soon as the socket accepts bytes.
        case .full: awaitRoom()
        case .complete:
            writeWatcher?.disarm()
            finishAnswer(exchange)
        case .broken: close()
        case .unreadable:
            server.metrics.errors.add("disk-read")
            close()
        }
    }

    private func finishAnswer(_ exchange: Exchange) {
        let keepsAlive = output.keepsAlive
        output.setResetsOnClose(false, of: socket)
        exchange.end()
        dismissBody()
        output.end()
        server.ended(exchange, isComplete: true)
        answered(keepsAlive: keepsAlive)
    }
}
