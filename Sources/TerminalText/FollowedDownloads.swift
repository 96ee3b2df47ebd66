import Downloads
import HTTPModel

/// Downloads that a command waits for or shows, each as it was told of it last.
package struct FollowedDownloads {
    /// What news are worth.
    package enum Change: Sendable, Equatable {
        case nothing
        /// More bytes, another rate.
        case progress
        /// Another state, or another reason to be in it.
        case state
    }

    private var entries: [Int64: Entry] = [:]
    private var nextPlace = 0
    /// Of those of which a drawing says more than that they are counted.
    private var activeIDs: Set<Int64> = []
    /// All of them counted together.
    package private(set) var totals = FollowedTotals()

    private struct Entry {
        /// When it came, before or after others.
        let place: Int
        var report: DownloadReport
    }

    package init(_ reports: [DownloadReport] = []) {
        for report in reports { _ = note(report) }
    }

    package mutating func note(_ report: DownloadReport) -> Change {
        let former = entries[report.id]
        let place = former?.place ?? nextPlace
        if former == nil { nextPlace += 1 }
        entries[report.id] = Entry(place: place, report: report)
        if let former { totals.remove(former.report) }
        totals.add(report)
        if report.state == .downloading || report.isRetried {
            activeIDs.insert(report.id)
        } else {
            activeIDs.remove(report.id)
        }
        guard let former = former?.report else { return .state }
        if former == report { return .nothing }
        return former.situation == report.situation ? .progress : .state
    }

    package mutating func forget(_ id: Int64) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        totals.remove(entry.report)
        activeIDs.remove(id)
    }

    package subscript(_ id: Int64) -> DownloadReport? { entries[id]?.report }

    package func contains(_ id: Int64) -> Bool { entries[id] != nil }

    /// In the order in which they came.
    package var all: [DownloadReport] { Self.ordered(Array(entries.values)) }

    package var open: [DownloadReport] { all.filter { !$0.state.hasEnded } }

    /// Those that run, and those that wait for their next attempt.
    var active: [DownloadReport] { Self.ordered(activeIDs.compactMap { entries[$0] }) }

    package var haveAllEnded: Bool { totals.openCount == 0 }

    private static func ordered(_ entries: [Entry]) -> [DownloadReport] {
        entries.sorted { $0.place < $1.place }.map(\.report)
    }
}

private struct Situation: Equatable {
    let state: DownloadState
    let message: String?
    let retryAt: Int64?
}

private extension DownloadReport {
    /// What a line is worth saying about. What went wrong before counts only as long as it is waited for the next
    /// attempt.
    var situation: Situation {
        Situation(
            state: state, message: isRetried || state == .failed ? message : nil, retryAt: isRetried ? retryAt : nil)
    }

    var isRetried: Bool { state == .waiting && retryAt != nil }
}

/// Several downloads counted together. Sizes are bytes.
package struct FollowedTotals: Sendable, Equatable {
    package private(set) var count = 0
    package private(set) var states: [DownloadState: Int] = [:]
    package var bytes: Int64 { Int64(clamping: sums.bytes) }
    /// How many have no total yet.
    private var unknownCount = 0
    /// Bytes per second.
    package var rate: Int64 { Int64(clamping: sums.rate) }
    private var sums = Sums()

    /// Wide enough for any number of downloads of any size.
    private struct Sums: Equatable {
        var bytes: Int128 = 0
        var total: Int128 = 0
        var rate: Int128 = 0
    }

    package init(_ reports: some Sequence<DownloadReport> = []) {
        for report in reports { add(report) }
    }

    mutating func add(_ report: DownloadReport) { count(report, 1) }

    /// One that was added, as it was then.
    mutating func remove(_ report: DownloadReport) { count(report, -1) }

    /// Of what has failed or was cancelled nothing is waited for, so its bytes do not count.
    private mutating func count(_ report: DownloadReport, _ sign: Int64) {
        count += Int(sign)
        let same = self[report.state] + Int(sign)
        states[report.state] = same == 0 ? nil : same
        guard report.state != .failed, report.state != .cancelled else { return }
        sums.bytes +|= Int128(sign) *| Int128(report.bytes)
        sums.total +|= Int128(sign) *| Int128(report.total ?? 0)
        unknownCount += report.total == nil ? Int(sign) : 0
        sums.rate +|= Int128(sign) *| Int128(report.state == .downloading ? report.rate ?? 0 : 0)
    }

    package subscript(_ state: DownloadState) -> Int { states[state] ?? 0 }

    /// How many have not ended.
    var openCount: Int { self[.waiting] + self[.downloading] + self[.paused] }

    /// nil while it is unknown of one.
    package var total: Int64? { unknownCount == 0 ? Int64(clamping: sums.total) : nil }

    /// Seconds; nil while that cannot be told.
    package var eta: Int64? {
        guard let total, rate > 0, total > bytes else { return nil }
        return (total -| bytes +| (rate -| 1)) / rate // no trap: the rate is above 0
    }
}
