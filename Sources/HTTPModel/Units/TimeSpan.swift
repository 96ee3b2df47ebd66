/// A length of time as people write it: `30d`, `12h`, `90m`, `2w`, `45s`, `1.5h`.
package struct TimeSpan: Sendable, Equatable, CustomStringConvertible {
    package let seconds: Int64

    package init(seconds: Int64) { self.seconds = seconds }

    /// Parses a length of time; nil if it is malformed, negative, has no unit, or exceeds a thousand years.
    package init?(_ text: String) {
        let trimmed = text.filter { $0 != " " }
        let digits = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let number = Double(digits), number.isFinite,
            let factor = Self.factors[trimmed.dropFirst(digits.count).lowercased()]
        else { return nil }
        let seconds = number * factor
        guard seconds <= 1000 * 365.25 * 86400, let whole = Int64(whole: seconds.rounded()) else { return nil }
        self.seconds = whole
    }

    private static let factors: [String: Double] = ["s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400]

    /// One number in the largest sufficient unit, rounded down: `45 s`, `5 min`, `3 h`, `12 d`.
    package var description: String {
        switch seconds {
        case ..<60: "\(max(0, seconds)) s"
        case ..<3600: "\(seconds / 60) min"
        case ..<(48 * 3600): "\(seconds / 3600) h"
        default: "\(seconds / 86400) d"
        }
    }

    /// How long ago a time was: `3 h ago`.
    /// - Parameters:
    ///   - time, now: seconds since 1970. A time in the future, as clocks differ, counts as just now.
    package static func ago(_ time: Int64, now: Int64) -> String {
        now > time ? "\(TimeSpan(seconds: now -| time)) ago" : "just now"
    }
}

extension TimeSpan {
    /// The time in the largest unit that is exact to the second: `1d`, `90m`.
    package var exactText: String {
        let units: [(String, Int64)] = [("d", 86400), ("h", 3600), ("m", 60)]
        // no trap: units of the table above, none of them 0
        for (unit, length) in units where seconds > 0 && seconds % length == 0 {
            return "\(seconds / length)\(unit)" // no trap: as above
        }
        return "\(seconds)s"
    }
}
