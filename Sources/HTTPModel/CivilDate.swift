// no traps: years have four digits, and days come from HTTPDate, which holds them within those years.

/// A day of the proleptic Gregorian calendar, converted to and from days since 1970-01-01.
///
/// Years begin in March, so that the leap day is a year's last and months follow a regular pattern. They are
/// counted in eras of 400 years, which all have 146,097 days. After H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
package struct CivilDate: Equatable {
    package var year: Int64
    /// 1 to 12
    package var month: Int64
    /// 1 to 31
    package var day: Int64

    private static let daysPerEra: Int64 = 146_097
    /// Days from 0000-03-01, where era 0 begins, to 1970-01-01.
    private static let daysBefore1970: Int64 = 719_468

    /// - Parameter year: a year of four digits.
    package init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    package init(daysSince1970 days: Int64) {
        let shifted = days + Self.daysBefore1970
        let era = (shifted >= 0 ? shifted : shifted - (Self.daysPerEra - 1)) / Self.daysPerEra
        let dayOfEra = shifted - era * Self.daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    package var daysSince1970: Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * Self.daysPerEra + dayOfEra - Self.daysBefore1970
    }

    /// Whether the day exists, unlike the 30th of February.
    package var exists: Bool {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let last: Int64 =
            switch month {
            case 2: isLeap ? 29 : 28
            case 4, 6, 9, 11: 30
            default: 31
            }
        return (1...12).contains(month) && (1...last).contains(day)
    }
}
