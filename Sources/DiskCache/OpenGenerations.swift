import CachePolicy
import Synchronization

/// The open generations, and those being opened, closed, evicted or removed. Can be used from any thread.
///
/// Lock order: a generation's state may be read under this lock, never the other way round.
final class OpenGenerations: Sendable {
    private let table = Mutex(Table())

    private struct Table {
        /// Kept until nobody else refers to them (`takeUnused`). Only then, and only on the store's queue, are their
        /// files closed or removed.
        var open: [GenerationID: Generation] = [:]
        /// The newest open generation of each key, whether or not the index knows it.
        var newest: [CacheKey: GenerationID] = [:]
        /// Being closed on the store's queue.
        var closing: Set<GenerationID> = []
        /// The number of look-ups that are reading a generation from the index; the evictor skips it.
        var loading: [GenerationID: Int] = [:]
        /// Generations that are not open and are being evicted, removed or examined.
        var claimed: Set<GenerationID> = []
        /// Removed while being opened: the opening must fail.
        var removedWhileLoading: Set<GenerationID> = []
        /// Closed ones that the disk could not read, so that they are known when they are opened again: at most this
        /// many.
        var unreadable: Set<GenerationID> = []
        static let mostUnreadable = 100_000
        /// Counts the ends of closings and claims, removals, and changes of pins: what was read from the index of a
        /// generation that is neither open nor being closed or claimed holds while this stays the same.
        var changes = 0

        /// The open generation of a key, if it is still current.
        func newest(of key: CacheKey) -> Generation? {
            guard let id = newest[key], let generation = open[id], !generation.isRetired else { return nil }
            return generation
        }

        /// A hidden generation of a key.
        func hidden(of key: CacheKey) -> Generation? {
            open.values.first { $0.key == key && $0.isHidden && !$0.isRetired }
        }

        /// - Returns: the open generation with this ID: this one, or one that was there before.
        mutating func add(_ generation: Generation, isHidden: Bool = false) -> Generation {
            if let open = open[generation.id] { return open }
            open[generation.id] = generation
            if unreadable.contains(generation.id) { generation.unreadable.store(true, ordering: .relaxed) }
            if !isHidden { newest[generation.key] = generation.id }
            return generation
        }

        mutating func noteRemoval(of id: GenerationID) {
            if loading[id] != nil { removedWhileLoading.insert(id) }
        }
    }

    // MARK: Looking up

    var all: [Generation] { table.withLock { Array($0.open.values) } }
    var count: Int { table.withLock { $0.open.count } }

    subscript(id: GenerationID) -> Generation? { table.withLock { $0.open[id] } }

    func newest(of key: CacheKey) -> Generation? { table.withLock { $0.newest(of: key) } }

    /// - Returns: the newest generation of a key if it is open, and the count of changes, for `beginLoading`.
    func look(for key: CacheKey) -> (open: Generation?, changes: Int) {
        table.withLock { ($0.newest(of: key), $0.changes) }
    }

    /// The newest generations by key, retired ones included.
    var newestIDs: [CacheKey: GenerationID] { table.withLock { $0.newest } }

    // MARK: Opening

    /// Keeps the evictor away from a generation until `endLoading`.
    /// - Parameter changes: their count before its rows were read.
    /// - Returns: the generation if it is open; otherwise whether it is being closed, evicted or removed, and whether
    ///   its rows may have changed since they were read.
    func beginLoading(_ id: GenerationID, since changes: Int) -> (open: Generation?, isBusy: Bool, isChanged: Bool) {
        table.withLock { table in
            table.loading[id, default: 0] += 1
            let isBusy = table.claimed.contains(id) || table.closing.contains(id)
            return (table.open[id], isBusy, isBusy || table.changes != changes)
        }
    }

    func endLoading(_ id: GenerationID) {
        table.withLock { table in
            let left = (table.loading[id] ?? 1) - 1
            table.loading[id] = left > 0 ? left : nil
            if left <= 0 { table.removedWhileLoading.remove(id) }
        }
    }

    /// Adds a new generation. It belongs to the same presentation as the one that it replaces, unless it names another:
    /// the old one's rows may be removed before the new one is saved.
    func add(_ generation: Generation, isHidden: Bool) {
        table.withLock { table in
            if let former = table.newest[generation.key] {
                let open = table.newest(of: generation.key), whole = open?.whole
                let isKept = isHidden ? open?.isKept : nil
                generation.state.withLock { state in
                    (state.former, state.whole, state.isKept) = (former, state.whole ?? whole, isKept)
                }
            } else if isHidden, let other = table.hidden(of: generation.key) {
                // It is to replace the same one.
                let known = other.state.withLock { ($0.former, $0.isKept, $0.whole) }
                generation.state.withLock { ($0.former, $0.isKept, $0.whole) = (known.0, known.1, $0.whole ?? known.2) }
            }
            _ = table.add(generation, isHidden: isHidden)
        }
    }

