import HTTPModel

/// Reads the time at which an item was published, in any form that feeds use.
///
/// RFC 822 §5 and RFC 2822 §3.3 in any order of their words, ISO 8601, and seconds since 1970. Ignores the weekday,
/// which is often wrong. A missing or unknown zone counts as UTC.
struct FeedDate {
    private var year: Int64?
    private var month: Int64?
    private var day: Int64?
    /// Seconds since midnight.
    private var clock: Int64?
    /// Seconds east of Greenwich.
    private var offset: Int64 = 0
    private var hasNumericOffset = false
    private var isAfternoon: Bool?

    private static let years: ClosedRange<Int64> = 1900...9999

    /// - Returns: the time since 1970-01-01T00:00:00Z; nil if the text is not a date, if the day does not exist, and
    ///   for that moment itself, which stands for an unknown time.
    static func time(_ written: String) -> Duration? {
        guard written.utf8.count <= 128 else { return nil }
        let text = written.lowercased()
        if let seconds = stamp(text) { return seconds }
        var date = FeedDate(), isComment = false
        for word in text.split(whereSeparator: { $0.isWhitespace || $0 == "," }) {
            isComment = isComment || word.hasPrefix("(")
            if !isComment, !date.take(word) { return nil }
            isComment = isComment && !word.hasSuffix(")")
        }
        return date.time
    }

    /// Reads seconds or milliseconds since 1970, and a day with its time of day in 12 or 14 digits. Eight digits are a
    /// day.
    private static func stamp(_ text: String) -> Duration? {
        let whole = ASCII.trimmed(text).prefix { $0 != "." }
        guard let number = ASCII.decimal(whole.utf8), text.utf8.allSatisfy({ !ASCII.isLetter($0) }) else { return nil }
        switch whole.utf8.count {
        case 9...11: return .seconds(number)
        case 12: return compact(whole) ?? .milliseconds(number)
        case 13: return .milliseconds(number)
        case 14: return compact(whole)
        default: return nil
        }
    }

    /// `20020131100000`, `200201311000`; nil if the day or the time does not exist.
    private static func compact(_ digits: Substring) -> Duration? {
        var date = FeedDate()
        return date.takeInteger(digits.prefix(8)) && date.takeClock(digits.dropFirst(8)) ? date.time : nil
    }

    private var time: Duration? {
        guard let year, let month, let day, Self.years.contains(year) else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        guard date.exists else { return nil }
        let seconds = date.daysSince1970 *| 86400 +| clockOfDay -| offset
        return seconds == 0 ? nil : .seconds(seconds)
    }

    /// 12 am is midnight, and 12 pm is noon.
    private var clockOfDay: Int64 {
        let clock = clock ?? 0
        guard let isAfternoon, clock < 46800 else { return clock }
        return (clock >= 43200 ? clock -| 43200 : clock) +| (isAfternoon ? 43200 : 0)
    }

    // MARK: - Words

    /// - Returns: whether the text can still be a date.
    private mutating func take(_ word: Substring) -> Bool {
        guard let first = word.utf8.first else { return true }
        if ASCII.isDigit(first) { return takeNumber(word) }
        if first == UInt8(ascii: "+") || first == UInt8(ascii: "-") { return takeZone(word) }
        return takeName(word)
    }

    private mutating func takeName(_ word: Substring) -> Bool {
        let name = word.filter { $0 != "." && $0 != ")" }
        if name == "am" || name == "pm", clock != nil {
            isAfternoon = name == "pm"
        } else if clock == nil || month == nil, let named = MonthNames.month(name) {
            // French and Italian weekdays look like months (mar, mer): the later word counts.
            month = named
        } else if clock != nil {
            return takeZone(name[...])
        } else if name.hasPrefix("t"), let digit = name.utf8.dropFirst().first, ASCII.isDigit(digit) {
            return takeClock(word.dropFirst())
        }
        return true
    }

    private mutating func takeNumber(_ word: Substring) -> Bool {
        let digits = word.prefix(while: Self.isDigit), rest = word.dropFirst(digits.count)
        switch rest.first {
        case nil: return takeInteger(digits)
        case ":": return takeClock(word)
        case "-", "/", ".": return takeDay(word)
        case "t" where digits.count == 8: return takeInteger(digits) && takeClock(rest.dropFirst())
        // Ordinals: 2nd, 1er, 2º.
        default: return digits.count <= 2 ? takeInteger(digits) : true
        }
    }

    /// `2024-01-31T10:00:00Z`, `31.01.2024`, `1/31/2024`, `31-Jan-24`, `2.`
    private mutating func takeDay(_ word: Substring) -> Bool {
        let head = word.prefix { Self.isDigit($0) || Self.isSeparator($0) }, tail = word.dropFirst(head.count)
        let parts = head.split(whereSeparator: Self.isSeparator)
        if parts.count < 2 || head.last.map(Self.isSeparator) == true {
            return word.split(whereSeparator: Self.isSeparator).allSatisfy { take($0) }
        }
        guard takeDay(parts, isAmerican: head.contains("/")) else { return false }
        return tail.isEmpty || takeClock(tail.drop { $0 == "t" || $0 == "_" })
    }

