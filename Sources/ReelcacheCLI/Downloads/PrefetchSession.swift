import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import HTTPModel
import Reelcache

/// Orders downloads for a command, and waits until they have ended.
final class PrefetchSession {
    private var proxy: RunningProxy
    private let successor: ProxyConfiguration?
    private let display: DownloadDisplay
    private let interruption: Interruption
    /// Whether an interrupt pauses the downloads.
    private let pausesAtEnd: Bool
    private let placing: Placing?
    private var followed = FollowedDownloads()
    /// The file of each finished download.
    private var files: [Int64: File] = [:]
    private var isOffline = false
    /// Whether the schedule or a cap keeps all downloads waiting, and until when.
    private var hold: Hold?
    /// Whether the schedule and the caps are for others.
    private var isAtOnce = false
    /// Whether it ends although the schedule or a cap holds downloads back.
    private let leavesHeld: Bool

    private enum File { case wanted, placed, failed }

    private struct Hold: Equatable {
        /// nil if it does not end by itself.
        let until: Date?
    }

    /// - Parameters:
    ///   - successor: with which this process runs the proxy once that of another command has ended; nil if it ends
    ///     then, too.
    ///   - pausesAtEnd: whether an interrupt pauses the downloads, so that only the same command continues them;
    ///     otherwise they stay in the queue.
    ///   - leavesHeld: whether to end once the schedule or a cap holds back all downloads that have not ended; they
    ///     stay in the queue.
    init(
        _ proxy: RunningProxy, _ display: DownloadDisplay, _ placement: FilePlacement?, _ interruption: Interruption,
        successor: ProxyConfiguration?, pausesAtEnd: Bool = true, leavesHeld: Bool = false
    ) {
        (self.proxy, self.display, self.interruption, self.successor) = (proxy, display, interruption, successor)
        (self.pausesAtEnd, self.leavesHeld) = (pausesAtEnd, leavesHeld)
        placing = placement.map { Placing(proxy, $0, interruption) }
    }

    /// Orders the downloads, and waits until all have ended.
    /// - Throws: `ExitCode` if not all have completed.
    func run(_ orders: [DownloadOrder]) throws {
        isAtOnce = orders.allSatisfy(\.isAtOnce)
        try reportOthers(besides: Set(orders.map(\.url.absolute)))
        try follow(proxy.add(orders))
    }

    /// Waits until all downloads in the queue have ended; those that are held are tried at once. Paused ones stay so.
    func continueQueue() throws {
        var waiting = try proxy.waitingDownloads()
        guard !waiting.isEmpty else { return display.say("no download is waiting") }
        let held = waiting.filter { $0.retryDate != nil }.map(\.id)
        if !held.isEmpty {
            let retried = try proxy.change(.possible(held), DownloadChange(action: .retry))
            let byID = Dictionary(retried.map { ($0.id, $0) }) { $1 }
            waiting = waiting.map { byID[$0.id] ?? $0 }
        }
        try follow(waiting)
    }

    /// Waits until downloads that were ordered before have ended.
    /// - Throws: `ExitCode` if not all have completed.
    func follow(_ reports: [Download]) throws {
        defer { display.clear() }
        for report in reports { note(report) }
        try finish()
    }

    private func finish() throws {
        do {
            try watch()
            if interruption.isRequested, pausesAtEnd { try pause() }
            try finishFiles()
        } catch is ProxyEnd {
            return try succeed()
        }
        display.clear()
        try end()
    }

    /// The proxy has ended.
    private struct ProxyEnd: Error {}

    /// Continues with the next proxy, which may be this process's: the downloads are in the queue.
    private func succeed() throws {
        guard let successor, proxy.isBrief, !interruption.isRequested else { throw gone }
        try successor.withProxy(for: .downloading, isWanted: { !self.interruption.isRequested }) { next in
            next.own?.cache.downloader.start()
            try next.checkOnline(successor)
            proxy = next
            placing?.use(next)
            try finish()
        }
    }

