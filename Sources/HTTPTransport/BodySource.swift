import Activity

/// The source of the bytes of a response's body. Loop-bound.
///
/// The connection *pulls*: it requests the next span whenever its socket accepts more, so a player that pauses
/// costs nothing, and a hit and a miss differ only in how often the source has to return `wait`.
package protocol BodySource: AnyObject {
    /// The next bytes of the body, at most `limit`. A span stays valid until the next call of `next` or `finish`.
    func next(limit: Int) -> BodyStep
    /// The kernel could not read the last `count` bytes of the last span: its file shrank or its disk fails.
    /// - Returns: whether `next` delivers them again, from elsewhere. If not, the connection is cut.
    func takeBack(_ count: Int) -> Bool
    /// The response is over, sent or cut; no further calls follow. Called once.
    func finish()
}

extension BodySource {
    package func takeBack(_ count: Int) -> Bool { false }
}

/// The result of `BodySource.next`.
package enum BodyStep {
    /// Bytes to send now.
    case span(BodySpan)
    /// Nothing yet; the source calls `Exchange.resume()` when there are bytes.
    case wait
    /// The body is complete.
    case end
    /// The body cannot be completed: the connection is cut, so that the client notices the missing end.
    case cut
}

/// Bytes of a body: in memory, and their place in a file if they have one.
package struct BodySpan {
    package let bytes: UnsafeRawBufferPointer
    /// The file that `bytes` is mapped from, and the offset in it where they begin.
    package let file: (descriptor: Int32, offset: Int64)?

    package init(bytes: UnsafeRawBufferPointer, file: (descriptor: Int32, offset: Int64)? = nil) {
        self.bytes = bytes
        self.file = file
    }
}

/// A body that is entirely in memory. It may be shared by many answers: each copies the piece that it sends.
/// `Exchange.source` makes those that may be long.
package final class BytesSource: BodySource {
    private var bytes: [UInt8]
    /// Which of the bytes are yet to be sent.
    package private(set) var unsent: Range<Int>
    private let piece: UnsafeMutableRawBufferPointer
    /// Those that count the bytes in transit.
    private let shares: [ProxyMetrics.Transit.Share]

    static let longestPiece = 64 << 10

    /// - Parameter range: which of the bytes; nil for all.
    package init(_ bytes: [UInt8], _ range: Range<Int>? = nil, countedBy shares: [ProxyMetrics.Transit.Share] = []) {
        self.bytes = bytes
        self.shares = shares
        unsent = range ?? bytes.indices
        piece = .allocate(byteCount: min(unsent.count, Self.longestPiece), alignment: 1)
    }

    deinit { piece.deallocate() }

    package func next(limit: Int) -> BodyStep {
        guard !unsent.isEmpty else { return .end }
        let part = UnsafeMutableRawBufferPointer(rebasing: piece.prefix(min(limit, unsent.count)))
        bytes[unsent.prefix(part.count)].withUnsafeBytes { part.copyMemory(from: $0) }
        unsent.removeFirst(part.count)
        if unsent.isEmpty { bytes = [] }
        return .span(BodySpan(bytes: UnsafeRawBufferPointer(part)))
    }

    package func finish() {}
}
