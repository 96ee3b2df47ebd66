/// How long nothing has come from an origin. A value; times are of the monotonic clock, in nanoseconds.
///
/// Not curl's low speed limit: it averages over seconds, and so fails a stalled transfer five seconds late.
struct Silence {
    private let start: UInt64
    private var lastSign: UInt64

    /// An exchange begins.
    init(from now: UInt64) { (start, lastSign) = (now, now) }

    /// Something came, or went out.
    mutating func end(at now: UInt64) { lastSign = now }

    /// In seconds.
    /// - Parameter connecting: microseconds from the start until the request could go out; 0 before that, when curl's
    ///   own limit is at work.
    func length(at now: UInt64, connecting: Int64) -> Double {
        guard connecting > 0 else { return 0 }
        // no trap: microseconds that have passed, above 0
        let since = max(lastSign, start + UInt64(connecting) * 1000)
        return since < now ? Double(now - since) / 1e9 : 0 // no trap: compared before
    }
}
