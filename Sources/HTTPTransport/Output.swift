import Glibc

/// An answer on its way out: head and framing bytes that go before the current span of the body.
struct Output {
    enum Framing {
        case none
        /// Bytes of the body still to come.
        case length(Int64)
        case chunked
        /// HTTP/1.0: the body ends with the connection, in good order. Anything else resets it.
        case untilClose
    }

    /// Head, chunk sizes, line ends; sent up to `framedBytesSent`. Kept between answers for its capacity.
    var framed: [UInt8] = []
    var framedBytesSent = 0
    var span = UnsafeRawBufferPointer(start: nil, count: 0)
    var file: (descriptor: Int32, offset: Int64)?
    var framing = Framing.none
    var source: (any BodySource)?
    /// No more comes from the source; what is framed or in `span` may still have to go out.
    var isComplete = true
    /// Bytes of the body that the source has given.
    var bodyBytesTaken = 0
    var keepsAlive = false
    /// The source has no end.
    var isEndless = false

    var hasUnsent: Bool { framedBytesSent < framed.count || !span.isEmpty }

    mutating func end() {
        let source = source
        self.source = nil
        span = UnsafeRawBufferPointer(start: nil, count: 0)
        file = nil
        framed.removeAll(keepingCapacity: true)
        framedBytesSent = 0
        isComplete = true
        isEndless = false
        source?.finish()
    }

    mutating func frame(_ text: StaticString) {
        framed.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Takes over the source's next span, framed.
    /// - Returns: false where it is longer than the length that the head promised.
    mutating func take(_ next: BodySpan) -> Bool {
        precondition(!next.bytes.isEmpty, "a source without bytes answers wait")
        span = next.bytes
        file = next.file
        switch framing {
        case .length(let left):
            guard Int64(span.count) <= left else { return false }
            framing = .length(left - Int64(span.count)) // no trap: compared above
        case .chunked:
            // RFC 9112 §7.1: the line end of the chunk before is sent together with this one's size.
            if bodyBytesTaken > 0 { frame("\r\n") }
            framed.append(contentsOf: String(span.count, radix: 16).utf8)
            frame("\r\n")
        case .untilClose, .none:
            break
        }
        bodyBytesTaken += span.count
        return true
    }

    /// The source has ended.
    /// - Returns: false where bytes are missing that the head promised.
    mutating func complete() -> Bool {
        isComplete = true
        switch framing {
        case .length(let left): return left == 0
        case .chunked:
            frame(bodyBytesTaken > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n")
            return true
        case .untilClose, .none: return true
        }
    }

    /// Notes that the kernel took so many bytes, first of what is framed, then of the span.
    mutating func sent(_ count: Int) {
        let ofFramed = min(count, framed.count - framedBytesSent)
        framedBytesSent += ofFramed
        let ofSpan = count - ofFramed
        span = UnsafeRawBufferPointer(rebasing: span[ofSpan...])
        if let file { self.file = (file.descriptor, file.offset + Int64(ofSpan)) } // no trap: places in a file
        if framedBytesSent == framed.count {
            framed.removeAll(keepingCapacity: true)
            framedBytesSent = 0
        }
    }
}
