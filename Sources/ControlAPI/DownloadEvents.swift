import CachePolicy
import Downloads

/// The events of downloads for one client: first the current state, then the changes, a batch at a time.
///
/// | term | meaning |
/// |---|---|
/// | batch | the changes since the previous batch, as of one moment; its last event has the ID that the client returns in `Last-Event-ID` |
/// | part | some of the events of a batch, sent together |
struct DownloadEvents: EventBatches {
    /// The most events of a part; more would keep a loop busy for too long.
    static let partCount = 64

    private let snapshots: DownloadSnapshots
    private let session: String
    private let mask: URLMask?
    /// nil for all.
    private let ids: Set<Int64>?
    /// Whether the first batch includes ended downloads.
    private let hasEnded: Bool
    /// The revision up to which all changes have been sent, or are in the batch.
    private var revision: UInt64 = 0
    /// Whether the client resumes an earlier stream: it gets changes only, and which downloads it has been sent is
    /// not known.
    private var goesOn = false
    /// The downloads whose end has not been sent yet.
    private var open: Set<Int64> = []
    /// The summary last sent.
    private var summary: DownloadSummary?

    // The rest of the batch.
    private var downloads: ArraySlice<DownloadReport> = []
    private var removed: ArraySlice<Int64> = []
    private var isSummaryDue = false

    /// - Parameters:
    ///   - hasEnded: whether to include ended downloads; downloads named in `ids` are included in any case.
    ///   - mask: nil to show URLs unmasked.
    ///   - lastID: the ID of the last event that the client has received; ignored if it is from another session.
    init(
        _ snapshots: DownloadSnapshots, session: String, ids: Set<Int64>?, hasEnded: Bool, lastID: String?,
        mask: URLMask?
    ) {
        self.mask = mask
        (self.snapshots, self.session, self.ids) = (snapshots, session, ids)
        self.hasEnded = hasEnded || ids != nil
        open = ids ?? []
        guard let revision = lastID.flatMap({ Self.revision($0, of: session) }), revision <= snapshots.revision,
            snapshots.changes(since: revision, where: { _ in false }).removed != nil
        else { return }
        self.revision = revision
        goesOn = true
    }

    private static func revision(_ id: String, of session: String) -> UInt64? {
        guard id.hasPrefix(session + "-") else { return nil }
        return UInt64(id.dropFirst(session.count + 1))
    }

    /// Begins a batch, after the previous one was sent.
    mutating func begin() {
        let (isFirst, ids, hasEnded) = (revision == 0 && summary == nil, ids, hasEnded)
        let changes = snapshots.changes(since: revision) {
            ids?.contains($0.id) ?? true && (!isFirst || hasEnded || !$0.state.hasEnded)
        }
        let listing = changes.listing
        revision = changes.revision
        downloads = listing.downloads[...]
        // A download that ended and was dropped from the history between two batches is not a change.
        if goesOn, let forgotten = changes.removed {
            removed = forgotten.filter { ids?.contains($0) ?? true }[...]
        } else {
            removed =
                (isFirst
                ? open.filter { snapshots[$0] == nil }
                : (changes.removed ?? open.filter { snapshots[$0] == nil }).filter(open.contains))[...]
        }
        removed.sort()
        for report in downloads { if report.state.hasEnded { open.remove(report.id) } else { open.insert(report.id) } }
        open.subtract(removed)
        isSummaryDue = summary != listing.summary
        summary = listing.summary
    }

    /// The next part of the batch; nil at the end of the batch.
    mutating func next() throws -> [UInt8]? {
        var part: [UInt8] = []
        for _ in 0..<Self.partCount {
            if let report = downloads.popFirst() {
                try append("download", report, to: &part)
            } else if let id = removed.popFirst() {
                try append("removed", RemovedDownload(id: id), to: &part)
            } else if isSummaryDue {
                isSummaryDue = false
                try append("summary", summary, to: &part)
            }
        }
        return part.isEmpty ? nil : part
    }

    private var isOver: Bool { downloads.isEmpty && removed.isEmpty && !isSummaryDue }

    private func append(_ name: String, _ value: some Encodable, to part: inout [UInt8]) throws {
        part += EventText.event(
            name, id: isOver ? "\(session)-\(revision)" : nil, try ControlJSON.line(value, masked: mask))
    }

    func watch(_ wake: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let id = snapshots.watch(wake)
        return { [snapshots] in snapshots.unwatch(id) }
    }
}

/// A download that the history has dropped, and whose end was not sent.
package struct RemovedDownload: Codable, Sendable {
    package let id: Int64
}
