// no traps: all numbers have at most four digits, or are clamped to `writable`.

/// HTTP dates (RFC 9110 §5.6.7), as whole seconds since 1970-01-01T00:00:00Z.
package enum HTTPDate {
    private static let secondsPerDay: Int64 = 86400
    private static let daysFromThursday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let longDays = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    /// The seconds of the years that four digits can express, 0000 to 9999.
    private static let writable: ClosedRange<Int64> = -62_167_219_200...253_402_300_799
    /// Two-digit years are in the hundred years up to this one. RFC 9110 §5.6.7: at most 50 years ahead; as the
    /// form died out in the 1990s, the limit need not follow the current year.
    private static let lastTwoDigitYear: Int64 = 2075

    /// Parses all three forms; nil for anything else, and for days and times that do not exist. The weekday is not
    /// checked against the date, and names may be in any case: recipients are to be robust (RFC 9110 §5.6.7).
    package static func parse(_ text: String) -> Int64? {
        let trimmed = String(ASCII.trimmed(text))
        return parseFixdate(FieldScanner(trimmed)) ?? parseRFC850(FieldScanner(trimmed))
            ?? parseAsctime(FieldScanner(trimmed))
    }

    /// IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Seconds outside of years with four digits are clamped to the
    /// nearest such year.
    package static func format(_ seconds: Int64) -> String {
        let time = min(max(seconds, writable.lowerBound), writable.upperBound)
        let second = (time % secondsPerDay + secondsPerDay) % secondsPerDay
        let days = (time - second) / secondsPerDay
        let date = CivilDate(daysSince1970: days)
        let dayName = daysFromThursday[Int((days % 7 + 7) % 7)]
        let clock = [second / 3600, second / 60 % 60, second % 60].map { padded($0, to: 2) }.joined(separator: ":")
        return
            "\(dayName), \(padded(date.day, to: 2)) \(months[Int(date.month - 1)]) \(padded(date.year, to: 4)) \(clock) GMT"
    }

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func parseFixdate(_ text: FieldScanner) -> Int64? {
        var text = text
        guard text.take(anyOf: daysFromThursday) != nil, text.take(", "), let day = text.take(digits: 2),
            text.take(" "),
            let month = text.take(anyOf: months), text.take(" "), let year = text.take(digits: 4), text.take(" "),
            let second = takeClock(&text), text.take(ignoringCase: " GMT"), text.isAtEnd
        else { return nil }
        return seconds(year, month, day, second)
    }

    /// Parses `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func parseRFC850(_ text: FieldScanner) -> Int64? {
        var text = text
        guard text.take(anyOf: longDays) != nil, text.take(", "), let day = text.take(digits: 2), text.take("-"),
            let month = text.take(anyOf: months), text.take("-"), let year = text.take(digits: 2), text.take(" "),
            let second = takeClock(&text), text.take(ignoringCase: " GMT"), text.isAtEnd
        else { return nil }
        return seconds(fullYear(year), month, day, second)
    }

    /// Parses `Sun Nov  6 08:49:37 1994`.
    private static func parseAsctime(_ text: FieldScanner) -> Int64? {
        var text = text
        guard text.take(anyOf: daysFromThursday) != nil, text.take(" "), let month = text.take(anyOf: months),
            text.take(" "),
            let day = text.take(" ") ? text.take(digits: 1) : text.take(digits: 2), text.take(" "),
            let second = takeClock(&text), text.take(" "), let year = text.take(digits: 4), text.isAtEnd
        else { return nil }
        return seconds(year, month, day, second)
    }

    private static func fullYear(_ twoDigits: Int64) -> Int64 {
        let century = lastTwoDigitYear / 100 * 100
        return century + twoDigits > lastTwoDigitYear ? century - 100 + twoDigits : century + twoDigits
    }

    /// Consumes `08:49:37`, as seconds of the day. A leap second, 60, counts as the first of the next minute.
    private static func takeClock(_ text: inout FieldScanner) -> Int64? {
        guard let hour = text.take(digits: 2), hour < 24, text.take(":"), let minute = text.take(digits: 2),
            minute < 60,
            text.take(":"), let second = text.take(digits: 2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func seconds(_ year: Int64, _ month: Int, _ day: Int64, _ second: Int64) -> Int64? {
        let date = CivilDate(year: year, month: Int64(month) + 1, day: day)
        return date.exists ? date.daysSince1970 * secondsPerDay + second : nil
    }
}
