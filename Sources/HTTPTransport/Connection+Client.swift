import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// Who the client is: the other end of the connection, or whoever a trusted balancer names, for the whole connection
/// (PROXY protocol) or for a request (`Forwarded`).
extension Connection {
    var isPeerTrusted: Bool { server.clients.trusted.contains(accepted.peer.address) }

    // MARK: PROXY protocol

    /// - Returns: whether to continue with the rest of `inHand`.
    func takeProxyHeader() -> Bool {
        switch ProxyHeader.parse(inHand) {
        case .complete(let header, let consumed):
            dropFromHand(consumed)
            return introduce(header)
        case .incomplete:
            return false
        case .invalid(let fault):
            refuseBytes(fault)
            return false
        }
    }

    /// - Returns: whether the client is served.
    private func introduce(_ header: ProxyHeader) -> Bool {
        forwarded = header
        phase = .reading
        deadline = server.deadline(in: server.limits.requestSeconds)
        // A trusted proxy's connection is for all of its clients: their requests are counted.
        guard let address = header.client?.address, !server.clients.trusted.contains(address),
            server.currentLimits.connectionsPerClient != nil
        else { return true }
        let client = address.ofClient
        guard server.admit(client) else {
            server.metrics.errors.add(Refusals.Reason.client.rawValue)
            close(refusing: .client)
            return false
        }
        accepted.counted = client
        return true
    }

    private func close(refusing reason: Refusals.Reason) {
        let copy = dup(socket)
        if copy >= 0 { server.refuse(copy, reason) }
        dropFromHand(inHand.count)
        close()
    }

    /// What to say about bytes that are not a request, to a sender who takes this for another port.
    func fault(of bytes: UnsafeRawBufferPointer, else fault: RequestFault) -> RequestFault {
        guard !hasAnswered, forwarded == nil, ProxyHeader.isBegun(by: bytes) else { return fault }
        return .strayProxyHeader(expectsSome: server.clients.expectsProxyHeader, from: accepted.peer.address)
    }

    // MARK: Requests

    /// Reads what trusted proxies state about a request.
    /// - Returns: false if it was refused: a client of a balancer must not act for another, nor exceed its own limits.
    func admits(_ exchange: Exchange) -> Bool {
        if isPeerTrusted {
            do throws(RequestFault) { try readForwarding(exchange) } catch {
                server.metrics.errors.add("bad-request")
                exchange.respond(error.status, text: error.reason)
                return false
            }
        }
        let limits = server.currentLimits
        guard limits.requestsPerClient != nil || limits.connectionsPerClient != nil else { return true }
        return isWithin(limits, exchange)
    }

    private func readForwarding(_ exchange: Exchange) throws(RequestFault) {
        var request =
            isSenderTrusted
            ? try ForwardedRequest(exchange.request, trusted: server.clients.trusted) : ForwardedRequest()
        if forwarded?.isSecure == true, request.scheme == nil { request.scheme = .https }
        exchange.forwarded = request
    }

    /// Whether the requests of this connection, which comes from a trusted peer, are written by somebody trusted, too.
    ///
    /// A balancer that sends a PROXY header may pass on what a client writes, byte for byte. So the client that the
    /// header names is as good as connected here, and one that it does not name is nobody who is known.
    var isSenderTrusted: Bool {
        guard let forwarded, !forwarded.isLocal else { return true }
        return forwarded.client.map { server.clients.trusted.contains($0.address) } ?? false
    }

    private func isWithin(_ limits: ClientLimits, _ exchange: Exchange) -> Bool {
        let client = exchange.client.address
        // A balancer without a client to name is nobody's client.
        guard !server.clients.trusted.contains(client) else { return true }
        let counted = client.ofClient
        if let rate = limits.requestsPerClient, let wait = server.table.request(of: counted, atMost: rate) {
            refuse(exchange, "max-requests-per-client", after: wait / 1_000_000_000 +| 1) {
                "this client sends more than \(rate) requests, which max_requests_per_client permits: wait a little"
            }
            return false
        }
        // The connection of any other client is counted itself.
        guard exchange.forwarded?.client != nil, limits.connectionsPerClient != nil else { return true }
        guard server.admit(counted) else {
            // no trap: a constant
            refuse(exchange, Refusals.Reason.client.rawValue, after: UInt64(Refusals.retryAfter)) {
                "this client has as many requests running as max_connections_per_client permits: wait for some to end"
            }
            return false
        }
        exchange.counted = counted
        return true
    }

    private func refuse(_ exchange: Exchange, _ name: String, after seconds: UInt64, _ reason: () -> String) {
        server.metrics.errors.add(name)
        exchange.isRefused = true
        exchange.respond(429, text: reason()) { $0.field("Retry-After", Int64(clamping: seconds)) }
    }

    /// Called when an exchange is over.
    func ended(_ exchange: Exchange, isComplete: Bool) {
        record(exchange, isComplete: isComplete)
        if let counted = exchange.counted { server.table.leave(counted) }
        if exchange.isProbe {
            if isComplete { server.noteProbe(from: exchange.client.address) }
        } else {
            server.noteEnd()
        }
        exchange.notifyFollower()
    }
}
