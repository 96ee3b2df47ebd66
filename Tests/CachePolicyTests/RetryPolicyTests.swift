import CachePolicy
import TestSupport
import Testing

@Suite struct RetryPolicyTests {
    @Test(arguments: [(1, 0.125), (2, 0.25), (3, 0.5)])
    func waitDoublesFromHalfTheBase(attempt: Int, least: Double) {
        let policy = RetryPolicy()
        #expect(policy.delay(attempt: attempt, random: 0) == least)
        #expect(policy.delay(attempt: attempt, random: 0.5) == least * 1.5)
    }

    @Test func lastAttemptIsNotRepeated() {
        #expect(RetryPolicy().delay(attempt: 4, random: 0) == nil)
        #expect(RetryPolicy(maxAttempts: 1).delay(attempt: 1, random: 0) == nil)
        #expect(RetryPolicy(maxAttempts: 0).delay(attempt: 1, random: 0) == nil)
    }

    @Test func waitStaysBetweenHalfAndWholeAndBelowTheCeiling() throws {
        var random = SplitMix64.forTest("retryWaits")
        let policy = RetryPolicy(maxAttempts: .max, base: 0.25, ceiling: 8)
        for attempt in [1, 5, 6, 7, 64, 2000, Int.max - 1] {
            let whole = attempt <= 6 ? 0.25 * Double(1 << (attempt - 1)) : 8
            for _ in 0..<100 {
                let wait = try #require(policy.delay(attempt: attempt, random: .random(in: 0..<1, using: &random)))
                #expect(whole / 2 <= wait && wait <= whole)
            }
        }
    }
}
