/// Closes generations that nobody has open any more. On the store's queue alone, so that nobody can open a file that is
/// just being closed.
final class Closer {
    private let core: StoreCore
    private let checkpointer: Checkpointer
    private let remover: Remover

    init(_ core: StoreCore, _ checkpointer: Checkpointer, _ remover: Remover) {
        (self.core, self.checkpointer, self.remover) = (core, checkpointer, remover)
    }

    /// Closes what nobody has open, and gives back what that leaves.
    /// - Returns: the bytes given back.
    @discardableResult
    func closeUnused() -> Int64 {
        let unused = core.open.takeUnused()
        guard !unused.isEmpty else { return 0 }
        var (freed, kept) = (0 as Int64, settle(unused.filter { !$0.isLeftover }))
        // With those that have lost their place just now.
        let leftovers = unused.filter(\.isLeftover)
        let isForgotten =
            leftovers.isEmpty
            || core.faults.report("forget generations") { () throws(StoreError) in
                _ = try core.index.removal.remove(leftovers.map(\.id))
            }
        // The rows go first: what they speak of has to stay.
        if !isForgotten { kept.formUnion(leftovers.map(\.id)) }
        for generation in leftovers where isForgotten && core.files.remove(generation.id) {
            core.ledger.release(generation.allocated)
            freed += generation.allocated
        }
        // Once more at the next look.
        core.open.endClosing(unused, keeping: kept)
        return freed
    }

    /// Generations that are not written any more are left as they will be found: saved, counted, sealed.
    /// - Returns: those that could not be saved; they are left as they are.
    private func settle(_ generations: [Generation]) -> Set<GenerationID> {
        let named = Dictionary(uniqueKeysWithValues: generations.map { ($0.id, $0) })
        // What the index calls present must not be punched; and the order of last reads would be lost.
        var failed = checkpointer.save(generations.compactMap { $0.takeTouches() }, of: named)
        let saved = generations.filter { !failed.contains($0.id) }
        for generation in saved {
            generation.releaseResidue()
            generation.countOverhead(isClosing: true)
        }
        failed.formUnion(checkpointer.save(saved.compactMap { $0.takeTouches() }, of: named))
        for generation in saved where !failed.contains(generation.id) && generation.isTrusted { generation.file.seal() }
        return failed
    }

    /// Leaves what somebody still has, who writes no more, as it will be found.
    /// - Returns: the files that are not as their rows say.
    func settleAll() -> Set<GenerationID> {
        let unsettled = settle(core.open.all.filter { !$0.isLeftover })
        let leftovers = core.open.all.filter(\.isLeftover).map(\.id)
        return core.files.leftUnfinished.union(core.unsaved.ids).union(unsettled).union(leftovers)
    }
}
