/// How long to wait before a broken transfer is tried again: twice as long each time, spread so that clients do not
/// come at once.
package struct RetryPolicy: Sendable, Equatable {
    /// Attempts in all, the first included.
    package var maxAttempts = 4
    /// Seconds, at most, after the first attempt.
    package var base: Double = 0.25
    /// Seconds, at most, after any.
    package var ceiling: Double = 8

    package init(maxAttempts: Int = 4, base: Double = 0.25, ceiling: Double = 8) {
        self.maxAttempts = maxAttempts
        self.base = base
        self.ceiling = ceiling
    }

    /// Seconds to wait after an attempt has failed; nil when it was the last.
    ///
    /// - Parameters:
    ///   - attempt: which attempt failed, from 1.
    ///   - random: 0 up to, but not including, 1. The wait lies between half and the whole of `base · 2^(attempt-1)`.
    package func delay(attempt: Int, random: Double) -> Double? {
        guard attempt < maxAttempts else { return nil }
        let doublings = min(max(attempt - 1, 0), 1000)
        let whole = min(ceiling, Double(sign: .plus, exponent: doublings, significand: base))
        return whole * (0.5 + 0.5 * random)
    }
}
