import CachePolicy
import Glibc
import HTTPModel

/// Which connections are accepted, besides the question of room.
extension LoopServer {
    /// - Returns: false if it was refused, and is closed.
    func admits(_ accepted: inout AcceptedSocket) -> Bool {
        let limits = currentLimits
        // First, since nobody else's connection is closed for a client that has too many.
        if limits.connectionsPerClient != nil, !clients.trusted.contains(accepted.peer.address) {
            let client = accepted.peer.address.ofClient
            guard admit(client) else {
                metrics.errors.add(Refusals.Reason.client.rawValue)
                refuse(accepted.descriptor, .client)
                return false
            }
            accepted.counted = client
        }
        guard let most = limits.connections, isFull(most) else { return true }
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

    /// Counts a connection of a client.
    /// - Returns: false if it has as many as it may.
    func admit(_ client: IPAddress) -> Bool {
        table.enter(client, atMost: currentLimits.connectionsPerClient ?? .max)
    }

    func refuse(_ socket: Int32, _ reason: Refusals.Reason) {
        metrics.responses.add(reason.status)
        refusals.refuse(socket, reason, head: statusLine(reason.status) + dateLine(), scratch: scratch)
    }
}
