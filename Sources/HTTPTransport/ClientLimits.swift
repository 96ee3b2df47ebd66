import CachePolicy
import EventIO

/// Whose word counts about clients, and how much each of them may do.
package struct ClientRules: Sendable {
    /// The balancers whose statements about their clients are believed.
    package var trusted = TrustedAddresses.none
    /// Whether connections from trusted addresses begin with a PROXY header. Others never do: a receiver must not guess
    /// (PROXY protocol §2).
    package var expectsProxyHeader = false
    /// They may change while the server runs.
    package let limits: Current<ClientLimits>

    package init(limits: Current<ClientLimits> = Current(ClientLimits())) { self.limits = limits }
}

/// Limits beyond which clients are refused. Nil stands for no limit.
package struct ClientLimits: Sendable, Equatable {
    /// Connections of all clients together.
    package var connections: Int?
    /// Connections of one client. Behind a balancer that speaks HTTP, whose connections are for all clients: requests
    /// that are being answered at the same time.
    package var connectionsPerClient: Int?
    package var requestsPerClient: RequestRate?

    package init() {}
}
