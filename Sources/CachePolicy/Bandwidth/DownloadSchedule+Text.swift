import HTTPModel

/// A schedule as people write it.
extension DownloadSchedule {
    /// One line of a schedule: a window, or `else`, and its rate.
    package struct Entry: Sendable, Equatable {
        /// nil for `else`.
        let window: Window?
        let rate: Rate

        /// Parses `01:00-06:30=unlimited`.
        package init(parsing text: String) throws(RuleError) {
            guard let sign = text.lastIndex(of: "=") else {
                throw RuleError("'\(text)' has no rate; write it like 01:00-06:30=unlimited or else=500kB")
            }
            try self.init(when: String(text[..<sign]), rate: String(text[sign...].dropFirst()))
        }

        /// - Parameters:
        ///   - when: `else`, `01:00-06:30`, `Sat,Sun 08:00-12:00`, `Mon-Fri`.
        ///   - rate: `unlimited`, `off`, or bytes per second such as `500kB`.
        package init(when: String, rate: String) throws(RuleError) {
            self.rate = try Rate(rate.trimmed)
            window = when.trimmed.lowercased() == "else" ? nil : try Window(when.trimmed, rate: self.rate)
        }

        /// The form that `init(parsing:)` reads.
        package var text: String { "\(window?.text ?? "else")=\(rate.text)" }
    }

    /// - Throws: if `else` is repeated, or there are too many windows.
    package init(_ entries: [Entry]) throws(RuleError) {
        let others = entries.filter { $0.window == nil }
        guard others.count <= 1 else { throw RuleError("else is written twice; remove one of them") }
        let windows = entries.compactMap(\.window)
        guard windows.count <= Self.mostWindows else {
            throw RuleError("it has \(windows.count) windows; write \(Self.mostWindows) at most")
        }
        self.init(windows, otherwise: others.first?.rate ?? .off)
    }

    /// - Parameter texts: entries as `Entry.text`; none for no schedule.
    /// - Returns: nil for no entries.
    package static func parse(_ texts: [String]) throws(RuleError) -> DownloadSchedule? {
        guard !texts.isEmpty else { return nil }
        var entries: [Entry] = []
        for text in texts { entries.append(try Entry(parsing: text)) }
        return try DownloadSchedule(entries)
    }

    /// Its entries as `Entry.text`, `else` last.
    package var texts: [String] { windows.map { "\($0.text)=\($0.rate.text)" } + ["else=\(otherwise.text)"] }
}

extension DownloadSchedule.Rate {
    fileprivate init(_ text: String) throws(RuleError) {
        switch text.lowercased() {
        case "unlimited": self = .unlimited
        case "off": self = .off
        default:
            let size = ByteSize(text.hasSuffix("/s") ? String(text.dropLast(2)) : text)
            guard let size, size.bytes > 0 else {
                throw RuleError(
                    "'\(text.prefix(100))' is not a rate; write unlimited, off, or bytes per second like 500kB")
            }
            self = .limited(size.bytes)
        }
    }

    package var text: String {
        switch self {
        case .off: "off"
        case .unlimited: "unlimited"
        case .limited(let rate): ByteSize.exactText(rate)
        }
    }
}

extension DownloadSchedule.Window {
    private static let dayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let forms = "write it like 01:00-06:30, Sat,Sun 08:00-12:00 or Mon-Fri"

    fileprivate init(_ text: String, rate: DownloadSchedule.Rate) throws(RuleError) {
        let shown = text.prefix(100)
        var words = text.split(whereSeparator: { $0 == " " || $0 == "\t" })
        var minutes = 0..<DownloadSchedule.dayMinutes
        if let last = words.last, last.contains(":") {
            guard let times = Self.minutes(last) else {
                throw RuleError("'\(shown)' is not a window of time; \(Self.forms)")
            }
            guard !times.isEmpty else {
                throw RuleError("'\(shown)' ends when it begins; for the whole day write 00:00-24:00")
            }
            minutes = times
            words.removeLast()
        }
        guard let days = words.isEmpty ? Set(0..<7) : Self.days(words.joined()), !text.isEmpty else {
            throw RuleError("'\(shown)' is not a window of time; \(Self.forms)")
        }
        self.init(days: days, minutes: minutes, rate: rate)
    }

    /// `Sat,Sun`, `Mon-Fri`; nil if it is malformed.
    private static func days(_ text: String) -> Set<Int>? {
        var days: Set<Int> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map(Self.day)
            guard (1...2).contains(ends.count), let first = ends[0], let last = ends[ends.count - 1] else { return nil }
            // no trap: weekdays; Fri-Mon goes over the end of the week
            for day in first...(last < first ? last + 7 : last) { days.insert(day % 7) }
        }
        return days
    }

    private static func day(_ name: Substring) -> Int? {
        dayNames.firstIndex { $0.lowercased() == name.lowercased() }
    }

    /// `22:00-06:00`; empty if both times are the same, nil if it is malformed.
    private static func minutes(_ text: Substring) -> Range<Int>? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map(minute)
        guard ends.count == 2, let first = ends[0], let last = ends[1], first < DownloadSchedule.dayMinutes else {
            return nil
        }
        // no trap: minutes of a day
        return first..<(last < first ? last + DownloadSchedule.dayMinutes : last)
    }

    /// `06:30`, up to `24:00`.
    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].count), parts[1].count == 2,
            parts.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isNumber } }), let hour = Int(parts[0]),
            let minute = Int(parts[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
        else { return nil }
        return hour * 60 + minute // no trap: two digits each
    }

    package var text: String {
        let time = "\(Self.clock(minutes.lowerBound))-\(Self.clock(minutes.upperBound))"
        guard days.count < 7 else { return time }
        let names = days.sorted().map { Self.dayNames[$0] }.joined(separator: ",")
        return minutes == 0..<DownloadSchedule.dayMinutes ? names : "\(names) \(time)"
    }

    private static func clock(_ minute: Int) -> String {
        // no trap: not 0
        let within = minute > DownloadSchedule.dayMinutes ? minute % DownloadSchedule.dayMinutes : minute
        return [within / 60, within % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":") // no trap: not 0
    }
}

extension String {
    fileprivate var trimmed: String {
        let isSpace = { (letter: Character) in letter == " " || letter == "\t" }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}
