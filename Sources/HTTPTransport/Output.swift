import Glibc

/// An answer that is being sent: the header and framing bytes that precede the current span of the body.
final class Output {
    enum Framing {
        case none
        /// The number of bytes of the body yet to be sent.
        case length(Int64)
        case chunked
        /// HTTP/1.0: the body ends when the connection is closed in order. Anything else resets it.
        case untilClose
    }

    /// Header, chunk sizes, line ends; sent up to `framedBytesSent`. Kept between answers for its capacity. It grows
    /// outside of this object (`frame`), so that no access to it has to be checked for another at the same time.
    private var framed: [UInt8] = []
    let limits: TransportLimits
    private var framedBytesSent = 0
    private(set) var span = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var file: (descriptor: Int32, offset: Int64)?
    var framing = Framing.none
    var source: (any BodySource)?
    /// Bytes of the body that were framed, and that the source delivers again because they could not be read.
    private(set) var owed = 0
    /// The source has ended; framed bytes or `span` may still have to be sent.
    var isComplete = true
    /// Bytes of the body that the source has delivered.
    var bodyBytesTaken = 0
    var keepsAlive = false
    /// The source has no end.
    var isEndless = false

    init(_ limits: TransportLimits) { self.limits = limits }

    var hasUnsentFraming: Bool { framedBytesSent < framed.count }
    var hasUnsent: Bool { hasUnsentFraming || !span.isEmpty }

    func end() {
        let source = source
        self.source = nil
        span = UnsafeRawBufferPointer(start: nil, count: 0)
        file = nil
        owed = 0
        // An idle connection must not hold a long head.
        forgetFraming(keepingCapacity: framed.capacity <= 8 << 10)
        isComplete = true
        isEndless = false
        source?.finish()
    }

    /// Adds header or framing bytes.
    func frame(_ write: (inout [UInt8]) -> Void) {
        var bytes = framed
        framed = []
        write(&bytes)
        framed = bytes
    }

    func withUnsentFraming<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        let bytes = framed, start = framedBytesSent
        return bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    }

    private func forgetFraming(keepingCapacity keepsCapacity: Bool) {
        framedBytesSent = 0
        guard !framed.isEmpty || !keepsCapacity else { return }
        frame { $0.removeAll(keepingCapacity: keepsCapacity) }
    }

    /// Takes over the source's next span, and frames it.
    /// - Returns: false if it exceeds the length that the header stated.
    func take(_ next: BodySpan) -> Bool {
        precondition(!next.bytes.isEmpty, "a source without bytes returns wait")
        span = next.bytes
        file = next.file
        guard owed == 0 else {
            owed -= span.count
            return owed >= 0
        }
        switch framing {
        case .length(let left):
            guard Int64(span.count) <= left else { return false }
            framing = .length(left - Int64(span.count)) // no trap: compared above
        case .chunked:
            // RFC 9112 §7.1: the line end of the previous chunk is sent together with this one's size.
            frame { $0 += "\(bodyBytesTaken > 0 ? "\r\n" : "")\(String(span.count, radix: 16))\r\n".utf8 }
        case .untilClose, .none:
            break
        }
        bodyBytesTaken += span.count
        return true
    }

    /// Drops the unsent rest of the span, which could not be read: the next spans take its place.
    func takeBack() {
        owed += span.count
        span = UnsafeRawBufferPointer(start: nil, count: 0)
        file = nil
    }

    /// Completes the body, as the source has ended.
    /// - Returns: false if bytes are missing from the length that the header stated.
    func complete() -> Bool {
        isComplete = true
        guard owed == 0 else { return false }
        switch framing {
        case .length(let left): return left == 0
        case .chunked:
            frame { $0.append(bodyBytesTaken > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n") }
            return true
        case .untilClose, .none: return true
        }
    }

    /// Notes that the kernel accepted this many bytes, first of the framed ones, then of the span.
    func sent(_ count: Int) {
        let ofFramed = min(count, framed.count - framedBytesSent)
        framedBytesSent += ofFramed
        let ofSpan = count - ofFramed
        span = UnsafeRawBufferPointer(rebasing: span[ofSpan...])
        if let file { self.file = (file.descriptor, file.offset + Int64(ofSpan)) } // no trap: offsets in a file
        if ofFramed > 0, !hasUnsentFraming { forgetFraming(keepingCapacity: true) }
    }
}
