/// How long to wait before a broken transfer is retried: twice as long after each attempt, with jitter, so that
/// clients do not all return at once.
package struct RetryPolicy: Sendable, Equatable {
    /// The number of attempts, including the first.
    package var maxAttempts = 4
    /// The longest wait after the first attempt, in seconds.
    package var base: Double = 0.25
    /// The longest wait after any attempt, in seconds.
    package var ceiling: Double = 8

    package init(maxAttempts: Int = 4, base: Double = 0.25, ceiling: Double = 8) {
        self.maxAttempts = maxAttempts
        self.base = base
        self.ceiling = ceiling
    }

    /// Seconds to wait after a failed attempt; nil if it was the last.
    ///
    /// - Parameters:
    ///   - attempt: the number of the failed attempt, from 1.
    ///   - random: from 0 up to, but not including, 1. The wait is between half and all of `base · 2^(attempt-1)`.
    package func delay(attempt: Int, random: Double) -> Double? {
        guard attempt < maxAttempts else { return nil }
        let doublings = min(max(attempt - 1, 0), 1000)
        let whole = min(ceiling, Double(sign: .plus, exponent: doublings, significand: base))
        return whole * (0.5 + 0.5 * random)
    }
}
