import CachePolicy
import Synchronization

/// Which generations are open, and what is being done about them. From any thread.
///
/// Lock order: a generation's state is asked for under this lock, never the other way round.
final class OpenGenerations: Sendable {
    private let table = Mutex(Table())

    private struct Table {
        /// Kept until nobody else has them (`takeUnused`): only then, and on the store's queue alone, is anything done
        /// about their files' ends.
        var open: [GenerationID: Generation] = [:]
        /// The newest of them by key, known to the index or not yet.
        var newest: [CacheKey: GenerationID] = [:]
        /// Being closed at this moment, on the store's queue.
        var closing: Set<GenerationID> = []
        /// Being read from the index, by how many: the evictor passes them by.
        var loading: [GenerationID: Int] = [:]
        /// Generations that are not open, of which something is being evicted, removed or looked at.
        var claimed: Set<GenerationID> = []
        /// Removed while somebody was opening them: that comes to nothing.
        var removedWhileLoading: Set<GenerationID> = []

        /// The generation of a key that is open, if it is still the current one.
        func newest(of key: CacheKey) -> Generation? {
            guard let id = newest[key], let generation = open[id], !generation.isRetired else { return nil }
            return generation
        }

        /// - Returns: the one that is open for that file from now on.
        mutating func add(_ generation: Generation) -> Generation {
            if let open = open[generation.id] { return open }
            open[generation.id] = generation
            if !generation.isHidden { newest[generation.key] = generation.id }
            return generation
        }

        mutating func noteRemoval(of id: GenerationID) {
            if loading[id] != nil { removedWhileLoading.insert(id) }
        }
    }

    // MARK: Finding

    var all: [Generation] { table.withLock { Array($0.open.values) } }
    var count: Int { table.withLock { $0.open.count } }

    subscript(id: GenerationID) -> Generation? { table.withLock { $0.open[id] } }

    func newest(of key: CacheKey) -> Generation? { table.withLock { $0.newest(of: key) } }

    /// The identifiers of the newest generations, retired ones among them, by key.
    var newestIDs: [CacheKey: GenerationID] { table.withLock { $0.newest } }

    // MARK: Opening

    /// From here to `endLoading` nothing of a generation is evicted.
    /// - Returns: the generation if it is open; else whether something is being done about its file's end.
    func beginLoading(_ id: GenerationID) -> (open: Generation?, isBusy: Bool) {
        table.withLock { table in
            table.loading[id, default: 0] += 1
            return (table.open[id], table.claimed.contains(id) || table.closing.contains(id))
        }
    }

    func endLoading(_ id: GenerationID) {
        table.withLock { table in
            let left = (table.loading[id] ?? 1) - 1
            table.loading[id] = left > 0 ? left : nil
            if left <= 0 { table.removedWhileLoading.remove(id) }
        }
    }

    /// Enters a new generation.
    func add(_ generation: Generation) { _ = table.withLock { $0.add(generation) } }

    /// Enters what was read from the index.
    /// - Returns: the one that is open for its resource from now on, as another look-up may have been quicker; nil
    ///   where it was removed meanwhile.
    func addLoaded(_ generation: Generation) -> Generation? {
        table.withLock { table in
            // Removed since its rows were read, or replaced by another.
            if table.removedWhileLoading.contains(generation.id) { return nil }
            if let newest = table.newest(of: generation.key), newest.id != generation.id { return newest }
            return table.add(generation)
        }
    }

    /// Makes an open generation the newest of its resource; nil leaves none.
    func setNewest(_ id: GenerationID?, of key: CacheKey) { table.withLock { $0.newest[key] = id } }

    // MARK: Closing

    /// Takes generations out to which nobody else has a reference. None can come by: it would be had from here, under
    /// the same lock. `endClosing` follows.
    func takeUnused() -> [Generation] {
        table.withLock { table in
            var unused: [Generation] = []
            for id in Array(table.open.keys) where isKnownUniquelyReferenced(&table.open[id]!) {
                let generation = table.open.removeValue(forKey: id)!
                if table.newest[generation.key] == id { table.newest[generation.key] = nil }
                table.closing.insert(id)
                unused.append(generation)
            }
            return unused
        }
    }

    /// - Parameter kept: those that could not be closed: they are open again.
    func endClosing(_ generations: [Generation], keeping kept: Set<GenerationID>) {
        table.withLock { table in
            table.closing.subtract(generations.map(\.id))
            for generation in generations where kept.contains(generation.id) {
                table.open[generation.id] = generation
                if table.newest[generation.key] == nil, !generation.isHidden {
                    table.newest[generation.key] = generation.id
                }
            }
        }
    }

    // MARK: What is done to files that are not open

    /// What somebody finds who wants to change a generation's file.
    enum Claim {
        /// It is open: the generation itself says what may be done.
        case open(Generation)
        /// Nobody has it, and who wants to open it waits for the store's queue, until `release`.
        case claimed
        /// Somebody is opening it at this moment.
        case loading
    }

    /// Claims a generation for the evictor, which passes by what is being opened.
    func claimToEvict(_ id: GenerationID) -> Claim {
        table.withLock { table in
            if table.loading[id] != nil { return .loading }
            if let generation = table.open[id] { return .open(generation) }
            table.claimed.insert(id)
            return .claimed
        }
    }

    /// Claims generations that are to be removed: who is opening one does not find it.
    func claimToRemove(_ ids: [GenerationID]) -> (open: [Generation], closed: [GenerationID]) {
        table.withLock { table in
            let open = ids.compactMap { table.open[$0] }, closed = ids.filter { table.open[$0] == nil }
            table.claimed.formUnion(closed)
            for id in closed { table.noteRemoval(of: id) }
            return (open, closed)
        }
    }

    /// - Parameter isLoadingToo: whether also one that is being opened.
    /// - Returns: whether it was neither open nor claimed.
    func claimClosed(_ id: GenerationID, isLoadingToo: Bool) -> Bool {
        table.withLock { table in
            table.open[id] == nil && (isLoadingToo || table.loading[id] == nil) && table.claimed.insert(id).inserted
        }
    }

    func release(_ ids: some Sequence<GenerationID>) { table.withLock { $0.claimed.subtract(ids) } }

    /// Rows of a generation are gone: who is opening it does not find it.
    /// - Returns: the generation, where it is open.
    func noteRemoval(of id: GenerationID) -> Generation? {
        table.withLock { table in
            if table.open[id] == nil { table.noteRemoval(of: id) }
            return table.open[id]
        }
    }

    /// Whether a generation is open, or about to be, or being closed.
    func isKnown(_ id: GenerationID) -> Bool {
        table.withLock { $0.open[id] != nil || $0.loading[id] != nil || $0.closing.contains(id) }
    }
}
