import HTTPModel

/// Times and durations in XML Schema notation (XML Schema Part 2 §3.2.6, §3.2.7), which is that of ISO 8601.
enum ISO8601 {
    /// Parses `P1DT2H3M4.5S`. As in players, a year has 365 days and a month 30.
    /// - Returns: nil for anything else, below zero, and beyond `PlaylistLimits.seconds`.
    static func duration(_ text: String) -> Duration? {
        var rest = ASCII.trimmed(text).utf8[...]
        guard rest.popFirst() == UInt8(ascii: "P"), !rest.isEmpty else { return nil }
        var total = Duration.zero
        var units = dateUnits[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "T") {
                units = timeUnits[...]
                rest = rest.dropFirst()
                guard !rest.isEmpty else { return nil }
                continue
            }
            guard let part = component(&rest, &units) else { return nil }
            total += part
        }
        return total <= .seconds(PlaylistLimits.seconds) ? total : nil
    }

    private typealias Unit = (letter: UInt8, seconds: Int)
    private static let dateUnits: [Unit] = [
        (UInt8(ascii: "Y"), 31_536_000), (UInt8(ascii: "M"), 2_592_000), (UInt8(ascii: "D"), 86400),
    ]
    private static let timeUnits: [Unit] = [(UInt8(ascii: "H"), 3600), (UInt8(ascii: "M"), 60), (UInt8(ascii: "S"), 1)]

    /// A number and its unit. Each unit occurs at most once, greater ones first.
    private static func component(_ rest: inout Substring.UTF8View, _ units: inout ArraySlice<Unit>) -> Duration? {
        let digits = rest.prefix { ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }
        guard let number = MediaNumbers.seconds(digits), let letter = rest.dropFirst(digits.count).first else {
            return nil
        }
        guard let place = units.firstIndex(where: { $0.letter == letter }) else { return nil }
        let unit = units[place]
        units = units[(place + 1)...]
        rest = rest.dropFirst(digits.count + 1)
        return number * unit.seconds
    }

    /// Parses `2026-01-31T12:00:00.5Z`, also with an offset such as `+01:00`; without one, the time is UTC.
    /// - Returns: the time since 1970-01-01T00:00:00Z; nil for anything else.
    static func dateTime(_ text: String) -> Duration? {
        let parts = ASCII.trimmed(text).split(separator: "T", omittingEmptySubsequences: false)
        guard parts.count == 2, let day = day(parts[0]) else { return nil }
        let clock = parts[1].prefix { !"Z+-".contains($0) }
        guard let time = time(clock), let offset = offset(parts[1].dropFirst(clock.count)) else { return nil }
        return .seconds(day *| 86400) + time - offset
    }

    private static func day(_ text: Substring) -> Int64? {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map {
            ASCII.decimal($0, upTo: 9999)
        }
        guard parts.count == 3, let year = parts[0], let month = parts[1], let day = parts[2] else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        return date.exists ? date.daysSince1970 : nil
    }

    private static func time(_ text: Substring) -> Duration? {
        let parts = text.utf8.split(separator: ASCII.colon, omittingEmptySubsequences: false)
        guard parts.count == 3, let hours = ASCII.decimal(parts[0], upTo: 24),
            let minutes = ASCII.decimal(parts[1], upTo: 59)
        else { return nil }
        guard let seconds = MediaNumbers.seconds(parts[2]), seconds <= .seconds(61) else { return nil }
        return .seconds(hours *| 3600 +| minutes *| 60) + seconds
    }

    /// Positive east of Greenwich.
    private static func offset(_ text: Substring) -> Duration? {
        if text.isEmpty || text == "Z" { return .zero }
        let parts = text.dropFirst().utf8.split(separator: ASCII.colon, omittingEmptySubsequences: false)
        guard parts.count == 2, let hours = ASCII.decimal(parts[0], upTo: 14),
            let minutes = ASCII.decimal(parts[1], upTo: 59)
        else { return nil }
        let offset = Duration.seconds(hours *| 3600 +| minutes *| 60)
        return text.hasPrefix("-") ? .zero - offset : offset
    }
}
