import Activity
import Glibc
import HTTPModel

/// Connections that are refused: they get an answer of a few hundred bytes before anything of them is kept, and their
/// descriptors are closed soon after. Loop-bound.
///
/// A socket that is closed with unread input is reset, and its client may lose the answer: so a few stay open until the
/// next sweep of the loop.
struct Refusals {
    enum Reason: String, CaseIterable {
        /// The names among `errors` of `/stats` are those of the settings.
        case all = "max-connections"
        case client = "max-connections-per-client"

        var status: Int {
            switch self {
            case .all: 503
            case .client: 429
            }
        }

        fileprivate var text: String {
            switch self {
            case .all: "the proxy has as many connections as max_connections permits: try again later\n"
            case .client: "this client has as many connections as max_connections_per_client permits: close some\n"
            }
        }
    }

    /// In seconds.
    static let retryAfter = 2
    /// The most that stay open, and their highest descriptor: the others are closed at once.
    private let (mostOpen, maxDescriptor): (Int, Int)

    private var open: [Int32] = []
    private var next = 0

    init(_ limits: TransportLimits) { (mostOpen, maxDescriptor) = (limits.refusedOfALoop, limits.maxDescriptor) }

    /// Answers and closes.
    /// - Parameters:
    ///   - head: the status line and the date.
    ///   - scratch: for input that is dropped.
    mutating func refuse(
        _ socket: Int32, _ reason: Reason, head: [UInt8], scratch: UnsafeMutableRawBufferPointer
    ) {
        _ = recv(socket, scratch.baseAddress, scratch.count, Int32(MSG_DONTWAIT)) // no trap: a constant
        let answer = head + Self.bodies[reason, default: []]
        // A new socket takes as much at once.
        _ = send(socket, answer, answer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) // no trap: constants
        shutdown(socket, Int32(SHUT_WR)) // no trap: a constant
        keepForAMoment(socket)
    }

    private mutating func keepForAMoment(_ socket: Int32) {
        if Int(socket) > maxDescriptor {
            close(socket)
            return
        }
        guard open.count == mostOpen else { return open.append(socket) }
        close(open[next])
        open[next] = socket
        next = (next + 1) % mostOpen
    }

    mutating func closeAll() {
        for socket in open { close(socket) }
        open.removeAll(keepingCapacity: true)
        next = 0
    }

    private static let bodies = Dictionary(
        uniqueKeysWithValues: Reason.allCases.map { reason in
            let text = reason.text
            let fields =
                "Content-Type: text/plain; charset=utf-8\r\nContent-Length: \(text.utf8.count)\r\nRetry-After: \(retryAfter)\r\nConnection: close\r\n\r\n"
            return (reason, Array((fields + text).utf8))
        })
}
