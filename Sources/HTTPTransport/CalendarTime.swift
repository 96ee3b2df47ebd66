import Glibc
import HTTPModel

extension AccessRecord {
    /// A time of this machine's clock as a date and a time of day, in UTC.
    struct CalendarTime {
        private let parts: tm
        let milliseconds: Int

        /// - Parameter time: seconds since 1970.
        init(_ time: Double) {
            var (seconds, parts) = (time_t(saturating: time.rounded(.down)), tm())
            gmtime_r(&seconds, &parts)
            self.parts = parts
            milliseconds = Int(saturating: (time - time.rounded(.down)) * 1000)
        }

        private static let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]

        // no trap: years of this machine's clock
        private var year: Int { Int(parts.tm_year) + 1900 }

        /// `2026-11-23`
        var date: String {
            // no trap: months of the year
            [Self.padded(year, 4), Self.padded(Int(parts.tm_mon) + 1, 2), Self.padded(Int(parts.tm_mday), 2)].joined(
                separator: "-")
        }

        /// `16:41:45`
        var clock: String {
            [parts.tm_hour, parts.tm_min, parts.tm_sec].map { Self.padded(Int($0), 2) }.joined(separator: ":")
        }

        /// `23/Nov/2026:16:41:45 +0000`, as in the logs of web servers.
        var logText: String {
            let month = Self.months.indices.contains(Int(parts.tm_mon)) ? Self.months[Int(parts.tm_mon)] : "Jan"
            return "\(Self.padded(Int(parts.tm_mday), 2))/\(month)/\(Self.padded(year, 4)):\(clock) +0000"
        }

        static func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
    }
}
