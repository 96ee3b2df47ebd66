import Foundation

/// One request that a `ScriptedOrigin` got, and what has become of its response so far.
package struct OriginRequest: Sendable, CustomStringConvertible {
    package let method: String
    /// The request target as it came, with its query.
    package let target: String
    /// The served path that the target belongs to: the target itself, or the target without its query.
    package let path: String
    package let headers: HeaderList
    /// Of a request that is answered early: empty until it is complete.
    package internal(set) var body: [UInt8]
    /// The single range asked for, half-open and not cut to the size; an open end is the size, a suffix is resolved.
    /// `nil`: no range, several, a malformed one, or one that begins past the end it leaves open.
    package let range: Range<Int64>?
    /// Connections are numbered from 0 in the order of their arrival.
    package let connection: Int

    /// The status sent, or `nil` while the head waits.
    package internal(set) var status: Int?
    /// Body bytes handed to the kernel so far: it may hold some 256 KiB, and the client's side as much as its receive
    /// buffer, that the client has not read.
    package internal(set) var bodyBytesSent: Int64 = 0
    /// The response was sent as planned to its end. One that the script cuts never finishes.
    package internal(set) var finished = false
    /// The client closed the connection before the response ended.
    package internal(set) var aborted = false

    /// Each as `name=value`.
    package var cookies: [String] { headers["Cookie"].map { $0.components(separatedBy: "; ") } ?? [] }

    package var description: String {
        let fate = aborted ? "aborted" : finished ? "finished" : "open"
        let asked = headers["Range"].map { " \($0)" } ?? ""
        return
            "#\(connection) \(method) \(target)\(asked) → \(status.map(String.init) ?? "no head yet"), \(bodyBytesSent) bytes, \(fate)"
    }
}

extension ScriptedOrigin {
    /// The origin's log at one moment.
    package struct Snapshot: Sendable {
        /// All requests, in the order of their arrival.
        package let requests: [OriginRequest]
        /// How many connections have been accepted ever.
        package let connectionCount: Int
        /// How many are open now.
        package let openConnections: Int

        /// The requests for `path`, given with or without a query.
        package func requests(_ path: String) -> [OriginRequest] {
            requests.filter { $0.path == path || $0.target == path }
        }

        package func requestCount(_ path: String) -> Int { requests(path).count }

        /// Body bytes sent for `path` in all responses.
        package func bytesSent(_ path: String) -> Int64 { requests(path).reduce(0) { $0 + $1.bodyBytesSent } }
    }
}
