/// A transfer from an origin, at one moment. Sizes are in bytes, times in seconds since 1970.
package struct TransferReport: Codable, Sendable, Equatable, Identifiable {
    /// Unique within the process.
    package var id: String
    package var url: String
    /// The host that sends the bytes: after redirects, perhaps another than that of the URL.
    package var host: String
    /// Why the origin is contacted: a `FetchReason`.
    package var reason: String
    package var phase: FetchSample.Phase
    /// Who needs the bytes; empty while it is kept in case its player returns.
    package var purposes: [FetchSample.Purpose]
    /// The range that it fetches, half-open; without `to` while the end is unknown.
    package var from: Int64
    package var to: Int64?
    /// The bytes that have arrived.
    package var received: Int64
    /// Bytes per second, as of late; nil while none move, or when nobody has looked shortly before.
    package var rate: Int64?
    package var since: Int64

    package init(
        id: String, url: String, host: String, reason: String, phase: FetchSample.Phase,
        purposes: [FetchSample.Purpose], from: Int64, to: Int64?, received: Int64, rate: Int64? = nil, since: Int64
    ) {
        (self.id, self.url, self.host, self.reason, self.phase) = (id, url, host, reason, phase)
        (self.purposes, self.from, self.to, self.received) = (purposes, from, to, received)
        (self.rate, self.since) = (rate, since)
    }
}
