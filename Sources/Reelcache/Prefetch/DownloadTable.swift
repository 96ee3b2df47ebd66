import CachePolicy
import Downloads
import Foundation
import HTTPModel

/// Downloads as tables. Where they are cut, they fit the width of a terminal; in a pipe everything is there.
package struct DownloadTable {
    /// Columns of the terminal; nil for any number.
    private let width: Int?
    private let isUnicode: Bool
    /// Seconds since 1970.
    private let now: Int64

    package init(width: Int?, isUnicode: Bool, now: Int64) { (self.width, self.isUnicode, self.now) = (width, isUnicode, now) }

    /// Each download, with the reason below where it has one.
    package func list(_ reports: [DownloadReport]) -> [String] {
        let rows = reports.map { report in
            Row(
                [
                    "\(report.id)", report.state.rawValue, report.priority.rawValue, Self.progress(report), report.rate.map(ProgressText.rate) ?? "",
                    report.eta.map(ProgressText.time) ?? "",
                ], report.url, below: report.attempt(now: now) ?? (report.state == .failed ? report.reason : nil))
        }
        return lines([("ID", -2), ("STATE", 11), ("PRIORITY", 8), ("PROGRESS", 14), ("RATE", -9), ("ETA", -7)], "URL", rows)
    }

    /// What has ended, with the reason below where it did not end well.
    /// - Parameter date: writes a time, seconds since 1970.
    package func history(_ reports: [DownloadReport], date: (Int64) -> String = Self.date) -> [String] {
        let rows = reports.map { report in
            let seconds = report.started.flatMap { started in report.finished.map { max(0, $0 -| started) } }
            let rate = seconds.flatMap { $0 > 0 && report.bytes > 0 ? ProgressText.rate(report.bytes / $0) : nil }  // no trap: compared with 0
            return Row(
                [
                    report.finished.map(date) ?? "", report.state.rawValue, ByteSize(bytes: report.bytes).description, seconds.map(ProgressText.time) ?? "", rate ?? "",
                    report.category?.printable ?? "",
                ], report.url, below: report.state == .completed ? nil : report.message?.printable)
        }
        return lines([("FINISHED", 16), ("OUTCOME", 9), ("SIZE", -9), ("TIME", -7), ("RATE", -9), ("CATEGORY", 8)], "URL", rows)
    }

    /// `2026-05-01 20:15`, in the time of this machine.
    package static func date(_ time: Int64) -> String {
        var (time, parts) = (time_t(time), tm())
        guard localtime_r(&time, &parts) != nil else { return "" }
        func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        // no trap: the system's calendar
        return "\(parts.tm_year + 1900)-\(digits(parts.tm_mon + 1))-\(digits(parts.tm_mday)) \(digits(parts.tm_hour)):\(digits(parts.tm_min))"
    }

    private static func progress(_ report: DownloadReport) -> String {
        guard let total = report.total, let percent = report.percent, report.state != .completed else { return ByteSize(bytes: report.bytes).description }
        return "\(percent) % of \(ByteSize(bytes: total))"
    }

    private struct Row {
        let cells: [String]
        let url: String
        let below: String?

        init(_ cells: [String], _ url: String, below: String?) { (self.cells, self.url, self.below) = (cells, url.printable, below) }
    }

    /// - Parameter columns: names and least widths, negative where numbers stand in them. They grow with what is in them.
    private func lines(_ columns: [(name: String, width: Int)], _ last: String, _ rows: [Row]) -> [String] {
        guard !rows.isEmpty else { return [] }
        let widths = columns.enumerated().map { index, column in
            let widest = rows.reduce(abs(column.width)) { max($0, $1.cells[index].columns) }  // no trap: a column's width
            return column.width < 0 ? -widest : widest
        }
        func line(_ cells: [String], _ last: String) -> String {
            let line = (zip(cells, widths).map { $0.padded(toColumns: $1) } + [last]).joined(separator: "  ")
            return width.map { line.cut(toColumns: $0, isUnicode: isUnicode) } ?? line
        }
        let indent = String(repeating: " ", count: abs(widths[0]) + 2)  // no trap: a column's width
        return [line(columns.map(\.name), last)] + rows.flatMap { row in
            [line(row.cells, row.url)] + (row.below.map { [indent + $0] } ?? [])
        }
    }
}
