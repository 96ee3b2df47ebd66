import CachePolicy
import Downloads
import Foundation
import Reelcache
import Synchronization

/// Gives finished downloads files of their own, on a thread of its own: a copy takes its time, and news are read meanwhile.
final class Placing: Sendable {
    enum Outcome: Sendable {
        case placed(DownloadReport, FilePlacement.Placed)
        case failed(DownloadReport, String)
        /// The command was interrupted before.
        case left(DownloadReport)
    }

    private struct State {
        var waiting: [DownloadReport] = []
        var outcomes: [Outcome] = []
        var isWorking = false
        var note: String?
    }

    private let proxy: RunningProxy
    private let placement: FilePlacement
    private let interruption: Interruption
    private let state = Mutex(State())

    init(_ proxy: RunningProxy, _ placement: FilePlacement, _ interruption: Interruption) {
        (self.proxy, self.placement, self.interruption) = (proxy, placement, interruption)
    }

    func add(_ report: DownloadReport) {
        let isIdle = state.withLock { state in
            state.waiting.append(report)
            defer { state.isWorking = true }
            return !state.isWorking
        }
        if isIdle { Thread.detachNewThread { self.work() } }
    }

    /// What has been done since this was asked.
    func takeOutcomes() -> [Outcome] {
        state.withLock { state in
            defer { state.outcomes = [] }
            return state.outcomes
        }
    }

    var isIdle: Bool { state.withLock { !$0.isWorking && $0.outcomes.isEmpty } }

    /// What is being copied; nil where nothing is.
    var note: String? { state.withLock { $0.note } }

    private func work() {
        while let report = next() {
            let outcome = outcome(report)
            state.withLock { state in
                state.outcomes.append(outcome)
                state.note = nil
            }
        }
    }

    private func next() -> DownloadReport? {
        state.withLock { state in
            state.isWorking = !state.waiting.isEmpty
            return state.isWorking ? state.waiting.removeFirst() : nil
        }
    }

    private func outcome(_ report: DownloadReport) -> Outcome {
        guard !interruption.isWished else { return .left(report) }
        do { return .placed(report, try place(report)) } catch {
            if interruption.isWished { return .left(report) }
            guard !report.isPinned, let error = error as? CacheAccessError, error.isNotCached || error.missing != nil else { return .failed(report, "\(error)") }
            return .failed(report, "it was no longer cached when its file was to be placed: leave --no-pin away, so that it is kept until then")
        }
    }

    private func place(_ report: DownloadReport) throws -> FilePlacement.Placed {
        let url = try OriginURL(url: report.url)
        var name = SafeFileName(report.fileName, url: report.url)
        if !name.hasExtension { name = SafeFileName(report.fileName, url: report.url, type: try proxy.resource(url).resource.type) }
        var placed: FilePlacement.Placed?
        try proxy.withFile(url, isWanted: { !self.interruption.isWished }) { lent in
            placed = try self.placement.place(lent.path, length: lent.length, as: name, isHeld: lent.isHeld) { done in
                let note = "\(name): \(done.size) of \(lent.length.size) copied".printable
                self.state.withLock { $0.note = note }
                return !self.interruption.isWished
            }
        }
        guard let placed else { throw CacheAccessError("the file of \(report.url) was not given; try again") }
        return placed
    }
}
