import HTTPModel

/// Where a connection becomes a tunnel: what comes in is a body without end, and what goes out ends with the
/// connection.
extension Connection {
    func openTunnel(_ ends: any BodySink & BodySource, for exchange: Exchange) {
        guard isCurrent(exchange) else { return ends.finish() }
        incoming = IncomingBody(tunnelInto: ends)
        var response = Response(200, length: nil)
        response.opensTunnel = true
        response.closes = true
        // A server that stops does not wait for it.
        response.isEndless = true
        exchange.respond(response, body: ends, keepsReading: true)
        if !isProcessing { processPending() }
    }
}
