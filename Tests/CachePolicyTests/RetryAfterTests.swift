import CachePolicy
import Testing

/// RFC 9110 §10.2.3, at 1,000,000 (Mon, 12 Jan 1970 13:46:40 GMT).
@Suite struct RetryAfterTests {
    @Test(
        arguments: [
            (nil, nil), ("120", 120), (" 0 ", 0), ("99999999999999999999", .max), ("Mon, 12 Jan 1970 13:47:40 GMT", 60),
            ("Mon Jan 12 13:47:40 1970", 60),
            ("Mon, 12 Jan 1970 13:46:40 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_401_300_799),
            ("-5", nil), ("1.5", nil), ("soon", nil), ("", nil), ("120, 60", nil),
        ] as [(String?, Int64?)])
    func secondsAndDatesAreRead(field: String?, seconds: Int64?) {
        #expect(RetryAfter.seconds(field, now: 1_000_000) == seconds)
    }
}
