/// Measures how long an origin has been silent. A value; times are of the monotonic clock, in nanoseconds.
///
/// curl's low speed limit does not serve for this: it averages over seconds, so it fails a stalled transfer five
/// seconds late.
struct Silence {
    private let start: UInt64
    private var lastSign: UInt64
    private var trickle: Trickle

    /// Starts an exchange.
    /// - Parameter bytes: how many have come before.
    init(from now: UInt64, at bytes: Int64 = 0) {
        (start, lastSign, trickle) = (now, now, Trickle(from: now, at: bytes))
    }

    /// Bytes were received or sent.
    mutating func end(at now: UInt64) { lastSign = now }

    /// The length of the silence in seconds.
    /// - Parameter connecting: microseconds from the start until the request could be sent; 0 before that, when curl's
    ///   own limit applies.
    func length(at now: UInt64, connecting: Int64) -> Double {
        guard connecting > 0 else { return 0 }
        // no trap: microseconds that have passed, above 0
        let since = max(lastSign, start + UInt64(connecting) * 1000)
        return since < now ? Double(now - since) / 1e9 : 0 // no trap: compared before
    }

    /// Measures anew how fast the answer comes, after a pause.
    mutating func resume(at now: UInt64, _ bytes: Int64) {
        end(at: now)
        trickle = Trickle(from: now, at: bytes)
    }

    /// Whether too little has come for at least so many seconds, measured from the last answer or pause on.
    mutating func isTrickling(at now: UInt64, _ bytes: Int64, for seconds: Double) -> Bool {
        guard let isTooSlow = trickle.isTooSlow(at: now, bytes, for: seconds) else { return false }
        trickle = Trickle(from: now, at: bytes)
        return isTooSlow
    }
}

extension Silence {
    /// Measures how fast an answer comes that others wait for. A value; times as in `Silence`.
    struct Trickle {
        /// Bytes a second: the sound with the fewest has twice as many.
        static let leastRate = 512.0
        private var start: UInt64
        private var bytes: Int64

        /// Starts to measure, at the number of bytes that have come.
        init(from now: UInt64, at bytes: Int64) { (start, self.bytes) = (now, bytes) }

        /// Whether too little has come, for at least so many seconds; nil before.
        func isTooSlow(at now: UInt64, _ received: Int64, for seconds: Double) -> Bool? {
            let time = Double(now - min(start, now)) / 1e9 // no trap: not after it
            return time < seconds ? nil : Double(received - bytes) < Self.leastRate * time // no trap: only grows
        }
    }
}
