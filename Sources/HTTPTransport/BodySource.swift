/// Where the bytes of a response's body come from. Loop-bound.
///
/// The connection *pulls*: it asks for the next span whenever its socket takes more, so a player that pauses costs
/// nothing and a hit and a miss differ only in how often the source has to say `wait`.
package protocol BodySource: AnyObject {
    /// The next bytes of the body, at most `limit`. A span stays valid until the next call of `next` or `finish`.
    func next(limit: Int) -> BodyStep
    /// The kernel could not read the last span: its file shrank or its disk fails. The connection is cut after this.
    func spanWasUnreadable()
    /// The response is over, sent or cut; nothing is asked any more. Called once.
    func finish()
}

extension BodySource {
    package func spanWasUnreadable() {}
}

/// A source's answer.
package enum BodyStep {
    /// Bytes to send now.
    case span(BodySpan)
    /// Nothing yet; the source calls `Exchange.resume()` when there is.
    case wait
    /// The body is complete.
    case end
    /// The body cannot be completed: the connection is cut, so that the client sees that the end is missing.
    case cut
}

/// Bytes of a body: in memory, and where they stand in a file if they do.
package struct BodySpan {
    package let bytes: UnsafeRawBufferPointer
    /// The file that `bytes` is mapped from and where in it they begin.
    package let file: (descriptor: Int32, offset: Int64)?

    package init(bytes: UnsafeRawBufferPointer, file: (descriptor: Int32, offset: Int64)? = nil) {
        self.bytes = bytes
        self.file = file
    }
}

/// A body that is in memory as a whole.
package final class BytesSource: BodySource {
    private let storage: UnsafeMutableRawBufferPointer
    private var sent = 0

    package init(_ bytes: [UInt8]) {
        storage = .allocate(byteCount: bytes.count, alignment: 1)
        storage.copyBytes(from: bytes)
    }

    deinit { storage.deallocate() }

    package func next(limit: Int) -> BodyStep {
        guard sent < storage.count else { return .end }
        let part = UnsafeRawBufferPointer(rebasing: storage[sent..<min(storage.count, sent + limit)])
        sent += part.count
        return .span(BodySpan(bytes: part))
    }

    package func finish() {}
}
