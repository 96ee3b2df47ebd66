import CachePolicy
import ControlAPI
import Downloads
import EventIO
import Synchronization

/// The events of downloads: first the current state, then the changes, a part at a time. Each is written once for all
/// clients, on a thread that may block. From any thread.
///
/// | term | meaning |
/// |---|---|
/// | batch | the changes since the previous one; its last event has the ID that a client returns in `Last-Event-ID` |
/// | part | some of the events of a batch, sent together |
final class DownloadEvents: Sendable {
    /// What a client wants.
    struct Filter: Sendable, Hashable {
        let session: String
        /// nil for all.
        let ids: Set<Int64>?
        let showsSecrets: Bool
    }

    /// How far a client is.
    struct Cursor: Sendable, Hashable {
        fileprivate(set) var reading: DownloadReading
        /// The number of the summary that it was sent last.
        fileprivate var summary: UInt64 = 0
    }

    typealias Part = EventBody<Cursor>.Part
    private typealias Request = (filter: Filter, cursor: Cursor, then: @Sendable (Part?) -> Void)

    private let snapshots: DownloadSnapshots
    private let policy: Current<ProxyPolicy>
    private let perform: @Sendable (@escaping @Sendable () -> Void) -> Bool
    private let state = Mutex(State())

    private struct State {
        var isWriting = false
        var waiting: [Request] = []
        var watchers = 0
        /// Taken out while something is written.
        var written = Written()
    }

    /// - Parameter perform: runs work on a thread that may block, and returns whether it will.
    init(
        _ snapshots: DownloadSnapshots, _ policy: Current<ProxyPolicy>,
        perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) {
        (self.snapshots, self.policy, self.perform) = (snapshots, policy, perform)
    }

    /// How many lines of JSON were written for downloads.
    var writtenCount: Int { state.withLock { $0.written.count } }

    // MARK: For a client

    /// - Parameters:
    ///   - hasEnded: whether downloads that have ended already are wanted; those that are named are in any case.
    ///   - lastID: the ID of the last event that the client has received; ignored if it is from another session.
    func begin(_ filter: Filter, hasEnded: Bool, lastID: String?) -> Cursor {
        let prefix = filter.session + "-"
        let last = lastID.flatMap { $0.hasPrefix(prefix) ? UInt64($0.dropFirst(prefix.count)) : nil }
        return Cursor(
            reading: last.flatMap(snapshots.reading(from:))
                ?? snapshots.reading(hasEnded: hasEnded || filter.ids != nil, isNamed: filter.ids != nil))
    }

    func watch(_ wake: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        state.withLock { $0.watchers += 1 }
        let id = snapshots.watch(wake)
        return { [self] in
            snapshots.unwatch(id)
            state.withLock { state in
                state.watchers -= 1
                if state.watchers == 0 { state.written.forget() }
            }
        }
    }

