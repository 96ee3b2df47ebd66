import CachePolicy
import Glibc
import HTTPModel

/// Who the client is: the other end of the connection, or whoever a trusted balancer names, for the whole connection
/// (PROXY protocol) or for a request (`Forwarded`).
extension Connection {
    /// - Returns: whether to continue with the rest of the turn's bytes.
    func takeProxyHeader() -> Bool {
        switch ProxyHeader.parse(turn.bytes) {
        case .complete(let header, let consumed):
            turn.drop(consumed)
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
        var peer = peer
        peer.introduce(header, server.clients)
        self.peer = peer
        phase = .reading
        times.deadline = server.deadline(in: server.limits.requestSeconds)
        // A trusted proxy's connection is for all of its clients: their requests are counted.
        guard let address = header.client?.address else { return true }
        var counted: IPAddress?
        guard server.admits(address, countedAs: &counted, refusing: dup(socket)) else {
            turn.dropAll()
            close()
            return false
        }
        self.peer.counted = counted
        return true
    }

    /// The client's address and port.
    var clientText: String {
        if let text = peer.text { return text }
        let text = peer.client.description
        peer.text = text
        return text
    }

    /// What to say about bytes that are not a request, to a sender who takes this for another port.
    func fault(of bytes: UnsafeRawBufferPointer, else fault: RequestFault) -> RequestFault {
        guard !times.hasAnswered, peer.header == nil, ProxyHeader.isBegun(by: bytes) else { return fault }
        return .strayProxyHeader(expectsSome: server.clients.expectsProxyHeader, from: peer.endpoint.address)
    }
}