    /// Warns about downloads that an earlier process left behind: they continue while this one runs.
    private func reportOthers(besides urls: Set<String>) throws {
        guard proxy.isOwn else { return }
        let others = try proxy.waitingDownloads().filter { !urls.contains($0.urlText) }
        if !others.isEmpty {
            display.warn(
                "\(others.count.of("download")) left in the queue continue\(others.count == 1 ? "s" : "") as well")
        }
    }

    // MARK: News

    /// The followed downloads that are tried again much later, as their origin fails, and with `leavesHeld` those that
    /// the schedule or a cap holds back.
    private var held: [Download] {
        followed.open.filter { $0.isHeld == true && (leavesHeld || $0.retryDate != nil) }
    }

    /// Whether nothing is left to wait for.
    private var isDone: Bool {
        followed.haveAllEnded
            || followed.totals.heldCount(leavesHeld: leavesHeld) == followed.totals.openCount
    }

    private func watch() throws {
        guard !isDone else { return }
        do {
            try proxy.watchDownloads(followed.open.map(\.id), isWanted: { self.continues() }) { news in
                switch news {
                case .download(let report) where self.followed.contains(report.id): self.note(report)
                case .removed(let id): self.noteRemoval(id)
                case .summary(let summary): self.note(summary)
                case .download: break
                }
                return self.continues() && !self.isDone
            }
        } catch let error as ControlError {
            guard !interruption.isRequested else { return }
            throw proxy.isGone ? ProxyEnd() : error
        }
        if !interruption.isRequested && !isDone { throw ProxyEnd() }
    }

    private var gone: ControlError {
        let count = followed.open.count
        let what =
            count == 1 ? "1 download stays queued and continues" : "\(count.of("download")) stay queued and continue"
        return ControlError(
            "the proxy at \(proxy.baseURL) has ended: \(what) when a proxy is started, or with the same command")
    }

    private func continues() -> Bool {
        reportFiles()
        display.draw(followed, note: placing?.note)
        return !interruption.isRequested
    }

    private func note(_ report: Download) {
        let change = followed.note(report)
        let isOthers = report.state == .paused && !interruption.isRequested
        let remark = isOthers ? ", by someone else; resume it with: reelcache downloads resume \(report.id)" : ""
        display.show(report, change, isError: true, remark: remark)
        if change == .state, report.state == .completed { reportContent(report) }
        guard let placing, change != .nothing, files[report.id] == nil else { return }
        guard report.segments == nil else { return leave(report, placing) }
        if report.state == .completed { files[report.id] = .wanted }
        placing.note(report)
    }

    /// Reports that a stream has no file to place.
    private func leave(_ report: Download, _ placing: Placing) {
        guard report.state == .completed else { return }
        files[report.id] = .failed
        var left = report
        left.state = .failed
        placing.note(left)
        let reason = "--output cannot place a stream: write it to a file with reelcache export"
        display.event("file", FileEvent(id: report.id, url: report.urlText, error: reason))
        display.warn("\(report.urlText): \(reason)")
    }

    private struct HoldEvent: Encodable {
        let hold: String?
        let heldUntil: Date?
    }

    private func note(_ summary: DownloadTotals) {
        noteHold(summary)
        guard summary.isOffline != isOffline, !followed.haveAllEnded else { return }
        isOffline = summary.isOffline
        display.event("offline", ["is_offline": isOffline])
        if isOffline {
            display.warn(
                "waiting: the proxy at \(proxy.baseURL) is offline; downloads continue when offline is false in its configuration; \(interrupting)"
            )
        } else {
            display.say("the proxy at \(proxy.baseURL) is no longer offline")
        }
    }