    /// Writes what follows.
    /// - Parameter then: called on any thread; with nil if the client is so late that it cannot be told what was
    ///   forgotten, or if the cache is being closed.
    func part(_ filter: Filter, after cursor: Cursor, then: @escaping @Sendable (Part?) -> Void) {
        let begins = state.withLock { state in
            state.waiting.append((filter, cursor, then))
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { run() }
    }

    // MARK: Writing

    private func run() {
        if perform({ self.write() }) { return }
        for request in end() { request.then(nil) }
    }

    private func end() -> [Request] {
        state.withLock { state in
            state.isWriting = false
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Writes for all who wait; for those who come meanwhile later, so that other work has its turn.
    private func write() {
        var (requests, written) = state.withLock { state in
            defer { (state.waiting, state.written) = ([], Written()) }
            return (state.waiting, state.written)
        }
        let mask = policy.value.mask
        for request in requests {
            // A report has nothing that JSON cannot express.
            request.then(try? written.part(request.filter, after: request.cursor, of: snapshots, mask))
        }
        requests = []
        let continues = state.withLock { state in
            state.written = written
            if state.watchers == 0 { state.written.forget() }
            state.isWriting = !state.waiting.isEmpty
            return state.isWriting
        }
        if continues { run() }
    }
}

/// What was written for clients, and may be wanted by others.
private struct Written {
    /// The most events of a part, and about the most bytes.
    private static let (mostEvents, mostBytes) = (64, 64 << 10)
    /// The most bytes of lines that are kept.
    private static let mostKept = 16 << 20
    private static let mostParts = 8

    /// Downloads as JSON, with and without secrets.
    private var lines: [Bool: [Int64: (revision: UInt64, line: [UInt8])]] = [:]
    private var kept = 0
    private var mask: URLMask?
    /// The latest parts, by what they follow.
    private var parts: [(key: Key, part: DownloadEvents.Part)] = []
    private var summary: DownloadTotals?
    /// Counts summaries.
    private var summaryNumber: UInt64 = 0
    private(set) var count = 0

    private struct Key: Hashable {
        let filter: DownloadEvents.Filter
        let cursor: DownloadEvents.Cursor
        let (revision, summary): (UInt64, UInt64)
    }

    mutating func forget() { (lines, kept, parts) = ([:], 0, []) }

    mutating func part(
        _ filter: DownloadEvents.Filter, after cursor: DownloadEvents.Cursor, of snapshots: DownloadSnapshots,
        _ mask: URLMask
    ) throws -> DownloadEvents.Part? {
        if self.mask != mask { forget() }
        self.mask = mask
        guard var step = snapshots.step(cursor.reading, of: filter.ids, atMost: Self.mostEvents) else { return nil }
        let summary = snapshots.summary
        if summary != self.summary { (self.summary, summaryNumber) = (summary, summaryNumber + 1) } // no trap: a count
        let key = Key(filter: filter, cursor: cursor, revision: step.revision, summary: summaryNumber)
        if let known = parts.first(where: { $0.key == key }) { return known.part }

        let urlMask = filter.showsSecrets ? nil : mask
        var (events, bytes): ([(name: String, line: [UInt8])], Int) = ([], 0)
        for (revision, report) in step.changed {
            if bytes > Self.mostBytes { break }
            let line = try line(of: report, revision, showsSecrets: filter.showsSecrets, urlMask)
            events.append(("download", line))
            bytes += line.count
            if events.count < step.changed.count, bytes > Self.mostBytes { step.end(at: revision) }
        }
        for id in step.removed { events.append(("removed", try ControlJSON.line(RemovedDownload(id: id)))) }
        var next = cursor
        next.reading = step.reading
        if step.isLast, cursor.summary != summaryNumber {
            next.summary = summaryNumber
            events.append(("summary", try ControlJSON.line(summary, masked: urlMask)))
        }
        let text = events.indices.flatMap { index in
            let isEnd = step.isLast && index == events.count - 1
            return EventText.event(
                events[index].name, id: isEnd ? "\(filter.session)-\(step.revision)" : nil, events[index].line)
        }
        let part = DownloadEvents.Part(
            text: text.isEmpty ? nil : EventText(text), cursor: next, isLast: step.isLast)
        parts = parts.suffix(Self.mostParts - 1) + [(key, part)]
        return part
    }

    private mutating func line(
        of report: Download, _ revision: UInt64, showsSecrets: Bool, _ mask: URLMask?
    ) throws -> [UInt8] {
        if let known = lines[showsSecrets]?[report.id], known.revision == revision { return known.line }
        let line = try ControlJSON.line(report, masked: mask)
        count += 1
        if kept > Self.mostKept { (lines, kept) = ([:], 0) }
        kept += line.count - (lines[showsSecrets]?[report.id]?.line.count ?? 0)
        lines[showsSecrets, default: [:]][report.id] = (revision, line)
        return line
    }
}
