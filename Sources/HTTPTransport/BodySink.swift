import Activity
import HTTPModel

/// Receives a request's body. Loop-bound.
///
/// The connection reads no faster than its sink accepts: while a sink pauses, the client's bytes stay in the
/// kernel, and the client has to wait. If the client disconnects during a pause, this is noticed only after the
/// sink has resumed.
package protocol BodySink: AnyObject {
    /// The next bytes of the body, at least one. They are valid until this returns.
    /// - Returns: whether to read on. A sink that pauses calls `Exchange.resumeReading` later, also from here.
    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand
    /// The body is complete. Called once, unless `failed` is; no further calls follow.
    func ended()
    /// The body will not be complete. Called once, unless `ended` is; no further calls follow.
    ///
    /// If the client is still waiting for an answer, the sink may send one here. If it does not, the connection
    /// answers with the fault's status and reason. The connection closes after either.
    func failed(_ fault: BodyFault)
}

/// What a sink needs next.
package enum BodyDemand {
    case more
    case pause
}

/// Why a body will not be complete.
package enum BodyFault: Error, Equatable {
    /// The client disconnected, or the server is shutting down: there is no one to answer.
    case disconnected
    /// Its framing is invalid (400, 431), it is longer than the limit (413), or it does not arrive in time (408).
    case refused(RequestFault)
}

extension RequestFault {
    static func bodyTooLong(_ limit: Int64) -> RequestFault {
        RequestFault(status: 413, reason: "the body is longer than \(limit) bytes: send a shorter one")
    }

    static func tooSlow(_ what: String, _ seconds: Double) -> RequestFault {
        let exact = "\(seconds)"
        let number = exact.hasSuffix(".0") ? exact.dropLast(2) : exact[...]
        return RequestFault(
            status: 408, reason: "\(what) within \(number) second\(seconds == 1 ? "" : "s"): send it faster")
    }
}

/// Collects a body in memory.
final class BodyCollector: BodySink {
    private var bytes: [UInt8] = []
    private let share: ProxyMetrics.Transit.Share
    private let completion: (Result<[UInt8], BodyFault>) -> Void

    init(_ share: ProxyMetrics.Transit.Share, _ completion: @escaping (Result<[UInt8], BodyFault>) -> Void) {
        (self.share, self.completion) = (share, completion)
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand {
        self.bytes.append(contentsOf: bytes)
        share.hold(Int64(self.bytes.capacity))
        return .more
    }

    func ended() { completion(.success(bytes)) }

    func failed(_ fault: BodyFault) { completion(.failure(fault)) }
}