    private mutating func takeDay(_ parts: [Substring], isAmerican: Bool) -> Bool {
        let numbers = parts.map { ASCII.decimal($0.utf8, upTo: 9999) ?? 0 }
        guard let first = numbers.first, let last = numbers.last, numbers.count <= 3 else { return false }
        if parts.first?.count == 4 {
            (year, month, day) = (first, numbers[1], numbers.count == 3 ? last : 1)
        } else if numbers.count == 3 {
            let isMonthFirst = isAmerican && first <= 12
            (month, day) = isMonthFirst ? (first, numbers[1]) : (numbers[1], first)
            year = Self.year(last, digits: parts.last?.count ?? 0)
        }
        return true
    }

    /// `20240131`, a year, or a day: the first of these that fits.
    private mutating func takeInteger(_ digits: Substring) -> Bool {
        guard let number = ASCII.decimal(digits.utf8, upTo: 99_991_231) else { return true }
        if digits.count == 8 {
            (year, month, day) = (number / 10000, number / 100 % 100, number % 100)
        } else if digits.count <= 2, day == nil, number > 0 {
            day = number
        } else if year == nil {
            year = Self.year(number, digits: digits.count)
        }
        return true
    }

    /// RFC 2822 §4.3: two digits stand for 1950 to 2049, and three count from 1900.
    private static func year(_ number: Int64, digits: Int) -> Int64 {
        switch digits {
        case ...2: number +| (number < 50 ? 2000 : 1900)
        case 3: number +| 1900
        default: number
        }
    }

    private static func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }

    private static func isSeparator(_ character: Character) -> Bool {
        character == "-" || character == "/" || character == "."
    }
}

// MARK: - Time of day and zone

extension FeedDate {
    /// `10:00`, `10:00:00.5Z`, `24:00`, `100000+0200`.
    private mutating func takeClock(_ text: Substring) -> Bool {
        let digits = text.prefix { Self.isDigit($0) || $0 == ":" || $0 == "." }, rest = text.dropFirst(digits.count)
        let parts = Self.parts(digits.prefix { $0 != "." }).map { ASCII.decimal($0.utf8, upTo: 60) }
        guard let hours = parts.first ?? nil, hours <= 24, parts.count >= 2, let minutes = parts[1], minutes < 60
        else { return false }
        guard let seconds = parts.count > 2 ? parts[2] : 0 else { return false }
        clock = hours *| 3600 +| minutes *| 60 +| min(seconds, 59)
        return rest.isEmpty || (ASCII.isLetter(rest.utf8.first ?? 0) ? takeName(rest) : takeZone(rest))
    }

    /// Also reads `1000` and `100000`, the basic format of ISO 8601.
    private static func parts(_ text: Substring) -> [Substring] {
        if text.contains(":") { return text.split(separator: ":", omittingEmptySubsequences: false) }
        guard text.count == 4 || text.count == 6 else { return [] }
        return [text.prefix(2), text.dropFirst(2).prefix(2), text.dropFirst(4)].filter { !$0.isEmpty }
    }

    /// `+0200`, `-05:00`, `GMT+2`, `PST`. A number takes precedence over a name.
    private mutating func takeZone(_ word: Substring) -> Bool {
        let name = word.prefix { $0 != "+" && $0 != "-" }, number = word.dropFirst(name.count)
        if let sign = number.first, let east = Self.offset(number.dropFirst()) {
            offset = sign == "-" ? 0 -| east : east
            hasNumericOffset = true
        } else if !hasNumericOffset, let hours = Self.zones[String(name)] {
            // no trap: within a day
            offset = Int64(saturating: hours * 3600)
        }
        return true
    }

    private static func offset(_ text: Substring) -> Int64? {
        let digits = text.filter { $0 != ":" }.prefix(while: isDigit)
        guard (1...4).contains(digits.count) else { return nil }
        let hours = digits.count <= 2 ? digits : digits.dropLast(2)
        let minutes = digits.count <= 2 ? "0" : digits.suffix(2)
        guard let hours = ASCII.decimal(hours.utf8, upTo: 15), let minutes = ASCII.decimal(minutes.utf8, upTo: 59)
        else { return nil }
        return hours *| 3600 +| minutes *| 60
    }

    /// Hours east of Greenwich. Military letters are left out: RFC 822 defined them the wrong way round (RFC 2822
    /// §4.3).
    private static let zones: [String: Double] = [
        "ut": 0, "utc": 0, "gmt": 0, "z": 0, "wet": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7,
        "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10, "ast": -4, "adt": -3, "nst": -3.5,
        "ndt": -2.5, "brt": -3, "bst": 1, "west": 1, "cet": 1, "met": 1, "mez": 1, "cest": 2, "mest": 2, "mesz": 2,
        "eet": 2, "sast": 2, "eest": 3, "msk": 3, "gst": 4, "ist": 5.5, "ict": 7, "sgt": 8, "hkt": 8, "awst": 8,
        "jst": 9, "kst": 9, "acst": 9.5, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13,
    ]
}
