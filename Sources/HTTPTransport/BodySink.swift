import HTTPModel

/// Who takes a request's body. Loop-bound.
///
/// The connection reads no faster than its sink takes: while a sink pauses, what the client sends stays in the kernel,
/// and the client has to wait. A client that goes away meanwhile is noticed when the sink has resumed.
package protocol BodySink: AnyObject {
    /// The next bytes of the body, at least one. They are valid until this returns.
    /// - Returns: whether to read on. A sink that pauses calls `Exchange.resumeReading` later, also from here.
    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand
    /// The body is complete. Called once, unless `failed` is; nothing is told any more.
    func ended()
    /// The body will not be complete. Called once, unless `ended` is; nothing is told any more.
    ///
    /// Where the client still waits for an answer the sink may give its own here. If it does not, the connection gives
    /// the fault's status and reason. The connection closes after either.
    func failed(_ fault: BodyFault)
}

/// What a sink wants next.
package enum BodyDemand {
    case more
    case pause
}

/// Why a body will not be complete.
package enum BodyFault: Error, Equatable {
    /// The client went away, or the server stopped: nobody waits for an answer.
    case disconnected
    /// Its framing is wrong (400, 431), it is longer than the limit (413), or it does not come (408).
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

/// Keeps a body that fits in memory.
final class BodyCollector: BodySink {
    private var bytes: [UInt8] = []
    private let completion: (Result<[UInt8], BodyFault>) -> Void

    init(_ completion: @escaping (Result<[UInt8], BodyFault>) -> Void) {
        self.completion = completion
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand {
        self.bytes.append(contentsOf: bytes)
        return .more
    }

    func ended() { completion(.success(bytes)) }

    func failed(_ fault: BodyFault) { completion(.failure(fault)) }
}
