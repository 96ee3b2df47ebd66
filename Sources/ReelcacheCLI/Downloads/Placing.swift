import Administration
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Reelcache
import Synchronization

/// Writes downloads to their files, on threads of its own. Copying begins while the download runs; the file gets its
/// name when the download is complete.
final class Placing: Sendable {
    enum Outcome: Sendable {
        case placed(Download, FilePlacement.Placed)
        case failed(Download, String)
        /// The command was interrupted before the file was placed.
        case left(Download)
    }

    private struct State {
        var outcomes: [Outcome] = []
        /// Completed downloads without a file.
        var open: Set<Int64> = []
        var copies: [Int64: GrowingCopy] = [:]
        /// Threads that copy running downloads.
        var following = 0
        /// Completed downloads whose copying has not begun.
        var waiting: [Download] = []
        var working = 0
        var note: String?
        var proxy: RunningProxy
        /// Completed downloads whose files are to come from the next proxy.
        var cut: [Download] = []
    }

    private let placement: FilePlacement
    private let interruption: Interruption
    private let state: Mutex<State>
    /// How many downloads are copied while they run; the others are copied when they are complete.
    private static let mostGrowing = 8
    /// How many completed downloads are copied at once: they share one disk.
    private static let mostWorking = 1

    init(_ proxy: RunningProxy, _ placement: FilePlacement, _ interruption: Interruption) {
        (self.placement, self.interruption) = (placement, interruption)
        state = Mutex(State(proxy: proxy))
    }

    private var proxy: RunningProxy { state.withLock { $0.proxy } }

    /// Continues with the next proxy.
    func use(_ next: RunningProxy) {
        let cut = state.withLock { state in
            defer { state.cut = [] }
            state.proxy = next
            return state.cut
        }
        for report in cut { add(report) }
    }

    /// Whether another command's proxy ended before all files of completed downloads were placed.
    var isCut: Bool { state.withLock { !$0.cut.isEmpty } }

    /// Updates the state of a download whose file will be placed.
    func note(_ report: Download) {
        switch report.state {
        case .completed: add(report)
        case .downloading where report.bytes > 0 && report.total != nil: follow(report)
        case .failed, .cancelled: state.withLock { $0.copies.removeValue(forKey: report.id) }?.leave()
        case .waiting, .paused, .downloading: break
        }
    }

    /// The outcomes since the last call.
    func takeOutcomes() -> [Outcome] {
        state.withLock { state in
            defer { state.outcomes = [] }
            return state.outcomes
        }
    }

    /// Whether nothing is left to do or to report.
    var isIdle: Bool { state.withLock { $0.open.isEmpty && $0.outcomes.isEmpty && $0.following == 0 } }

    /// The progress of the copy that is running; nil for none.
    var note: String? { state.withLock { $0.note } }

    // MARK: While a download runs

    private func follow(_ report: Download) {
        let copy: GrowingCopy? = state.withLock { state in
            guard state.copies[report.id] == nil, state.copies.count < Self.mostGrowing else { return nil }
            let copy = GrowingCopy(state.proxy, placement)
            state.copies[report.id] = copy
            return copy
        }
        guard let copy, let url = try? OriginURL(url: report.urlText) else { return }
        state.withLock { $0.following += 1 }
        Thread.detachNewThread {
            defer { self.state.withLock { $0.following -= 1 } }
            let end = copy.run(url, isWanted: { !self.interruption.isRequested }) { report, lent, copied in
                try self.place(report, lent, copied)
            }
            switch end {
            case .placed(let report, let placed): self.show(.placed(report, placed))
            // Copied from the beginning.
            case .fallenBehind(let report): self.enqueue(report)
            case .left: break
            }
        }
    }

    // MARK: When a download is complete

    private func add(_ report: Download) {
        let copy = state.withLock { state in
            state.open.insert(report.id)
            return state.copies[report.id]
        }
        if copy?.complete(report) != true { enqueue(report) }
    }

    private func enqueue(_ report: Download) {
        let isIdle = state.withLock { state in
            state.waiting.append(report)
            guard state.working < Self.mostWorking else { return false }
            state.working += 1
            return true
        }
        if isIdle { Thread.detachNewThread { self.work() } }
    }

    private func work() {
        while let report = next() {
            let proxy = proxy
            let outcome = outcome(report, proxy)
            if case .failed = outcome, proxy.isBrief, !interruption.isRequested, proxy.isGone {
                state.withLock { state in
                    // The next one may have begun meanwhile.
                    if state.proxy.baseURL != proxy.baseURL { return state.waiting.append(report) }
                    state.cut.append(report)
                    state.open.remove(report.id)
                }
            } else {
                show(outcome)
            }
        }
    }

    private func next() -> Download? {
        state.withLock { state in
            if state.waiting.isEmpty { state.working -= 1 }
            return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
        }
    }

    private func show(_ outcome: Outcome) {
        let id =
            switch outcome {
            case .placed(let report, _), .failed(let report, _), .left(let report): report.id
            }
        state.withLock { state in
            state.outcomes.append(outcome)
            state.open.remove(id)
            state.copies[id] = nil
            state.note = nil
        }
    }

    private func outcome(_ report: Download, _ proxy: RunningProxy) -> Outcome {
        guard !interruption.isRequested else { return .left(report) }
        do {
            var placed: FilePlacement.Placed?
            let url = try OriginURL(url: report.urlText)
            let isWanted = { !self.interruption.isRequested }
            try proxy.withFile(url, isWanted: isWanted) { lent in
                let make = { try self.placement.begin() }
                placed = try lent.withDecoded(of: url, into: make, isWanted: isWanted) {
                    try self.place(report, $0, nil)
                }
            }
            guard let placed else {
                throw ControlError("the cache did not provide the file of \(report.urlText): try again")
            }
            return .placed(report, placed)
        } catch {
            if interruption.isRequested { return .left(report) }
            guard !report.isPinned, let error = error as? ControlError, error.isNotCached || error.missing != nil
            else { return .failed(report, "\(error)") }
            return .failed(
                report,
                "it was evicted before its file was placed: without --no-pin, downloads are kept until then"
            )
        }
    }

    private func place(_ report: Download, _ lent: LentFile, _ copied: GrowingCopy.Copied?) throws
        -> FilePlacement.Placed
    {
        var name = SafeFileName(report.fileName, url: report.urlText)
        if !name.hasExtension {
            name = SafeFileName(
                report.fileName, url: report.urlText,
                type: try proxy.resource(OriginURL(url: report.urlText)).resource.contentType)
        }
        name = name.titled(report.title)
        return try placement.place(lent.path, copied, length: lent.length, as: name, isHeld: lent.isHeld) { done in
            let note = "\(name): \(done.size) of \(lent.length.size) copied".printable
            state.withLock { $0.note = note }
            return !interruption.isRequested
        }
    }
}
