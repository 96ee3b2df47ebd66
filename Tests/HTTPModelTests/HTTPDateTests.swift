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

    /// A changed byte leaves a date only where the grammar of one of the three forms still fits (RFC 9110 §5.6.7).
    @Test func mutatedDatesAreReadAsTheGrammarHasIt() {
        var random = SplitMix64.forTest("mutatedDates")
        let dates = ["Sun, 06 Nov 1994 08:49:37 GMT", "Wednesday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        let bytes = Array("0123456789 ,:-SundaygmtNOV\t".utf8)
        var read = 0
        for _ in 0..<6000 {
            var text = Array(dates.randomElement(using: &random)!.utf8)
            let place = text.indices.randomElement(using: &random)!, byte = bytes.randomElement(using: &random)!
            switch Int.random(in: 0..<8, using: &random) {
            case 0: text.insert(byte, at: place)
            case 1: text.remove(at: place)
            default: text[place] = byte
            }
            let date = String(decoding: text, as: UTF8.self), seconds = Self.seconds(byGrammar: date)
            #expect(HTTPDate.parse(date) == seconds, "\(date)")
            if seconds != nil { read += 1 }
        }
        #expect((500..<5500).contains(read))
    }

    /// The parts by regular expressions, the seconds by the C library.
    private static func seconds(byGrammar text: String) -> Int64? {
        let days = "(?:sun|mon|tue|wed|thu|fri|sat)", months = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
        let clock = "(\\d\\d):(\\d\\d):(\\d\\d)"
        let forms = [
            "[ \t]*\(days), (\\d\\d) \(months) (\\d{4}) \(clock) gmt[ \t]*",
            "[ \t]*(?:sun|mon|tues|wednes|thurs|fri|satur)day, (\\d\\d)-\(months)-(\\d\\d) \(clock) gmt[ \t]*",
            "[ \t]*\(days) \(months) ( \\d|\\d\\d) \(clock) (\\d{4})[ \t]*",
        ]
        for (index, form) in forms.enumerated() {
            var matches = [regmatch_t](repeating: regmatch_t(), count: 8), expression = regex_t()
            let pattern = "^" + form.replacing("(?:", with: "(").replacing("\\d", with: "[0-9]") + "$"
            guard regcomp(&expression, pattern, REG_EXTENDED | REG_ICASE) == 0 else { return nil }
            defer { regfree(&expression) }
            guard regexec(&expression, text, 8, &matches, 0) == 0 else { continue }
            let parts = matches[2...].map { text.utf8.dropFirst(Int($0.rm_so)).prefix(Int($0.rm_eo - $0.rm_so)) }
                .map { String(Substring($0)) }
            // In asctime's form, the month precedes the day, and the year is the last.
            let (day, month, year) = index < 2 ? (parts[0], parts[1], parts[2]) : (parts[1], parts[0], parts[5])
            let times = (index < 2 ? parts[3...5] : parts[2...4]).map { Int32($0)! }
            return seconds(day, month, year, times)
        }
        return nil
    }

    private static func seconds(_ day: String, _ month: String, _ year: String, _ clock: [Int32]) -> Int64? {
        let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        let written = Int32(year)!, full = year.count == 4 ? written : written > 75 ? 1900 + written : 2000 + written
        var parts = tm()
        (parts.tm_year, parts.tm_mon) = (full - 1900, Int32(names.firstIndex(of: month.lowercased())!))
        parts.tm_mday = Int32(day.trimmingPrefix(" "))!
        let dayInMonth = parts.tm_mday
        guard clock[0] < 24, clock[1] < 60, clock[2] <= 60, dayInMonth > 0 else { return nil }
        let midnight = timegm(&parts)
        guard parts.tm_mday == dayInMonth else { return nil }
        return Int64(midnight) + Int64(clock[0]) * 3600 + Int64(clock[1]) * 60 + Int64(clock[2])
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
