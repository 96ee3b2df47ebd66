import HTTPModel

/// A request's body that is being received.
final class IncomingBody {
    /// How much of an unread body is received and dropped, so that the connection can be kept.
    private static let maxDrainedBytes: Int64 = 64 << 10

    var decoder: BodyDecoder
    /// The receiver of the body; nil before reading begins, and once the rest is not needed.
    var sink: (any BodySink)?
    var limit = Int64.max
    /// Bytes of the body that the sink was given.
    private var received: Int64 = 0
    var isPaused = false
    /// The client may be waiting for `100 Continue`.
    var isAwaited: Bool
    /// Its end can no longer be found.
    var isBroken = false

    init(_ head: RequestHead) {
        decoder = BodyDecoder(head.body)
        isAwaited = head.expectsContinue
        isTunnel = false
    }

    /// Whether these are a client's bytes through a tunnel: it may pause for as long as it likes.
    let isTunnel: Bool

    init(tunnelInto sink: any BodySink) {
        decoder = BodyDecoder(.length(.max))
        isAwaited = false
        isTunnel = true
        self.sink = sink
    }

    /// How long the client may still keep the proxy waiting.
    private var patience = TransportLimits.BodyPatience()

    /// Gives a piece of it to the sink, or drops it if there is none.
    /// - Returns: false if it exceeds the limit.
    func deliver(_ piece: UnsafeRawBufferPointer) -> Bool {
        guard let sink else { return true }
        let received = received +| Int64(piece.count)
        guard received <= limit else { return false }
        self.received = received
        // Before the call: a sink may resume within it.
        isPaused = true
        if sink.received(piece) == .more { isPaused = false }
        return true
    }

    /// Waits for more of it.
    /// - Parameters:
    ///   - now: monotonic, in nanoseconds.
    ///   - most: as in `TransportLimits.BodyPatience`, in seconds.
    /// - Returns: how long its client may keep the proxy waiting, in seconds; nil for as long as it likes.
    func wait(at now: UInt64, most: Double) -> Double? {
        let isReading = !isPaused && !isTunnel
        let left = patience.wait(received: received, isReading: isReading, at: now, most: most)
        return isReading ? left : nil
    }

    /// Whether the sink accepts bytes as they arrive.
    var isWanted: Bool { sink != nil && !isPaused }

    /// Whether another request can follow although this body is not read.
    /// - Parameter bytes: received bytes of it that are not decoded yet.
    func canBeDrained(after bytes: UnsafeRawBufferPointer) -> Bool {
        // RFC 9110 §10.1.1: after a final answer, such a client may send either the body or the next request, and
        // the server cannot tell which.
        if isBroken || isAwaited && bytes.isEmpty { return false }
        if let remaining = decoder.remaining { return remaining <= Self.maxDrainedBytes }
        return decoder.ends(within: bytes)
    }
}

extension TransportLimits {
    /// How long a client may keep the proxy waiting for a body: its bytes earn time. While the proxy does not read,
    /// none passes. A value; times are of the monotonic clock, in nanoseconds.
    package struct BodyPatience {
        /// Bytes that earn a second.
        static let leastRate = 500.0
        /// Seconds; nil before it has waited.
        private var left: Double?
        private var waitsSince: UInt64?
        private var received: Int64 = 0

        package init() {}

        /// - Parameters:
        ///   - received: bytes of the body until now.
        ///   - isReading: whether the proxy waits for more.
        ///   - most: seconds at the beginning, and never more.
        /// - Returns: the seconds that are left.
        package mutating func wait(received: Int64, isReading: Bool, at now: UInt64, most: Double) -> Double {
            var left = left ?? most
            if let waitsSince { left -= Double(now - min(waitsSince, now)) / 1e9 } // no trap: not after it
            left = min(most, max(0, left) + Double(received - self.received) / Self.leastRate) // no trap: only grows
            (self.left, waitsSince, self.received) = (left, isReading ? now : nil, received)
            return left
        }
    }
}
