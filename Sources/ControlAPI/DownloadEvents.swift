import CachePolicy
import Downloads

/// What one client is told of downloads: first how they are, then what has changed, a batch at a time.
///
/// | term | meaning |
/// |---|---|
/// | batch | what has changed since the one before, as it was at one moment; its last event bears the number that `Last-Event-ID` gives back |
/// | part | some of the events of a batch, as they are sent |
struct DownloadEvents {
    /// The most events of a part: more would keep a loop busy for too long.
    static let partCount = 64

    private let snapshots: DownloadSnapshots
    private let session: String
    private let mask: URLMask?
    /// nil for all.
    private let ids: Set<Int64>?
    /// Whether downloads are told at first that have ended already.
    private let hasEnded: Bool
    /// What has changed up to it is told, or in the batch.
    private var revision: UInt64 = 0
    /// Whether it is told of changes alone, and of which downloads it was told before is not known.
    private var goesOn = false
    /// Those whose end is still to be told.
    private var open: Set<Int64> = []
    /// As it was told last.
    private var summary: DownloadSummary?

    // What of the batch is still to be told.
    private var downloads: ArraySlice<DownloadReport> = []
    private var removed: ArraySlice<Int64> = []
    private var isSummaryDue = false

    /// - Parameters:
    ///   - hasEnded: whether downloads are told that have ended already. Those that are named are in any case.
    ///   - mask: nil where URLs are told as they are.
    ///   - lastID: of the last event that was told before; what is none of this session has no meaning.
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

    /// Begins a batch, when the one before is told.
    mutating func begin() {
        let (isFirst, ids, hasEnded) = (revision == 0 && summary == nil, ids, hasEnded)
        let changes = snapshots.changes(since: revision) {
            ids?.contains($0.id) ?? true && (!isFirst || hasEnded || !$0.state.hasEnded)
        }
        let listing = changes.listing
        revision = changes.revision
        downloads = listing.downloads[...]
        // What ended and was forgotten between two batches is no change.
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

    /// The next part of the batch; nil at its end.
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
        part.append(contentsOf: "event: \(name)\n".utf8)
        if isOver { part.append(contentsOf: "id: \(session)-\(revision)\n".utf8) }
        part.append(contentsOf: "data: ".utf8)
        part.append(contentsOf: try ControlJSON.line(value, masked: mask))
        part.append(UInt8(ascii: "\n"))
    }
}

/// A download that is forgotten, and whose end was not told.
package struct RemovedDownload: Codable, Sendable {
    package let id: Int64
}