    /// Adds a generation read from the index.
    /// - Parameter changes: their count before its rows were read.
    /// - Returns: the resource's open generation, which may come from another look-up; nil if it was removed meanwhile.
    ///   And whether its pin may have changed since its rows were read.
    func addLoaded(_ generation: Generation, since changes: Int) -> (open: Generation?, isChanged: Bool) {
        table.withLock { table in
            let isChanged = table.changes != changes
            // It may have been removed or replaced since its rows were read.
            if table.removedWhileLoading.contains(generation.id) { return (nil, isChanged) }
            if let newest = table.newest(of: generation.key), newest.id != generation.id { return (newest, isChanged) }
            return (table.add(generation), isChanged)
        }
    }

    /// Pins have changed in the index: whoever is loading a generation reads its pin again.
    func notePins() { table.withLock { $0.changes += 1 } }

    /// Makes an open generation the newest of its resource; nil leaves none.
    func setNewest(_ id: GenerationID?, of key: CacheKey) { table.withLock { $0.newest[key] = id } }

    /// Makes a hidden generation the newest of its resource, if that is still the one that it replaces, or is closed.
    /// - Parameter done: called if it is.
    /// - Returns: whether it is.
    func reveal(_ generation: Generation, then done: () -> Void) -> Bool {
        let isNext = table.withLock { table in
            let newest = table.newest[generation.key], isKept = newest.flatMap { table.open[$0] }?.isKept
            let isNext = generation.state.withLock { state in
                guard !state.isRetired, newest == nil || newest == state.former else { return false }
                // What is kept is the resource: the index confirms it with the next checkpoint.
                (state.isHidden, state.isKept) = (false, isKept ?? state.isKept)
                return true
            }
            if isNext { table.newest[generation.key] = generation.id }
            return isNext
        }
        if isNext { done() }
        return isNext
    }

    // MARK: Closing

    /// Takes out generations that nobody else refers to. Nobody can get a new reference, which takes the same lock.
    /// `endClosing` must follow.
    func takeUnused() -> [Generation] {
        table.withLock { table in
            // Looked at in place: a second reference to one, or to the table, would make it look used.
            var (ids, place) = ([GenerationID](), table.open.startIndex)
            while place != table.open.endIndex {
                if isKnownUniquelyReferenced(&table.open.values[place]) { ids.append(table.open.keys[place]) }
                table.open.formIndex(after: &place)
            }
            var unused: [Generation] = []
            for id in ids {
                let generation = table.open.removeValue(forKey: id)!
                if table.newest[generation.key] == id { table.newest[generation.key] = nil }
                table.closing.insert(id)
                if generation.isUnreadable, table.unreadable.count < Table.mostUnreadable {
                    table.unreadable.insert(id)
                }
                unused.append(generation)
            }
            return unused
        }
    }

    /// - Parameter kept: those that could not be closed and stay open.
    func endClosing(_ generations: [Generation], keeping kept: Set<GenerationID>) {
        table.withLock { table in
            table.changes += 1
            table.closing.subtract(generations.map(\.id))
            for generation in generations where kept.contains(generation.id) {
                table.open[generation.id] = generation
                if table.newest[generation.key] == nil, !generation.state.withLock(\.isHidden) {
                    table.newest[generation.key] = generation.id
                }
            }
        }
    }

    // MARK: Claims on closed files

    /// The result of a claim on a generation's file.
    enum Claim {
        /// It is open: ask the generation itself.
        case open(Generation)
        /// Nobody has it open. Whoever wants to open it has to wait for the store's queue, until `release`.
        case claimed
        /// It is being opened.
        case loading
    }

    /// Claims a generation for the evictor, which skips those being opened.
    func claimToEvict(_ id: GenerationID) -> Claim {
        table.withLock { table in
            if table.loading[id] != nil { return .loading }
            if let generation = table.open[id] { return .open(generation) }
            table.claimed.insert(id)
            return .claimed
        }
    }

    /// Claims generations for removal. Openings in progress fail.
    func claimToRemove(_ ids: [GenerationID]) -> (open: [Generation], closed: [GenerationID]) {
        table.withLock { table in
            let open = ids.compactMap { table.open[$0] }, closed = ids.filter { table.open[$0] == nil }
            table.claimed.formUnion(closed)
            for id in closed { table.noteRemoval(of: id) }
            return (open, closed)
        }
    }

    /// - Parameter isLoadingToo: whether to claim it even while it is being opened.
    /// - Returns: whether it was neither open nor claimed.
    func claimClosed(_ id: GenerationID, isLoadingToo: Bool) -> Bool {
        table.withLock { table in
            table.open[id] == nil && (isLoadingToo || table.loading[id] == nil) && table.claimed.insert(id).inserted
        }
    }

    func release(_ ids: some Sequence<GenerationID>) {
        table.withLock { table in
            table.changes += 1
            table.claimed.subtract(ids)
        }
    }

    /// The rows of a generation are gone: an opening in progress fails.
    /// - Returns: the generation if it is open.
    func noteRemoval(of id: GenerationID) -> Generation? {
        table.withLock { table in
            table.changes += 1
            if table.open[id] == nil { table.noteRemoval(of: id) }
            return table.open[id]
        }
    }

    /// Whether a generation is open, being opened or being closed.
    func isKnown(_ id: GenerationID) -> Bool {
        table.withLock { $0.open[id] != nil || $0.loading[id] != nil || $0.closing.contains(id) }
    }
}
