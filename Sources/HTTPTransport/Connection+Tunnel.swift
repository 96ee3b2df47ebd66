import HTTPModel

/// Turns a connection into a tunnel: the input is a body without end, and the output ends with the connection.
extension Connection {
    func openTunnel(_ ends: any BodySink & BodySource, for exchange: Exchange) {
        guard isCurrent(exchange) else { return ends.finish() }
        incoming = IncomingBody(tunnelInto: ends)
        var response = Response(200, length: nil)
        response.opensTunnel = true
        response.closes = true
        // A server that is shutting down does not wait for it.
        response.isEndless = true
        exchange.respond(response, body: ends, keepsReading: true)
        if !isProcessing { processPending() }
    }
}