    /// Reports when the schedule or a cap begins to hold the downloads back, and when it lets them run.
    private func noteHold(_ summary: DownloadTotals) {
        let isWaiting = followed.open.contains { $0.state == .waiting || $0.state == .downloading }
        // Its text changes at midnight.
        let now = summary.hold.map { _ in Hold(until: summary.heldUntil) }
        guard !isAtOnce, now != hold, isWaiting else { return }
        hold = now
        display.event("hold", HoldEvent(hold: summary.hold, heldUntil: summary.heldUntil))
        guard let reason = summary.hold else {
            return display.say("the schedule and the caps let downloads run again")
        }
        if !leavesHeld { display.warn("waiting: \(reason); to download now, use --at-once; \(interrupting)") }
    }

    private var interrupting: String {
        pausesAtEnd ? "Ctrl-C pauses them, and the same command continues" : "Ctrl-C leaves them in the queue"
    }

    /// Counts a download as failed that ended and was cleared from the history before its outcome was seen.
    private func noteRemoval(_ id: Int64) {
        guard var report = followed[id], !report.state.hasEnded else { return }
        (report.state, report.message) = (
            .failed, "the history was cleared before its outcome was known: reelcache show lists what is cached"
        )
        note(report)
    }

    // MARK: Files

    private struct FileEvent: Encodable {
        let id: Int64
        let url: String
        var file: String?
        var bytes: Int64?
        var method: String?
        var error: String?
    }

    private func reportFiles() {
        for outcome in placing?.takeOutcomes() ?? [] {
            switch outcome {
            case .placed(let report, let placed):
                files[report.id] = .placed
                let method = placed.method?.rawValue ?? "there"
                display.event(
                    "file",
                    FileEvent(
                        id: report.id, url: report.urlText, file: placed.path, bytes: placed.bytes, method: method))
                display.say(
                    placed.method == nil
                        ? "\(placed.path.printable) already exists with the same content"
                        : "placed \(placed.path.printable)")
            case .failed(let report, let reason):
                files[report.id] = .failed
                display.event("file", FileEvent(id: report.id, url: report.urlText, error: reason))
                display.warn("\(report.urlText): \(reason)")
            case .left(let report):
                display.event(
                    "file", FileEvent(id: report.id, url: report.urlText, error: ControlError.interrupted.description))
            }
        }
    }

    private static let stepMicroseconds: UInt32 = 50_000

    private func finishFiles() throws {
        guard let placing else { return }
        while !placing.isIdle {
            _ = continues()
            usleep(Self.stepMicroseconds)
        }
        reportFiles()
        if placing.isCut { throw ProxyEnd() }
    }

    // MARK: The end

    /// Pauses the downloads, so that the same command continues them: otherwise they would continue when the next proxy
    /// starts.
    private func pause() throws {
        let open = followed.open
        // The ids may take several requests. Running downloads come last, so that no waiting one starts in their place.
        let ids = (open.filter { $0.state != .downloading } + open.filter { $0.state == .downloading }).map(\.id)
        guard !ids.isEmpty else { return }
        do {
            let reports = try proxy.change(.possible(ids), DownloadChange(action: .pause))
            for report in lookedUp(reports) { note(report) }
            for id in Set(ids).subtracting(reports.map(\.id)) { noteRemoval(id) }
        } catch let error as ControlError {
            throw ControlError("the downloads cannot be paused: \(error)")
        }
    }

    private static let mostLookedUp = 100

    /// Adds how much is cached to downloads that had not started, and so do not have that number.
    private func lookedUp(_ reports: [Download]) -> [Download] {
        var left = Self.mostLookedUp
        return reports.map { report in
            guard report.state == .paused, report.total == nil, report.bytes == 0, report.segments == nil, left > 0
            else { return report }
            left -= 1
            guard let url = try? OriginURL(url: report.urlText), let cached = try? proxy.resource(url).resource else {
                return report
            }
            var report = report
            (report.bytes, report.total) = (
                min(cached.cachedBytes, report.wantedFirst ?? .max), min(cached.length, report.wantedFirst ?? .max)
            )
            return report
        }
    }

    // MARK: Content

    private struct NoteEvent: Encodable {
        let id: Int64
        let url: String
        let note: String
    }

