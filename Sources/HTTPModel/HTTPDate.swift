// no traps: all numbers have at most four digits, or are clamped to `writable`; places are within a form's length.

/// HTTP dates (RFC 9110 §5.6.7), as whole seconds since 1970-01-01T00:00:00Z.
package enum HTTPDate {
    private static let secondsPerDay: Int64 = 86400
    private static let daysFromThursday: [StaticString] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let longDays: [StaticString] = [
        "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday",
    ]
    private static let months: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let (dayLetters, monthLetters) = (letters(of: daysFromThursday), letters(of: months))

    private static func letters(of names: [StaticString]) -> [UInt32] { names.map { Form.letters($0.utf8Start) } }

    /// The seconds of the years that four digits can express, 0000 to 9999.
    private static let writable: ClosedRange<Int64> = -62_167_219_200...253_402_300_799
    /// Two-digit years are in the hundred years up to this one. RFC 9110 §5.6.7: at most 50 years ahead; as the
    /// form died out in the 1990s, the limit need not follow the current year.
    private static let lastTwoDigitYear: Int64 = 2075

    /// Parses all three forms; nil for anything else, and for days and times that do not exist. The weekday is not
    /// checked against the date, and names may be in any case: recipients are to be robust (RFC 9110 §5.6.7).
    package static func parse(_ text: String) -> Int64? {
        var text = text
        return text.withUTF8 { parse(Form(bytes: ASCII.trimmed(UnsafeRawBufferPointer($0)))) }
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

    /// Each form has its parts at fixed places: behind the name of the day, or in the whole text.
    private static func parse(_ text: Form) -> Int64? {
        switch text.bytes.count {
        case 24: parseAsctime(text)
        case 29 where text.has(", ", at: 3): parseFixdate(text)
        default: parseRFC850(text)
        }
    }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func parseFixdate(_ text: Form) -> Int64? {
        guard text.index(of: dayLetters, at: 0) != nil, let day = text.number(5, 2), text.has(" ", at: 7),
            let month = text.index(of: monthLetters, at: 8), text.has(" ", at: 11), let year = text.number(12, 4),
            text.has(" ", at: 16), let second = clock(text, at: 17), text.has(" GMT", at: 25)
        else { return nil }
        return seconds(year, month, day, second)
    }

    /// Parses `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func parseRFC850(_ text: Form) -> Int64? {
        let end = text.bytes.count - 24
        guard longDays.contains(where: { $0.utf8CodeUnitCount == end && text.has($0, at: 0) }), text.has(", ", at: end),
            let day = text.number(end + 2, 2), text.has("-", at: end + 4),
            let month = text.index(of: monthLetters, at: end + 5), text.has("-", at: end + 8),
            let year = text.number(end + 9, 2), text.has(" ", at: end + 11), let second = clock(text, at: end + 12),
            text.has(" GMT", at: end + 20)
        else { return nil }
        return seconds(fullYear(year), month, day, second)
    }

    /// Parses `Sun Nov  6 08:49:37 1994`.
    private static func parseAsctime(_ text: Form) -> Int64? {
        guard text.index(of: dayLetters, at: 0) != nil, text.has(" ", at: 3),
            let month = text.index(of: monthLetters, at: 4), text.has(" ", at: 7),
            let day = text.has(" ", at: 8) ? text.number(9, 1) : text.number(8, 2), text.has(" ", at: 10),
            let second = clock(text, at: 11), text.has(" ", at: 19), let year = text.number(20, 4)
        else { return nil }
        return seconds(year, month, day, second)
    }

    private static func fullYear(_ twoDigits: Int64) -> Int64 {
        let century = lastTwoDigitYear / 100 * 100
        return century + twoDigits > lastTwoDigitYear ? century - 100 + twoDigits : century + twoDigits
    }

    /// Parses `08:49:37`, as seconds of the day. A leap second, 60, counts as the first of the next minute.
    private static func clock(_ text: Form, at place: Int) -> Int64? {
        guard let hour = text.number(place, 2), hour < 24, text.has(":", at: place + 2),
            let minute = text.number(place + 3, 2), minute < 60, text.has(":", at: place + 5),
            let second = text.number(place + 6, 2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func seconds(_ year: Int64, _ month: Int, _ day: Int64, _ second: Int64) -> Int64? {
        let date = CivilDate(year: year, month: Int64(month) + 1, day: day)
        return date.exists ? date.daysSince1970 * secondsPerDay + second : nil
    }
}

extension HTTPDate {
    /// A text with parts at known places, all of them within it.
    private struct Form {
        let bytes: UnsafeRawBufferPointer

        /// Whether these letters and signs are there, in any case.
        func has(_ text: StaticString, at place: Int) -> Bool {
            let expected = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
            for offset in expected.indices
            where ASCII.lowercased(bytes[place + offset]) != ASCII.lowercased(expected[offset]) {
                return false
            }
            return true
        }

        /// Which of the names, of three letters, is there. They are compared as one number each: most are not it.
        func index(of names: [UInt32], at place: Int) -> Int? {
            bytes.baseAddress.flatMap { names.firstIndex(of: Self.letters($0 + place)) }
        }

        /// Three letters as a number, in any case: the bit makes a capital small, and nothing else a letter.
        static func letters(_ start: UnsafeRawPointer) -> UInt32 {
            let bytes = start.assumingMemoryBound(to: UInt8.self)
            return UInt32(bytes[0]) << 16 | UInt32(bytes[1]) << 8 | UInt32(bytes[2]) | 0x202020
        }

        /// The number of exactly that many digits.
        func number(_ place: Int, _ count: Int) -> Int64? {
            var number: Int64 = 0
            for offset in place..<place + count {
                guard ASCII.isDigit(bytes[offset]) else { return nil }
                number = number * 10 + Int64(bytes[offset] &- 0x30)
            }
            return number
        }
    }
}
