import CachePolicy
import HTTPModel
import Playlists
import Synchronization

/// The recently served feeds and lists of files, which tell what is played after an item. From any thread.
package final class FeedShelf: Sendable {
    private let state = Mutex(State())
    /// While no feeds are served, this spares requests the lock.
    private let isEmpty = Atomic<Bool>(true)

    /// The most documents, and bytes that they take with their URLs and their texts for clients. The last one stays
    /// whatever it takes.
    private static let mostDocuments = 128
    private let mostBytes: Int

    private struct Entry {
        let document: PlaylistDocument
        var lastUse: UInt64
    }

    private struct State {
        var entries: [CacheKey: Entry] = [:]
        var bytes = 0
        var uses: UInt64 = 0

        mutating func remove(_ key: CacheKey) -> PlaylistDocument? {
            guard let entry = entries.removeValue(forKey: key) else { return nil }
            bytes = bytes -| entry.document.weight
            return entry.document
        }

        /// Removes the documents that are beyond the limits, but not this one.
        mutating func shrink(keeping key: CacheKey, to mostBytes: Int) -> [PlaylistDocument] {
            var removed: [PlaylistDocument] = []
            while entries.count > FeedShelf.mostDocuments || bytes > mostBytes {
                let oldest = entries.filter { $0.key != key }.min { $0.value.lastUse < $1.value.lastUse }
                guard let oldest, let document = remove(oldest.key) else { break }
                removed.append(document)
            }
            return removed
        }

        mutating func touch(_ key: CacheKey) {
            uses &+= 1
            entries[key]?.lastUse = uses
        }
    }

    init(mostBytes: Int = 64 << 20) { self.mostBytes = mostBytes }

    /// Adds a document, replacing the one that its resource had before.
    func put(_ document: PlaylistDocument) {
        // Released outside the lock: there may be many items.
        let removed = state.withLock { state in
            let former = state.remove(document.key)
            state.entries[document.key] = Entry(document: document, lastUse: 0)
            state.bytes = state.bytes +| document.weight
            state.touch(document.key)
            return [former].compactMap(\.self) + state.shrink(keeping: document.key, to: mostBytes)
        }
        isEmpty.store(false, ordering: .releasing)
        withExtendedLifetime(removed) {}
    }

    /// Roughly the memory that its documents take.
    var bytes: Int { state.withLock { $0.bytes } }

    /// The last document of a resource, if it is still on the shelf.
    package func document(_ key: CacheKey) -> PlaylistDocument? {
        state.withLock { state in
            state.touch(key)
            return state.entries[key]?.document
        }
    }

    /// Whether a document has this item. Costs one atomic load while the shelf is empty.
    func contains(_ item: OriginURL) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        // Outside the lock of all loops, and within one budget for all documents.
        let documents = state.withLock { $0.entries.values.map(\.document) }, budget = WorkBudget.ofMatch
        return documents.contains { $0.order.contains(item, within: budget) }
    }

    /// The documents that have an item, the most recent one first.
    package func documents(with item: OriginURL) -> [PlaylistDocument] {
        guard !isEmpty.load(ordering: .acquiring) else { return [] }
        let entries = state.withLock { $0.entries.values.sorted { $0.lastUse > $1.lastUse } },
            budget = WorkBudget.ofMatch
        return entries.map(\.document).filter { $0.order.contains(item, within: budget) }
    }

    /// What is played after an item, by the most recent document that has something after it.
    func next(after item: OriginURL) -> PlaybackOrder.Next {
        let found = documents(with: item).map { $0.order.next(after: item, within: .ofMatch) }
        return found.first { $0 != .nothing } ?? found.first ?? .unknown
    }
}