    /// Warns if the received content is not media.
    private func reportContent(_ report: Download) {
        guard report.segments == nil, let url = try? OriginURL(url: report.urlText), ReceivedContent.mayBeNoMedia(url),
            let type = try? proxy.resource(url).resource.contentType,
            let note = ReceivedContent(type: type, url)?.text(type)
        else { return }
        display.event("note", NoteEvent(id: report.id, url: report.urlText, note: note))
        display.warn("\(report.urlText): \(note)")
    }

    private struct EndEvent: Encodable {
        let completed: Int
        let failed: Int
        let paused: Int
        /// Completed downloads whose file was not placed, because the command was interrupted; nil without `--output`.
        let unplaced: Int?
        /// Downloads that stay in the queue because their origin fails, the schedule or a cap holds them back; nil for
        /// none.
        let held: Int?
    }

    private func end() throws {
        let all = followed.all
        let completed = all.filter { $0.state == .completed && files[$0.id] ?? .placed == .placed }
        let unplaced = files.values.count { $0 == .wanted }
        let paused = followed.totals[.paused]
        let held = self.held
        let left = interruption.isRequested ? followed.totals.openCount - paused : held.count
        let failed = all.count - completed.count - unplaced - paused - left
        display.event(
            "end",
            EndEvent(
                completed: completed.count, failed: failed, paused: paused, unplaced: placing == nil ? nil : unplaced,
                held: held.isEmpty ? nil : held.count))
        if interruption.isRequested && paused + unplaced > 0 {
            var parts: [String] = []
            if paused > 0 { parts.append("\(paused.of("download")) \(paused == 1 ? "is" : "are") paused") }
            if unplaced > 0 {
                parts.append("\(unplaced.of("completed file")) \(unplaced == 1 ? "is" : "are") not placed")
            }
            display.warn("interrupted: \(parts.joined(separator: ", ")); the same command continues")
            throw ExitCode(1)
        }
        if interruption.isRequested && left > 0 {
            display.warn("interrupted: \(left.of("download")) \(left == 1 ? "stays" : "stay") in the queue")
            throw ExitCode(1)
        }
        let bytes = completed.reduce(0) { $0 +| $1.bytes }
        if all.count > 1 {
            display.say("\(completed.count.grouped) of \(all.count.of("download")) completed, \(bytes.size)")
        }
        for (reason, downloads) in Dictionary(grouping: held, by: \.reason).sorted(by: { $0.key < $1.key }) {
            let verb = downloads.count == 1 ? "stays" : "stay"
            // Without a running proxy, nothing is tried once this has ended.
            let next =
                proxy.isOwn ? nil : downloads.min { $0.retryDate ?? .distantFuture < $1.retryDate ?? .distantFuture }
            let reason = next?.attempt(now: Int64(time(nil))) ?? reason
            let line = "\(downloads.count.of("download")) \(verb) in the queue: \(reason)"
            if downloads.contains(where: { $0.retryDate != nil }) { display.warn(line) } else { display.say(line) }
        }
        if held.contains(where: { $0.retryDate != nil }) {
            display.say("a running proxy tries again by itself; otherwise repeat the command")
        }
        if failed > 0 || held.contains(where: { $0.retryDate != nil }) { throw ExitCode(completed.isEmpty ? 1 : 3) }
    }
}

extension RunningProxy {
    /// Whether it answers no more.
    var isGone: Bool { (try? get("/healthz")) == nil }

    /// Whether it ends with a command, so that what is left in the queue then waits for another one.
    var endsWithACommand: Bool { isOwn || isBrief }

    /// - Throws: `ControlError` if this process is to download, and may contact no origin.
    func checkOnline(_ configuration: ProxyConfiguration) throws {
        guard configuration.isOffline && isOwn else { return }
        throw ControlError(
            "offline is set, so no origin may be contacted: set it to false in the configuration file, or use --detach")
    }

    /// Those that wait or run.
    func waitingDownloads() throws -> [Download] {
        try downloads().downloads.filter { $0.state == .waiting || $0.state == .downloading }
    }
}
