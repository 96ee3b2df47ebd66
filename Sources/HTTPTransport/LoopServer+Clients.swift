import CachePolicy
import Glibc
import HTTPModel

/// Which connections are accepted, besides the question of room.
extension LoopServer {
    /// - Returns: false if it was refused, and is closed.
    func admits(_ accepted: inout AcceptedSocket) -> Bool {
        let limits = currentLimits
        if limits.connectionsPerClient != nil, !clients.trusted.contains(accepted.peer.address) {
            let client = accepted.peer.address.ofClient
            guard enter(client) else { return refuses(accepted, .client) }
            accepted.counted = client
        }
        // Whoever is refused for itself takes no idle connection from others.
        guard let most = mostClients, isFull(most) else { return true }
        if let counted = accepted.counted { table.leave(counted) }
        return refuses(accepted, .all)
    }

    /// - Returns: false.
    private func refuses(_ accepted: AcceptedSocket, _ reason: Refusals.Reason) -> Bool {
        metrics.errors.add(reason.rawValue)
        refuse(accepted.descriptor, reason)
        return false
    }

    /// Counts a connection of a client.
    /// - Returns: false if it has as many as it may.
    func enter(_ client: IPAddress) -> Bool {
        table.enter(client, atMost: currentLimits.connectionsPerClient ?? .max)
    }

    func refuse(_ socket: Int32, _ reason: Refusals.Reason) {
        refusals.refuse(socket, reason, head: statusLine(reason.status) + dateLine(), scratch: scratch)
    }
}
