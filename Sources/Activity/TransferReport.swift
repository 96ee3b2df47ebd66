import Foundation

/// A transfer from an origin, at one moment. Sizes are in bytes.
public struct TransferReport: Codable, Sendable, Equatable, Identifiable {
    /// Unique within the process.
    public package(set) var id: String
    /// The exact URL that is fetched, with its secrets.
    public package(set) var urlText: String
    /// The host that sends the bytes: after redirects, perhaps another than that of the URL.
    public package(set) var host: String
    /// Why it runs, such as `uri-miss` or `gap`: the guide lists the reasons with the HTTP API.
    public package(set) var reason: String
    package var phase: FetchSample.Phase
    /// Who needs the bytes; empty while it is kept in case its player returns.
    package var purposes: [FetchSample.Purpose]
    /// The offset at which it began.
    public package(set) var from: Int64
    /// The end of what it fetches; nil while unknown.
    public package(set) var to: Int64?
    /// The bytes that have arrived.
    public package(set) var received: Int64
    /// Bytes per second, as of late; nil while none move, or when nobody has looked shortly before.
    package var rate: Int64?
    /// Seconds since 1970.
    package var since: Int64

    private enum CodingKeys: String, CodingKey {
        case id, host, reason, phase, purposes, from, to, received, rate, since
        case urlText = "url"
    }

    /// The time when it began, to the second.
    public var began: Date { Date(timeIntervalSince1970: Double(since)) }
}
