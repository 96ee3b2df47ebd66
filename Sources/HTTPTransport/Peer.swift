import CachePolicy
import EventIO
import HTTPModel

/// The other end of a connection: whoever has connected and, if that is a balancer, the client that it names before the
/// first request (PROXY protocol).
struct Peer {
    let endpoint: IPEndpoint
    /// Whether it is believed what it states about its clients.
    let isTrusted: Bool
    /// Whether its connection begins with a PROXY header.
    let sendsHeader: Bool
    /// What it states of the connection that it forwards; nil if it states nothing.
    private(set) var header: ProxyHeader?
    /// Whether the requests of this connection, which comes from a trusted peer, are written by somebody trusted, too.
    ///
    /// A balancer that sends a PROXY header may pass on what a client writes, byte for byte. So the client that the
    /// header names is as good as connected here, and one that it does not name is nobody who is known.
    private(set) var isSenderTrusted = true
    /// The address under which the connection is counted; nil if it is not.
    var counted: IPAddress?
    /// The client's address and port as text, once it was needed.
    var text: String?

    /// Whoever is connected, or whom the header names.
    private(set) var client: IPEndpoint

    init(_ accepted: AcceptedSocket, _ rules: ClientRules) {
        (endpoint, client, counted) = (accepted.peer, accepted.peer, accepted.counted)
        isTrusted = rules.trusted.contains(accepted.peer.address)
        sendsHeader = rules.expectsProxyHeader && isTrusted
    }

    mutating func introduce(_ header: ProxyHeader, _ rules: ClientRules) {
        self.header = header
        client = header.client ?? endpoint
        guard !header.isLocal else { return }
        isSenderTrusted = header.client.map { rules.trusted.contains($0.address) } ?? false
    }

    /// What it states about a request, if it is trusted.
    /// - Throws: if that is malformed: a client of a balancer must not act for another.
    func forwarded(_ request: RequestHead, _ rules: ClientRules) throws(RequestFault) -> ForwardedRequest {
        var stated = isSenderTrusted ? try ForwardedRequest(request, trusted: rules.trusted) : ForwardedRequest()
        if header?.isSecure == true, stated.scheme == nil { stated.scheme = .https }
        return stated
    }
}
