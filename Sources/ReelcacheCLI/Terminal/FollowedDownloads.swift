import Downloads
import Foundation
import HTTPModel

/// The downloads that a command waits for or shows, each in its last known state.
package struct FollowedDownloads {
    /// What has changed.
    package enum Change: Sendable, Equatable {
        case nothing
        /// More bytes, another rate.
        case progress
        /// Another state, or another reason for it.
        case state
    }

    private var entries: [Int64: Entry] = [:]
    private var nextPlace = 0
    /// Downloads with lines of their own on the screen; the others are only counted.
    private var activeIDs: Set<Int64> = []
    /// Totals of all downloads.
    package private(set) var totals = FollowedTotals()

    private struct Entry {
        /// Its place in the order of arrival.
        let place: Int
        var report: Download
    }

    package init(_ reports: [Download] = []) {
        for report in reports { _ = note(report) }
    }

    package mutating func note(_ report: Download) -> Change {
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

    package subscript(_ id: Int64) -> Download? { entries[id]?.report }

    package func contains(_ id: Int64) -> Bool { entries[id] != nil }

    /// In the order of arrival.
    package var all: [Download] { Self.ordered(Array(entries.values)) }

    package var open: [Download] { all.filter { !$0.state.hasEnded } }

    /// Running downloads, and those that wait for their next attempt.
    var active: [Download] { Self.ordered(activeIDs.compactMap { entries[$0] }) }

    package var haveAllEnded: Bool { totals.openCount == 0 }

    private static func ordered(_ entries: [Entry]) -> [Download] {
        entries.sorted { $0.place < $1.place }.map(\.report)
    }
}

private struct Situation: Equatable {
    let state: Download.State
    let message: String?
    let retryDate: Date?
}

private extension Download {
    /// The state, and the reason for it: a change of these gets a line of its own. An earlier error counts only while
    /// the download waits for its next attempt.
    var situation: Situation {
        Situation(
            state: state, message: isRetried || state == .failed ? message : nil, retryDate: isRetried ? retryDate : nil
        )
    }

    var isRetried: Bool { state == .waiting && retryDate != nil }
}

/// Totals of several downloads. Sizes are bytes.
package struct FollowedTotals: Sendable, Equatable {
    package private(set) var count = 0
    package private(set) var states: [Download.State: Int] = [:]
    /// How many the schedule or a cap holds back, and how many wait long for their origin.
    private var heldByLimits = 0, heldByOrigin = 0
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

    package init(_ reports: some Sequence<Download> = []) {
        for report in reports { add(report) }
    }

    mutating func add(_ report: Download) { count(report, 1) }

    /// A download that was added, in its state at the time.
    mutating func remove(_ report: Download) { count(report, -1) }

    /// Bytes of failed and cancelled downloads do not count, because nothing more of them is expected.
    private mutating func count(_ report: Download, _ sign: Int64) {
        count += Int(sign)
        let same = self[report.state] + Int(sign)
        states[report.state] = same == 0 ? nil : same
        if report.isHeld == true {
            if report.retryDate == nil { heldByLimits += Int(sign) } else { heldByOrigin += Int(sign) }
        }
        guard report.state != .failed, report.state != .cancelled else { return }
        sums.bytes +|= Int128(sign) *| Int128(report.bytes)
        sums.total +|= Int128(sign) *| Int128(report.total ?? 0)
        unknownCount += report.total == nil ? Int(sign) : 0
        sums.rate +|= Int128(sign) *| Int128(report.state == .downloading ? report.bytesPerSecond ?? 0 : 0)
    }

    package subscript(_ state: Download.State) -> Int { states[state] ?? 0 }

    /// How many are held by their origin, or also by the schedule and the caps.
    func heldCount(leavesHeld: Bool) -> Int { heldByOrigin + (leavesHeld ? heldByLimits : 0) }

    /// How many have not ended.
    var openCount: Int { self[.waiting] + self[.downloading] + self[.paused] }

    /// nil while the total of any download is unknown.
    package var total: Int64? { unknownCount == 0 ? Int64(clamping: sums.total) : nil }

    /// Seconds; nil while unknown.
    package var eta: Int64? {
        guard let total, rate > 0, total > bytes else { return nil }
        return (total -| bytes +| (rate -| 1)) / rate // no trap: the rate is above 0
    }
}
