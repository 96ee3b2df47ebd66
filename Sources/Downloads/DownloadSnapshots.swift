import CachePolicy
import Synchronization

/// The state of all downloads at this moment: written by the manager, and readable from any thread without waiting for
/// it.
package final class DownloadSnapshots: Sendable {
    private let state = Mutex(State())

    fileprivate struct State {
        /// Counts changes: each has a revision of its own. None is 0.
        var revision: UInt64 = 1
        private(set) var entries: [Int64: Entry] = [:]
        /// The downloads of each URL, in no order.
        private(set) var idsByURL: [OriginURL: [Int64]] = [:]
        /// The revision of each change, the latest last, so that frequent readers need not visit all downloads.
        var log: [(revision: UInt64, id: Int64)] = []
        /// Forgotten downloads, the latest last.
        var removals: [Removal] = []
        /// Of those that are not remembered: the latest, and when the last of them ended.
        var lost = (revision: UInt64(0), ended: UInt64(0))
        var summary = DownloadTotals()
        var watchers: [UInt64: @Sendable () -> Void] = [:]
        var nextWatcher: UInt64 = 0

        mutating func put(_ new: Entry) {
            revision += 1 // no trap: a count of events
            let (id, old) = (new.report.id, entries[new.report.id])
            let ended = new.report.state.hasEnded ? min(old?.ended ?? .max, revision) : .max
            let entry = Entry(new, revision: revision, added: old?.added ?? revision, ended: ended)
            entries[id] = entry
            if old == nil { idsByURL[entry.url, default: []].append(id) }
            log.append((revision, id))
        }

        mutating func forget(_ id: Int64) {
            revision += 1 // no trap: a count of events
            let entry = entries.removeValue(forKey: id)
            removals.append(
                Removal(revision: revision, id: id, added: entry?.added ?? 0, ended: entry?.ended ?? .max))
            guard let url = entry?.url, var ids = idsByURL[url] else { return }
            ids.removeAll { $0 == id }
            idsByURL[url] = ids.isEmpty ? nil : ids
        }

        /// Drops changes that later ones replace.
        mutating func shortenLog() {
            guard log.count > 1000, log.count > 2 * entries.count else { return }
            log.removeAll { entries[$0.id]?.revision != $0.revision }
        }

        mutating func shortenRemovals() {
            let surplus = removals.count - DownloadSnapshots.removalsKept
            guard surplus > DownloadSnapshots.removalsKept else { return }
            for removal in removals.prefix(surplus) {
                lost = (removal.revision, max(lost.ended, removal.ended))
            }
            removals.removeFirst(surplus)
        }

        func entries(since revision: UInt64) -> [Entry] {
            guard revision > 0 else { return Array(entries.values) }
            return log.reversed().prefix { $0.revision > revision }.compactMap { change in
                entries[change.id].flatMap { $0.revision == change.revision ? $0 : nil }
            }
        }
    }

    /// A download for readers. On the heap: readers hold many at a time.
    package final class Entry: Sendable {
        package let report: Download
        package let url: OriginURL
        /// Sorts the listing.
        package let place: DownloadPlace
        /// The revisions of its last change, of its first, and of its end; the latter the greatest number before.
        fileprivate let (revision, added, ended): (UInt64, UInt64, UInt64)

        package init(report: Download, url: OriginURL, place: DownloadPlace) {
            (self.report, self.url, self.place, revision, added, ended) = (report, url, place, 0, 0, .max)
        }

        fileprivate init(_ new: Entry, revision: UInt64, added: UInt64, ended: UInt64) {
            (report, url, place) = (new.report, new.url, new.place)
            (self.revision, self.added, self.ended) = (revision, added, ended)
        }
    }

    fileprivate struct Removal {
        let (revision, id): (UInt64, Int64)
        let (added, ended): (UInt64, UInt64)
    }

    /// At least this many forgotten downloads are remembered.
    private static let removalsKept = 4096

    /// Changes since a revision.
    package struct Changes: Sendable {
        /// The current revision.
        package let revision: UInt64
        package let listing: DownloadListing
    }

    private let clock: any DownloadClock

    package init(clock: any DownloadClock = SystemDownloadClock()) { self.clock = clock }

    // MARK: For the manager

    /// - Parameter removed: forgotten downloads.
    package func post(_ changed: [Entry], removed: [Int64] = [], summary: DownloadTotals) {
        let watchers = state.withLock { state in
            if changed.isEmpty, removed.isEmpty { state.revision += 1 } // no trap: a count of events
            for id in removed { state.forget(id) }
            state.shortenRemovals()
            for entry in changed { state.put(entry) }
            state.shortenLog()
            state.summary = summary
            return Array(state.watchers.values)
        }
        for wake in watchers { wake() }
    }

    // MARK: For readers

    package var summary: DownloadTotals { posted.seen(by: clock) }

    /// The summary as it was posted last.
    var posted: DownloadTotals { state.withLock { $0.summary } }

    package subscript(_ id: Int64) -> Download? { state.withLock { $0.entries[id]?.report } }

    /// All downloads of a URL in any state, in the order of a listing. Fast, however many others there are.
    package func downloads(of url: OriginURL) -> [Download] {
        let entries = state.withLock { state in state.idsByURL[url, default: []].compactMap { state.entries[$0] } }
        return entries.sorted { $0.place < $1.place }.map(\.report)
    }

    /// - Parameter isWanted: selects downloads for the listing, which is sorted.
    package func listing(where isWanted: (Download) -> Bool = { !$0.state.hasEnded }) -> DownloadListing {
        let (entries, summary) = state.withLock { (Array($0.entries.values), $0.summary) }
        return listing(entries, summary, isWanted)
    }

    /// The first selected download in the order of a listing.
    package func first(where isMeant: (Download, OriginURL) -> Bool) -> Download? {
        let entries = state.withLock { Array($0.entries.values) }
        return entries.filter { isMeant($0.report, $0.url) }.min { $0.place < $1.place }?.report
    }

    /// The selected downloads, in no order.
    package func all(where isMeant: (OriginURL) -> Bool) -> [Download] {
        let entries = state.withLock { Array($0.entries.values) }
        return entries.filter { isMeant($0.url) }.map(\.report)
    }

    /// The first downloads that have not ended, in the order of a listing, and how many more there are. Sorts no more
    /// than it returns, so that it may be called often, however many downloads wait.
    package func page(_ count: Int) -> (downloads: [Download], hidden: Int) {
        state.withLock { state in
            var (first, total): ([(place: DownloadPlace, id: Int64)], Int) = ([], 0)
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
    package func changes(since revision: UInt64, where isWanted: (Download) -> Bool) -> Changes {
        let (entries, summary, current) = state.withLock { ($0.entries(since: revision), $0.summary, $0.revision) }
        return Changes(revision: current, listing: listing(entries, summary, isWanted))
    }

    /// Begins a reading of everything.
    /// - Parameters:
    ///   - hasEnded: whether downloads that have ended already are wanted.
    ///   - isNamed: whether IDs that are unknown are reported.
    package func reading(hasEnded: Bool, isNamed: Bool) -> DownloadReading {
        let revision = revision
        return DownloadReading(
            changes: 0, removals: revision, ended: hasEnded ? 0 : revision, unknown: isNamed ? 0 : .max)
    }

    /// Continues a reading that had come to its end; nil if too much was forgotten since.
    package func reading(from revision: UInt64) -> DownloadReading? {
        let reading = DownloadReading(changes: revision, removals: revision)
        return state.withLock { $0.revision >= revision && !$0.hasLost(reading) } ? reading : nil
    }

    /// The next changes of a reading.
    /// - Parameters:
    ///   - ids: the wanted downloads; nil for all.
    ///   - count: how many changes, and as many forgotten ones.
    /// - Returns: nil if it was so late that forgotten downloads are not known any more.
    package func step(_ reading: DownloadReading, of ids: Set<Int64>?, atMost count: Int) -> DownloadReading.Step? {
        state.withLock { $0.step(reading, of: ids, atMost: count) }
    }

    private func listing(_ entries: [Entry], _ summary: DownloadTotals, _ isWanted: (Download) -> Bool)
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

extension DownloadSnapshots.State {
    /// How many changes a step visits: others have replaced some.
    private static let mostVisited = 4096

    fileprivate func hasLost(_ reading: DownloadReading) -> Bool {
        reading.changes > 0 && reading.removals < lost.revision && max(reading.changes, reading.ended) < lost.ended
    }

    fileprivate func step(_ start: DownloadReading, of ids: Set<Int64>?, atMost count: Int)
        -> DownloadReading.Step?
    {
        var (reading, removed) = (start, [Int64]())
        if reading.changes >= reading.ended { reading.ended = 0 }
        if hasLost(start) {
            guard ids != nil else { return nil }
            (reading.removals, reading.unknown) = (revision, 0)
        }
        let isComplete = takeRemovals(&reading, &removed, ids, count)
        let changed = isComplete ? takeChanges(&reading, ids, count) : []
        return DownloadReading.Step(
            changed: changed.map { ($0.revision, $0.report) }, removed: removed.sorted(), reading: reading,
            revision: revision)
    }

    /// - Returns: whether these are all.
    private func takeRemovals(
        _ reading: inout DownloadReading, _ removed: inout [Int64], _ ids: Set<Int64>?, _ count: Int
    ) -> Bool {
        if let ids, reading.unknown < .max {
            let unknown = ids.filter { $0 > reading.unknown && entries[$0] == nil }.sorted()
            removed += unknown.prefix(count)
            reading.unknown = unknown.count > count ? removed[count - 1] : .max
            guard unknown.count <= count else { return false }
        }
        let read = max(reading.changes, reading.ended)
        for removal in removals[Self.index(after: reading.removals, removals, \.revision)...] {
            guard removed.count < count else { return false }
            reading.removals = removal.revision
            guard removal.added <= reading.changes, removal.ended > read, ids?.contains(removal.id) ?? true else {
                continue
            }
            removed.append(removal.id)
        }
        reading.removals = revision
        return true
    }

    private func takeChanges(_ reading: inout DownloadReading, _ ids: Set<Int64>?, _ count: Int)
        -> [DownloadSnapshots.Entry]
    {
        let (read, ended) = (reading.changes, reading.ended)
        func isWanted(_ entry: DownloadSnapshots.Entry) -> Bool {
            entry.revision > read && (entry.revision > ended || !entry.report.state.hasEnded)
        }
        var changed: [DownloadSnapshots.Entry] = []
        if let ids {
            changed = ids.compactMap { entries[$0] }.filter(isWanted).sorted { $0.revision < $1.revision }
            reading.changes = changed.count > count ? changed[count - 1].revision : revision
            return Array(changed.prefix(count))
        }
        let first = Self.index(after: read, log, \.revision)
        let visited = log[first...].prefix(Self.mostVisited)
        for (index, change) in zip(visited.indices, visited) {
            guard changed.count < count else { return changed }
            reading.changes = index + 1 == log.count ? revision : change.revision
            if let entry = entries[change.id], entry.revision == change.revision, isWanted(entry) {
                changed.append(entry)
            }
        }
        if first == log.count { reading.changes = revision }
        return changed
    }

    /// The first index after a revision, by binary search.
    private static func index<Element>(
        after revision: UInt64, _ list: [Element], _ revisionOf: KeyPath<Element, UInt64>
    ) -> Int {
        var (low, high) = (0, list.count)
        while low < high {
            let middle = (low + high) / 2
            if list[middle][keyPath: revisionOf] <= revision { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
