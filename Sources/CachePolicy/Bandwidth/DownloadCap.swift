import HTTPModel

/// The most bytes that downloads may fetch from origins in a day or month of local time.
package struct DownloadCap: Sendable, Equatable {
    package enum Period: String, Sendable, CaseIterable {
        case day, month
    }

    /// At least 1.
    package let bytes: Int64
    package let period: Period

    /// Parses `2GB/day` or `40GB/month`.
    package init(parsing text: String) throws(RuleError) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let period = Period(rawValue: parts[1].filter { $0 != " " }.lowercased()),
            let size = ByteSize(String(parts[0])), size.bytes > 0
        else { throw RuleError("'\(text.prefix(100))' is not a cap; write it like 2GB/day or 40GB/month") }
        (bytes, self.period) = (size.bytes, period)
    }

    /// The form that `init(parsing:)` reads.
    package var text: String { "\(ByteSize.exactText(bytes))/\(period.rawValue)" }

    /// - Throws: if one of the texts is not a cap, or two are for the same period.
    package static func parse(_ texts: [String]) throws(RuleError) -> [DownloadCap] {
        var caps: [DownloadCap] = []
        for text in texts {
            let cap = try DownloadCap(parsing: text)
            guard !caps.contains(where: { $0.period == cap.period }) else {
                throw RuleError("there are two caps for each \(cap.period.rawValue); remove one of them")
            }
            caps.append(cap)
        }
        return caps
    }
}

extension DownloadCap.Period {
    /// The days of the period that contains a day, in days since 1970-01-01.
    package func days(around day: Int64) -> Range<Int64> {
        switch self {
        case .day: return Range(offset: max(0, day), length: 1) ?? 0..<1
        case .month:
            var date = CivilDate(daysSince1970: max(0, min(2_932_000, day)))
            date.day = 1
            let first = date.daysSince1970
            date.month = date.month == 12 ? 1 : date.month +| 1
            if date.month == 1 { date.year +|= 1 }
            return Range(from: first, upTo: date.daysSince1970) ?? first..<first // no trap: empty
        }
    }
}
