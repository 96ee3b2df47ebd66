import CachePolicy
import HTTPModel
import Testing

/// RFC 9111 §4.2.3. Asked for at 999,998, received at 1,000,000 (Mon, 12 Jan 1970 13:46:40 GMT).
@Suite struct ResponseTimesTests {
    @Test(
        arguments: [
            // Without Date and Age: only the answer's delay.
            ([], 2),
            (["Date: Mon, 12 Jan 1970 13:46:40 GMT"], 2),
            // apparent_age: a Date that lies behind.
            (["Date: Mon, 12 Jan 1970 13:45:40 GMT"], 60),
            // A clock that goes ahead makes nothing younger.
            (["Date: Mon, 12 Jan 1970 14:46:40 GMT"], 2), (["Date: Mon, 12 Jan 1970 14:46:40 GMT", "Age: 10"], 12),
            // RFC 9110 §6.6.1: what is no date is none.
            (["Date: yesterday"], 2),
            // corrected_age_value = age_value + response_delay; the greater of the two counts.
            (["Age: 10"], 12), (["Age: 10", "Date: Mon, 12 Jan 1970 13:45:40 GMT"], 60),
            (["Age: 100", "Date: Mon, 12 Jan 1970 13:45:40 GMT"], 102),
            // §5.1: of several the first counts, also in one line; what is no number is ignored.
            (["Age: 10", "Age: 90"], 12), (["Age: 10, 90"], 12), (["Age:  10 ,x"], 12), (["Age: -5"], 2),
            (["Age: 1.5"], 2), (["Age: "], 2), (["Age: x, 10"], 2),
            (["Age: 9223372036854775807"], .max), (["Age: 99999999999999999999999"], .max),
        ] as [(HeaderFields, Int64)])
    func ageOnReceiptIsReckoned(fields: HeaderFields, age: Int64) {
        let times = ResponseTimes(fields, requestedAt: 999_998, receivedAt: 1_000_000)
        #expect(times == ResponseTimes(validatedAt: 1_000_000, initialAge: age))
    }

    @Test func clockThatWasSetBackDuringTheRequestAddsNothing() {
        #expect(ResponseTimes(["Age: 10"], requestedAt: 1_000_100, receivedAt: 1_000_000).initialAge == 10)
    }

    @Test(
        arguments: [
            (0, 1_000_000, 0), (0, 1_000_060, 60), (10, 1_000_060, 70), (10, 1_000_000, 10),
            // Set back since: by a little, it is as old as it came; by more, nobody knows how old it is.
            (10, 999_940, 10), (10, 999_939, .max), (10, 0, .max), (.max, 1_000_060, .max), (.max, 1_000_000, .max),
        ] as [(Int64, Int64, Int64)])
    func ageGrowsWithTheTimeHere(initial: Int64, now: Int64, age: Int64) {
        #expect(ResponseTimes(validatedAt: 1_000_000, initialAge: initial).age(at: now) == age)
    }
}
