import Glibc
import HTTPModel
import TestSupport
import Testing

@Suite struct HTTPDateTests {
    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
            ("Wed Nov 16 08:49:37 1994", 784_975_777), ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800), (" Sun, 06 Nov 1994 08:49:37 GMT ", 784_111_777),
            ("Friday, 01-Jan-70 00:00:00 GMT", 3_155_760_000), ("Friday, 01-Jan-76 00:00:00 GMT", 189_302_400),
            // In any case of letters.
            ("sun, 06 nov 1994 08:49:37 gmt", 784_111_777), ("SUN, 06 NOV 1994 08:49:37 GMT", 784_111_777),
            ("sUNDAY, 06-nOV-94 08:49:37 Gmt", 784_111_777), ("sun nov  6 08:49:37 1994", 784_111_777),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
        ] as [(String, Int64)])
    func dateIsRead(text: String, seconds: Int64) {
        #expect(HTTPDate.parse(text) == seconds)
    }

    @Test(arguments: [
        "", "0", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 nox 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GM\u{212A}", "Sun, 30 Feb 1994 08:49:37 GMT",
        "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun 06 Nov 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMTx",
        "Sun, 06 Nov 1994 8:49:37 GMT", "1994-11-06T08:49:37Z", "Sun Nov 6 08:49:37 1994",
        "Sun, +6 Nov 1994 08:49:37 GMT",
    ])
    func whatIsNoDateIsRefused(text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }

    @Test func writtenDateIsWhatTheSystemWritesAndIsReadBack() {
        var random = SplitMix64.forTest("writtenDates")
        let fixed: [Int64] = [
            0, -1, 1, 86399, 86400, 951_782_399, 951_782_400, -62_167_219_200, 253_402_300_799, 4_294_967_296,
        ]
        let drawn = (0..<5000).map { _ in Int64.random(in: -62_167_219_200...253_402_300_799, using: &random) }
        for seconds in fixed + drawn {
            let text = HTTPDate.format(seconds)
            #expect(text == Self.systemDate(seconds))
            #expect(HTTPDate.parse(text) == seconds)
        }
    }

    @Test func yearsThatFourDigitsCannotWriteAreHeldAtTheNearest() {
        #expect(HTTPDate.format(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.format(.min) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }

    /// By the C library, whose `%Y` does not pad the year.
    private static func systemDate(_ seconds: Int64) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        let format = { (format: String) in
            String(unsafeUninitializedCapacity: 64) { buffer in
                buffer.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress, $0.count, format, &parts) }
            }
        }
        let year = String(Int(parts.tm_year) + 1900)
        return format("%a, %d %b ") + String(repeating: "0", count: 4 - year.count) + year + format(" %H:%M:%S GMT")
    }
}
