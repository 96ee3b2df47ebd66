import HTTPModel

/// What a client may cost. Times are seconds.
package struct TransportLimits: Sendable {
    package var request = RequestLimits()
    /// From the first byte of a request to the end of its head, and from each piece of its body that is read to the
    /// next; also the time a new connection has to send something.
    package var requestSeconds: Double = 30
    /// How long a connection without a request stays open.
    package var idleSeconds: Double = 60
    /// After an error the rest of what the client sends is read and dropped for so long, so that the answer arrives.
    package var lingerSeconds: Double = 2
    /// Connections of all loops together. For one more, one that waits for its next request is closed; where there is
    /// none, the new one waits in the kernel's backlog.
    package var maxConnections = 8192
    /// A new connection whose descriptor is above needs one that can be closed for it, else it is closed itself:
    /// descriptors are numbered from the least that is free, so nearly all of the process's are in use.
    package var maxDescriptor = Int.max
    /// Requests of one connection that are answered before the others of its loop get their turn.
    package var requestsPerTurn = 4
    /// Bytes written to one connection before the others of its loop get their turn.
    package var writeTurnBytes = 1 << 20
    /// Bytes of a body handed to the kernel in one call: few at first, so that a client that seeks has its first byte
    /// soon, then as many as it has taken already, up to the greatest.
    package var firstWriteBytes = 64 << 10
    package var maxWriteBytes = 1 << 20
    /// Bytes that a socket's queue takes ahead of what is on its way (`TCP_NOTSENT_LOWAT`): what a client that seeks
    /// would throw away, and what a paused one holds of the kernel's memory.
    package var unsentBytes = 1 << 20
    /// How spans that stand in a file go out.
    package var transmission = Transmission.mapping

    package init() {}
}

/// The two ways from the page cache to a socket. `docs/dev/performance.md` compares them.
package enum Transmission: String, Sendable, CaseIterable {
    /// `sendmsg` from a mapping that is kept.
    case mapping
    /// `sendfile` from the file.
    case sendfile
}
