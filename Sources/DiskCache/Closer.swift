/// Closes generations that nobody uses any more. Only on the store's queue, so that nobody can open a file that is
/// being closed.
final class Closer {
    private let core: StoreCore
    private let checkpointer: Checkpointer

    init(_ core: StoreCore, _ checkpointer: Checkpointer) {
        (self.core, self.checkpointer) = (core, checkpointer)
    }

    /// Closes unused generations and frees whatever they leave.
    /// - Returns: the bytes freed.
    @discardableResult
    func closeUnused() -> Int64 {
        let unused = core.open.takeUnused()
        guard !unused.isEmpty else { return 0 }
        var (freed, kept) = (0 as Int64, commit(unused.filter { !$0.isLeftover }))
        // Includes those that `commit` has just found replaced.
        let leftovers = unused.filter(\.isLeftover)
        let isForgotten =
            leftovers.isEmpty
            || core.faults.report("remove generations") { () throws(StoreError) in
                _ = try core.index.removal.remove(leftovers.map(\.id))
            }
        // Forget the rows first; if that fails, the files must stay.
        if !isForgotten { kept.formUnion(leftovers.map(\.id)) }
        for generation in leftovers where isForgotten && core.files.remove(generation.id) {
            core.ledger.release(generation.allocated)
            freed += generation.allocated
        }
        // Those that could not be saved or forgotten are tried again at the next tick.
        core.open.endClosing(unused, keeping: kept)
        checkpointer.saveClosed(beyond: checkpointer.mostClosed)
        return freed
    }

    /// Saves, measures and seals generations that are not written any more.
    /// - Returns: those that could not be saved; they stay as they are.
    private func commit(_ generations: [Generation]) -> Set<GenerationID> {
        // Save first: a chunk that the index calls present must not be punched.
        var failed = saveChanges(of: generations)
        checkpointer.keepTouches(of: generations)
        let saved = generations.filter { !failed.contains($0.id) }
        for generation in saved {
            generation.releaseResidue()
            generation.countOverhead(isClosing: true)
        }
        failed.formUnion(saveChanges(of: saved))
        for generation in saved where !failed.contains(generation.id) && generation.withChunks(\.isTrusted) {
            generation.file.seal()
        }
        return failed
    }

    private func saveChanges(of generations: [Generation]) -> Set<GenerationID> {
        checkpointer.save(generations.compactMap { generation in generation.takeChanges().map { (generation, $0) } })
    }

    /// Does the same for generations that are still referenced but not written any more.
    /// - Returns: the files that do not match their rows.
    func commitAll() -> Set<GenerationID> {
        let unsettled = commit(core.open.all.filter { !$0.isLeftover })
        let leftovers = core.open.all.filter(\.isLeftover).map(\.id)
        return core.files.leftUnfinished.union(core.unsaved.ids).union(unsettled).union(leftovers)
    }
}
