package enum RequestParseResult: Sendable {
    /// Valid so far, and more is needed.
    case incomplete
    /// The head, and how many bytes it took from the front of what was given.
    case complete(RequestHead, consumed: Int)
    case invalid(RequestFault)
}

/// HTTP/1.1 request heads (RFC 9112 §3 and §5), read strictly: what two servers could understand in two ways is
/// refused.
///
/// It goes from left to right and stops at the first byte that cannot be right, so a fault is found as early as it can
/// be, and is the same however the bytes were split on their way here.
package enum RequestParser {
    /// - Parameter bytes: everything that a connection has sent and nobody has consumed, from its first byte. Of
    ///   several requests only the first is read.
    package static func parse(_ bytes: UnsafeRawBufferPointer, limits: RequestLimits = RequestLimits())
        -> RequestParseResult
    {
        var scanner = RequestScanner(bytes, limits: limits)
        do throws(RequestScanner.Stop) {
            let head = try scanner.scanHead()
            return .complete(head, consumed: scanner.position)
        } catch {
            switch error {
            case .incomplete: return .incomplete
            case .fault(let fault): return .invalid(fault)
            }
        }
    }
}
