import CachePolicy
import Synchronization

/// The state of all downloads at this moment: written by the manager, and readable from any thread without waiting for
/// it.
package final class DownloadSnapshots: Sendable {
    private let state = Mutex(State())

    private struct State {
        var revision: UInt64 = 0
        private(set) var entries: [Int64: Entry] = [:]
        /// The downloads of each URL, in no order.
        private(set) var idsByURL: [OriginURL: [Int64]] = [:]
        /// The revision of each change, the latest last, so that frequent readers need not visit all downloads.
        var log: [(revision: UInt64, id: Int64)] = []
        /// Forgotten downloads, the latest last; before `removalsFrom` there may have been more.
        var removals: [(revision: UInt64, id: Int64)] = []
        var removalsFrom: UInt64 = 0
        var summary = DownloadSummary()
        var watchers: [UInt64: @Sendable () -> Void] = [:]
        var nextWatcher: UInt64 = 0

        mutating func put(_ entry: Entry) {
            let (id, url) = (entry.report.id, entry.url)
            if entries.updateValue(entry, forKey: id) == nil { idsByURL[url, default: []].append(id) }
        }

        mutating func forget(_ id: Int64) {
            guard let url = entries.removeValue(forKey: id)?.url, var ids = idsByURL[url] else { return }
            ids.removeAll { $0 == id }
            idsByURL[url] = ids.isEmpty ? nil : ids
        }

        /// Drops changes that later ones replace.
        mutating func shortenLog() {
            guard log.count > 1000, log.count > 2 * entries.count else { return }
            log.removeAll { entries[$0.id]?.revision != $0.revision }
        }

        mutating func noteRemovals(_ ids: [Int64]) {
            removals += ids.map { (revision, $0) }
            let surplus = removals.count - 2 * DownloadSnapshots.removalsKept
            guard surplus > 0 else { return }
            removalsFrom = removals[surplus + DownloadSnapshots.removalsKept - 1].revision
            removals.removeFirst(surplus + DownloadSnapshots.removalsKept)
        }

        func entries(since revision: UInt64) -> [Entry] {
            guard revision > 0 else { return Array(entries.values) }
            return log.reversed().prefix { $0.revision > revision }.compactMap { change in
                entries[change.id].flatMap { $0.revision == change.revision ? $0 : nil }
            }
        }
    }

    /// A download for readers.
    package struct Entry: Sendable {
        package let report: DownloadReport
        package let url: OriginURL
        /// Sorts the listing.
        package let place: Place
        fileprivate var revision: UInt64 = 0

        package init(report: DownloadReport, url: OriginURL, place: Place) {
            (self.report, self.url, self.place) = (report, url, place)
        }
    }

    /// At least this many forgotten downloads are remembered.
    private static let removalsKept = 4096

    /// Changes since a revision.
    package struct Changes: Sendable {
        /// The current revision.
        package let revision: UInt64
        package let listing: DownloadListing
        /// Forgotten downloads; nil if the revision is too old to know.
        package let removed: [Int64]?
    }

    /// The position of a download in a listing.
    package struct Place: Sendable, Comparable {
        /// Running downloads, then waiting, paused and ended ones.
        package var group: Int
        package var priority: DownloadPriority
        package var order: Double

        package init(group: Int, priority: DownloadPriority, order: Double) {
            (self.group, self.priority, self.order) = (group, priority, order)
        }

        package static func < (a: Place, b: Place) -> Bool {
            (a.group, a.priority, a.order) < (b.group, b.priority, b.order)
        }
    }

    private let clock: any DownloadClock

    package init(clock: any DownloadClock = SystemDownloadClock()) { self.clock = clock }

    // MARK: For the manager

    /// - Parameter removed: forgotten downloads.
    package func post(_ changed: [Entry], removed: [Int64] = [], summary: DownloadSummary) {
        let watchers = state.withLock { state in
            state.revision += 1 // no trap: a count of events
            for id in removed { state.forget(id) }
            state.noteRemovals(removed)
            for var entry in changed {
                entry.revision = state.revision
                state.put(entry)
                state.log.append((state.revision, entry.report.id))
            }
            state.shortenLog()
            state.summary = summary
            return Array(state.watchers.values)
        }
        for wake in watchers { wake() }
    }

    // MARK: For readers

    package var summary: DownloadSummary { posted.seen(by: clock) }

    /// The summary as it was posted last.
    var posted: DownloadSummary { state.withLock { $0.summary } }

    package subscript(_ id: Int64) -> DownloadReport? { state.withLock { $0.entries[id]?.report } }

    /// All downloads of a URL in any state, in the order of a listing. Fast, however many others there are.
    package func downloads(of url: OriginURL) -> [DownloadReport] {
        let entries = state.withLock { state in state.idsByURL[url, default: []].compactMap { state.entries[$0] } }
        return entries.sorted { $0.place < $1.place }.map(\.report)
    }

    /// - Parameter isWanted: selects downloads for the listing, which is sorted.
    package func listing(where isWanted: (DownloadReport) -> Bool = { !$0.state.hasEnded }) -> DownloadListing {
        let (entries, summary) = state.withLock { (Array($0.entries.values), $0.summary) }
        return listing(entries, summary, isWanted)
    }

    /// The first selected download in the order of a listing.
    package func first(where isMeant: (DownloadReport, OriginURL) -> Bool) -> DownloadReport? {
        let entries = state.withLock { Array($0.entries.values) }
        return entries.filter { isMeant($0.report, $0.url) }.min { $0.place < $1.place }?.report
    }

    /// The selected downloads, in no order.
    package func all(where isMeant: (OriginURL) -> Bool) -> [DownloadReport] {
        let entries = state.withLock { Array($0.entries.values) }
        return entries.filter { isMeant($0.url) }.map(\.report)
    }

    /// The first downloads that have not ended, in the order of a listing, and how many more there are. Sorts no more
    /// than it returns, so that it may be called often, however many downloads wait.
    package func page(_ count: Int) -> (downloads: [DownloadReport], hidden: Int) {
        state.withLock { state in
            var (first, total): ([(place: Place, id: Int64)], Int) = ([], 0)
            for (id, entry) in state.entries where !entry.report.state.hasEnded {
                total += 1
                guard first.count < count || first.last.map({ entry.place < $0.place }) == true else { continue }
                let index = first.firstIndex { entry.place < $0.place } ?? first.count
                first.insert((entry.place, id), at: index)
                if first.count > count { first.removeLast() }
            }
            return (first.compactMap { state.entries[$0.id]?.report }, total - first.count)
        }
    }

    /// Counts changes.
    package var revision: UInt64 { state.withLock { $0.revision } }

    /// The changes since a revision; 0 for everything.
    package func changes(since revision: UInt64, where isWanted: (DownloadReport) -> Bool) -> Changes {
        let (entries, removals, summary, current) = state.withLock { state in
            let removals = state.removals.reversed().prefix { $0.revision > revision }.map(\.id)
            return (
                state.entries(since: revision), revision < state.removalsFrom ? nil : removals, state.summary,
                state.revision
            )
        }
        return Changes(revision: current, listing: listing(entries, summary, isWanted), removed: removals)
    }

    private func listing(_ entries: [Entry], _ summary: DownloadSummary, _ isWanted: (DownloadReport) -> Bool)
        -> DownloadListing
    {
        DownloadListing(
            downloads: entries.filter { isWanted($0.report) }.sorted { $0.place < $1.place }.map(\.report),
            summary: summary.seen(by: clock))
    }

    /// - Parameter wake: called after each change until `unwatch`, on any thread; must not block.
    package func watch(_ wake: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.nextWatcher += 1 // no trap: a count of events
            state.watchers[state.nextWatcher] = wake
            return state.nextWatcher
        }
    }

    package func unwatch(_ id: UInt64) { state.withLock { $0.watchers[id] = nil } }
}
