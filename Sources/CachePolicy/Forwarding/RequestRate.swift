import HTTPModel

/// How many requests may arrive in a time: `100/s`, `600/min`, `5000/h`. They may arrive all at once.
package struct RequestRate: Sendable, Equatable, CustomStringConvertible {
    package static let greatestCount: Int64 = 1_000_000

    package let count: Int64
    private let unit: Unit

    private enum Unit: String, CaseIterable {
        case second = "s"
        case minute = "min"
        case hour = "h"

        var seconds: UInt64 {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            }
        }
    }

    package init(_ text: String) throws(RuleError) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let count = ASCII.decimal(parts[0].utf8, upTo: Self.greatestCount), count > 0,
            let unit = Unit(rawValue: String(parts[1]))
        else {
            throw RuleError(
                "'\(text)' is not a rate of requests: write it like 100/s, 600/min or 5000/h, with at most \(Self.greatestCount)"
            )
        }
        (self.count, self.unit) = (count, unit)
    }

    package var description: String { "\(count)/\(unit.rawValue)" }

    /// The whole time, in nanoseconds.
    package var period: UInt64 { unit.seconds *| 1_000_000_000 }

    /// The time from one request to the next at this rate, in nanoseconds.
    package var interval: UInt64 { period / UInt64(count) } // no trap: 1 to a million
}
