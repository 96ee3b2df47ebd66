import CachePolicy
import Downloads
import Foundation
import HTTPModel

/// Downloads as tables, cut to the width of a terminal, complete in a pipe.
package struct DownloadTable {
    /// Columns of the terminal; nil for no limit.
    private let width: Int?
    private let isUnicode: Bool
    /// Seconds since 1970.
    private let now: Int64
    private let mask: URLMask?
    /// Whether the last column has the names of downloads rather than their URLs.
    private let isNamed: Bool

    /// - Parameters:
    ///   - mask: masks secrets in URLs; nil to mask nothing.
    ///   - isLong: whether URLs are listed in place of names, as they are in a pipe.
    package init(width: Int?, isUnicode: Bool, now: Int64, mask: URLMask? = nil, isLong: Bool = false) {
        (self.width, self.isUnicode, self.now, self.mask) = (width, isUnicode, now, mask)
        isNamed = width != nil && !isLong
    }

    private func row(_ cells: [String], _ report: Download, below: String?) -> TerminalTable.Row {
        isNamed
            ? TerminalTable.Row(cells, text: report.name, below: below)
            : TerminalTable.Row(cells, url: report.urlText, below: below)
    }

    /// Each download, with its reason below if it has one.
    /// - Parameter hold: why all wait, which is not repeated for each.
    package func list(_ reports: [Download], hold: String? = nil) -> [String] {
        let rows = reports.map { report in
            row(
                [
                    "\(report.id)", report.state.rawValue, report.priority.rawValue, Self.progress(report),
                    report.bytesPerSecond.map(ProgressText.rate) ?? "",
                    report.eta.map(ProgressText.time) ?? "",
                ], report,
                below: report.attempt(now: now) ?? report.hold(besides: hold)
                    ?? (report.state == .failed ? report.reason : report.note))
        }
        return lines(
            [
                .init("ID", -2), .init("STATE", 11), .init("PRIORITY", 8, rank: 4), .init("PROGRESS", 14, rank: 1),
                .init("RATE", -9, rank: 3),
                .init("ETA", -7, rank: 2),
            ], rows)
    }

    /// Downloads that have ended, with the reason below if they did not complete.
    /// - Parameter date: writes a time, seconds since 1970.
    package func history(_ reports: [Download], date: (Int64) -> String = Self.date) -> [String] {
        let rows = reports.map { report in
            let seconds = report.started.flatMap { started in
                report.finished.map { max(0, $0.seconds -| started.seconds) }
            }
            // no trap: compared with 0
            let rate = seconds.flatMap { $0 > 0 && report.bytes > 0 ? ProgressText.rate(report.bytes / $0) : nil }
            return row(
                [
                    report.finished.map { date($0.seconds) } ?? "", report.state.rawValue,
                    ByteSize(bytes: report.bytes).description,
                    seconds.map(ProgressText.time) ?? "", rate ?? "",
                    report.category?.printable ?? "",
                ], report, below: report.state == .completed ? report.note : report.message?.printable)
        }
        return lines(
            [
                .init("FINISHED", 16, rank: 2), .init("OUTCOME", 9), .init("SIZE", -9, rank: 1),
                .init("TIME", -7, rank: 4), .init("RATE", -9, rank: 5),
                .init("CATEGORY", 8, rank: 3),
            ], rows)
    }

    /// `2026-05-01 20:15` in local time.
    package static func date(_ time: Int64) -> String {
        var (time, parts) = (time_t(time), tm())
        guard localtime_r(&time, &parts) != nil else { return "" }
        func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        // no trap: the system's calendar
        let (year, month) = ("\(parts.tm_year + 1900)", digits(parts.tm_mon + 1))
        return "\(year)-\(month)-\(digits(parts.tm_mday)) \(digits(parts.tm_hour)):\(digits(parts.tm_min))"
    }

    private static func progress(_ report: Download) -> String {
        if let segments = report.segmentText, report.state != .completed {
            return report.percent.map { "\($0) %, \(segments)" } ?? segments
        }
        guard let total = report.total, let percent = report.percent, report.state != .completed else {
            return ByteSize(bytes: report.bytes).description
        }
        return "\(percent) % of \(ByteSize(bytes: total))"
    }

    private func lines(_ columns: [TerminalTable.Column], _ rows: [TerminalTable.Row]) -> [String] {
        TerminalTable(width: width, isUnicode: isUnicode, mask: mask).lines(
            columns, isNamed ? "NAME" : "URL", rows)
    }
}
