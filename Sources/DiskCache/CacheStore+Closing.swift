import CachePolicy
import Foundation

/// How generations end: closed when nobody needs them, retired when they are replaced, removed when nothing of them is
/// to be left.
extension CacheStore {
    /// Closes generations that nobody has open any more, and gives back what they leave. On `queue` only.
    /// - Returns: the bytes given back.
    @discardableResult
    func closeUnused() -> Int64 {
        dispatchPrecondition(condition: .onQueue(queue))
        let unused = registry.withLock { $0.takeUnused() }
        guard !unused.isEmpty else { return 0 }
        let leftovers = unused.filter(\.isLeftover)
        var (freed, kept) = (0 as Int64, settle(unused.filter { !$0.isLeftover }))
        let isForgotten =
            leftovers.isEmpty
            || report("forget generations") { () throws(StoreError) in _ = try index.remove(leftovers.map(\.id)) }
        // The rows go first: what they speak of has to stay.
        if !isForgotten { kept.formUnion(leftovers.map(\.id)) }
        for generation in leftovers where isForgotten && removeFile(generation.id) {
            ledger.release(generation.allocated)
            freed += generation.allocated
        }
        registry.withLock { registry in
            registry.closing.subtract(unused.map(\.id))
            // Once more at the next look.
            for generation in unused where kept.contains(generation.id) { registry.takeBack(generation) }
        }
        return freed
    }

    /// Generations that are not written any more are left as they will be found: saved, counted, sealed.
    /// - Returns: those that could not be saved; they are left as they are.
    func settle(_ generations: [Generation]) -> Set<GenerationID> {
        let named = Dictionary(uniqueKeysWithValues: generations.map { ($0.id, $0) })
        // What the index calls present must not be punched; and the order of last reads would be lost.
        var failed = save(generations.compactMap { $0.takeTouches() }, of: named)
        let saved = generations.filter { !failed.contains($0.id) }
        for generation in saved {
            generation.releaseResidue()
            generation.countOverhead(isClosing: true)
        }
        failed.formUnion(save(saved.compactMap { $0.takeTouches() }, of: named))
        for generation in saved where !failed.contains(generation.id) && generation.isTrusted { generation.file.seal() }
        return failed
    }

    /// Replaced or not to be kept: gone from the index at once, from the disk when the last reader has closed it.
    package func retire(_ generation: Generation) {
        guard generation.retire() else { return }
        queue.async { [self] in endRetired(generation) }
    }

    private func endRetired(_ generation: Generation) {
        registry.withLock { _ = $0.unsaved.removeValue(forKey: generation.id) }
        report("retire a generation") { () throws(StoreError) in
            try list([generation.id])
            _ = try index.remove([generation.id])
            // Whoever was told its name has it until they have done: then it goes with the generation.
            if generation.state.withLock({ $0.holds == 0 }) { _ = removeFile(generation.id) }
        }
        tellChanged(generation.key, generation)
    }

    /// Forgets generations and removes their files. Those that are open go when their last reader has closed them; who
    /// is just opening one does not find it. On `queue` only.
    /// - Returns: the bytes given back now, those that will be, and how many generations there were.
    @discardableResult
    func removeGenerations(_ ids: [GenerationID]) -> (freed: Int64, later: Int64, count: Int) {
        dispatchPrecondition(condition: .onQueue(queue))
        var (open, closed) = ([Generation](), [GenerationID]())
        registry.withLock { registry in
            for id in ids {
                if let generation = registry.open[id] {
                    open.append(generation)
                } else {
                    closed.append(id)
                    registry.evicting.insert(id)
                    registry.noteRemoval(of: id)
                }
            }
        }
        var (freed, later, count) = (0 as Int64, 0 as Int64, 0)
        for generation in open where generation.retire() {
            later += generation.allocated
            count += 1
            endRetired(generation)
        }
        defer { registry.withLock { $0.evicting.subtract(closed) } }
        report("remove files") { () throws(StoreError) in
            guard !closed.isEmpty else { return }
            try list(closed)
            // The rows go first, so that none ever speaks of a file that is gone.
            for (id, bytes) in try index.remove(closed) {
                count += 1
                guard removeFile(id) else { continue }
                ledger.release(bytes)
                freed += bytes
            }
        }
        return (freed, later, count)
    }

    /// - Returns: whether it is gone. Else it stays counted, and the next session tries again.
    func removeFile(_ id: GenerationID) -> Bool {
        let isGone = report("remove a file") { () throws(StoreError) in try FileSystem.remove(path(of: id)) }
        if !isGone { registry.withLock { _ = $0.leftUnfinished.insert(id) } }
        return isGone
    }

    /// A generation some of whose rows cannot be believed: these go, and with its head all of it. On `queue` only.
    /// - Parameter isClaimed: whether the caller has seen to it that nobody opens it meanwhile.
    func removeDamage(of id: GenerationID, isClaimed: Bool = false) {
        // An open one is what it is in memory, until it is closed.
        guard isClaimed || registry.withLock({ $0.open[id] == nil && $0.evicting.insert(id).inserted }) else { return }
        defer { if !isClaimed { registry.withLock { _ = $0.evicting.remove(id) } } }
        report("remove damaged rows") { () throws(StoreError) in
            try list([id])
            let (key, isGone, change) = try index.removeDamage(of: id)
            logger.error(
                "dropped \(isGone ? "" : "a part of what was cached ")from the cache, as rows of the index are damaged: \(key ?? "\(id)")"
            )
            metrics.errors.add("index-row")
            ledger.adjust(by: change)
            if isGone { _ = removeFile(id) } else { _ = try finishFile(id) }
        }
    }

    /// Names files as unfinished, before the index says anything else of them than before.
    func list(_ ids: [GenerationID]) throws(StoreError) {
        let open = registry.withLock { registry in ids.map { registry.open[$0] } }
        let unlisted = zip(ids, open).filter { $1?.isListed != true }.map(\.0)
        guard !unlisted.isEmpty else { return }
        // Not shortened before it is known that they are listed.
        try unfinished.begin(unlisted)
        for generation in open { generation?.state.withLock { $0.isListed = true } }
        unfinished.end()
    }
}

extension Generation {
    var isHidden: Bool { state.withLock { $0.isHidden } }

    /// - Returns: whether it was not retired before.
    func retire() -> Bool {
        guard isStored else { return false }
        return state.withLock { state in
            defer { state.isRetired = true }
            return !state.isRetired
        }
    }
}
