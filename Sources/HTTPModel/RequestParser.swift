/// Parses HTTP/1.1 request heads (RFC 9112 §3 and §5) strictly: anything that two servers could interpret in two
/// ways is rejected.
///
/// It goes from left to right and stops at the first byte that cannot be valid. So a fault is found as early as
/// possible, and is the same however the bytes were split on their way.
package enum RequestParser {
    package enum Outcome: Sendable {
        /// Valid so far, but not complete.
        case incomplete
        /// The head, and how many bytes of the input it consumed.
        case complete(RequestHead, consumed: Int)
        case invalid(RequestFault)
    }

    /// - Parameters:
    ///   - bytes: all unconsumed bytes from a connection. Of several requests, only the first is parsed.
    ///   - former: of a request that was parsed within the same limits: what is equal to it is not parsed again.
    ///   - lines: those of requests that were parsed within the same limits; this one's is remembered.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, limits: RequestLimits = RequestLimits(), former: RequestHead.Rest? = nil,
        lines: RequestLines? = nil
    ) -> Outcome {
        var scanner = RequestScanner(bytes, limits: limits, former: former)
        do throws(RequestScanner.Stop) {
            let head = try scanner.scanHead(lines)
            return .complete(head, consumed: scanner.position)
        } catch {
            switch error {
            case .incomplete: return .incomplete
            case .fault(let fault): return .invalid(fault)
            }
        }
    }
}
