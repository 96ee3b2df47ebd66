import CachePolicy
import Glibc
import HTTPModel

/// Which connections are accepted, besides the question of room.
extension LoopServer {
    /// - Returns: false if it was refused, and is closed.
    func admits(_ accepted: inout AcceptedSocket) -> Bool {
        // First, since nobody else's connection is closed for a client that has too many.
        let socket = accepted.descriptor
        guard admits(accepted.peer.address, countedAs: &accepted.counted, refusing: socket) else { return false }
        guard let most = currentLimits.connections, isFull(most) else { return true }
        metrics.errors.add(Refusals.Reason.all.rawValue)
        if let counted = accepted.counted { table.leave(counted) }
        refuse(accepted.descriptor, .all)
        return false
    }

    /// Closes a socket that nothing was kept of.
    func drop(_ accepted: AcceptedSocket) {
        if let counted = accepted.counted { table.leave(counted) }
        close(accepted.descriptor)
    }

    /// Counts a connection of a client, if clients are counted and this is one.
    /// - Parameters:
    ///   - counted: set to the address under which it is counted.
    ///   - socket: a descriptor of its own for the refusal, which closes it.
    /// - Returns: false if it was refused.
    func admits(
        _ address: IPAddress, countedAs counted: inout IPAddress?, refusing socket: @autoclosure () -> Int32
    ) -> Bool {
        guard currentLimits.connectionsPerClient != nil, !clients.trusted.contains(address) else { return true }
        let client = address.ofClient
        guard admit(client) else {
            metrics.errors.add(Refusals.Reason.client.rawValue)
            let socket = socket()
            if socket >= 0 { refuse(socket, .client) }
            return false
        }
        counted = client
        return true
    }

    /// Counts a connection of a client.
    /// - Returns: false if it has as many as it may.
    func admit(_ client: IPAddress) -> Bool {
        table.enter(client, atMost: currentLimits.connectionsPerClient ?? .max)
    }

    func refuse(_ socket: Int32, _ reason: Refusals.Reason) {
        metrics.responses.add(reason.status)
        refusals.refuse(socket, reason, head: StatusCode.line(reason.status) + dateLine(), scratch: scratch)
    }

    // MARK: Requests

    /// Counts a request of a client.
    /// - Returns: false if it was refused, as its client exceeds a limit.
    func admits(_ exchange: Exchange) -> Bool {
        let limits = currentLimits
        guard limits.requestsPerClient != nil || limits.connectionsPerClient != nil else { return true }
        // A balancer without a client to name is nobody's client.
        guard let client = exchange.countedClient else { return true }
        if let rate = limits.requestsPerClient, let wait = table.request(of: client, atMost: rate) {
            refuse(exchange, "max-requests-per-client", after: wait / 1_000_000_000 +| 1) {
                "this client sends more than \(rate) requests, which max_requests_per_client permits: wait a little"
            }
            return false
        }
        // The connection of any other client is counted itself.
        guard exchange.forwarded?.client != nil, limits.connectionsPerClient != nil else { return true }
        guard admit(client) else {
            // no trap: a constant
            refuse(exchange, Refusals.Reason.client.rawValue, after: UInt64(Refusals.retryAfter)) {
                "this client has as many requests running as max_connections_per_client permits: wait for some to end"
            }
            return false
        }
        exchange.counted = client
        return true
    }

    private func refuse(_ exchange: Exchange, _ name: String, after seconds: UInt64, _ reason: () -> String) {
        metrics.errors.add(name)
        exchange.account.isRefused = true
        exchange.respond(429, text: reason()) { $0.field("Retry-After", Int64(clamping: seconds)) }
    }

    /// Called when an exchange is over.
    func ended(_ exchange: Exchange, isComplete: Bool) {
        if let recorder, recorder.isOn, exchange.isLogged {
            recorder.record(exchange.record(isComplete: isComplete))
        }
        if let counted = exchange.counted { table.leave(counted) }
        if exchange.role == .probe {
            if isComplete { noteProbe(from: exchange.client.address) }
        } else {
            noteEnd()
        }
        exchange.notifyFollower()
    }
}
