import HTTPModel

/// Limits on the resources that a client may use. Times are in seconds.
package struct TransportLimits: Sendable {
    package var request = RequestLimits()
    /// The time from the first byte of a request to the end of its header, and from each piece of its body that is
    /// read to the next; also the time within which a new connection has to send something.
    package var requestSeconds: Double = 30
    /// How long a connection without a request stays open.
    package var idleSeconds: Double = 60
    /// How long the client's input is read and dropped after an error, so that the answer arrives.
    package var lingerSeconds: Double = 2
    /// How often connections are looked at for what is too late.
    package var sweepSeconds: Double = 1
    /// The maximum number of connections of all loops together. To accept one more, a connection that waits for
    /// its next request is closed; if there is none, the new one waits in the kernel's backlog.
    package var maxConnections = 8192
    /// The same where `ClientLimits.connections` is set: as there, new ones are refused, it has to be lower than this.
    package var maxConnectionsWhenRefusing = Int.max
    /// The highest descriptor for a connection. For a new connection with a higher one, another has to be closed,
    /// else it is closed itself: the lowest free descriptor is always assigned, so nearly all of the process's
    /// descriptors are in use.
    package var maxDescriptor = Int.max
    /// Refused connections of one loop that stay open for a moment.
    package var refusedOfALoop = 64
    /// Requests of one connection that are answered before the loop's other connections get their turn.
    package var requestsPerTurn = 4
    /// Bytes written to one connection before the loop's other connections get their turn.
    package var writeTurnBytes = 1 << 20
    /// Bytes of a body passed to the kernel in one call: few at first, so that a client that seeks gets its first
    /// byte soon, then as many as it has received already, up to the maximum.
    package var firstWriteBytes = 64 << 10
    package var maxWriteBytes = 1 << 20
    /// Bytes that a socket's queue holds beyond those in transit (`TCP_NOTSENT_LOWAT`): a client that seeks
    /// discards them, and for a paused one they occupy kernel memory.
    package var unsentBytes = 1 << 20
    /// How spans that lie in a file are sent.
    package var transmission = Transmission.mapping

    package init() {}
}

/// The two ways from the page cache to a socket. `docs/dev/performance.md` compares them.
package enum Transmission: String, Sendable, CaseIterable {
    /// `sendmsg` from a persistent mapping.
    case mapping
    /// `sendfile` from the file.
    case sendfile
}
