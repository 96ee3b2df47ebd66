import CachePolicy
import HTTPModel

/// Repairs what an earlier session has left behind. On the store's queue.
final class Recovery {
    private let core: StoreCore
    private let pins: PinnedCopy
    private let remover: Remover

    init(_ core: StoreCore, _ pins: PinnedCopy, _ remover: Remover) {
        (self.core, self.pins, self.remover) = (core, pins, remover)
    }

    /// Brings the copy of pinned rows up to date, after a crash or if the copy is lost.
    /// - Parameter wasClean: whether the last session was closed cleanly.
    func completePins(wasClean: Bool) {
        guard !wasClean || !pins.isThere else { return }
        // First, so that the copy gets these too.
        if !wasClean { completePinsOfParts() }
        core.faults.report("complete the copy of pinned rows") { () throws(StoreError) in
            let wanted = Set(try core.index.pins.pinned())
            for key in try pins.keys() where !wanted.contains(key) { try pins.remove([key]) }
            for key in wanted {
                do throws(StoreError) { try pins.copyAll(of: [key], from: core.index) } catch .damagedRow { continue }
            }
        }
    }

    /// Completes the pin of a presentation that a crash interrupted between two transactions.
    private func completePinsOfParts() {
        core.faults.report("complete the pins of presentations") { () throws(StoreError) in
            for whole in try core.index.parts.pinnedWholes() {
                var place: Int64 = 0
                while case let page = try core.index.parts.page(of: whole, after: place), let last = page.last {
                    place = last
                    let rest = page.parts.filter { !$0.isPinned }
                    if !rest.isEmpty { try core.index.parts.setPinned(true, rest) }
                }
            }
            try core.index.pins.completeExtents()
        }
    }

    /// Makes files match their rows that were being written, evicted or removed when a session ended.
    func finish(_ ids: Set<GenerationID>) {
        guard !ids.isEmpty else { return }
        var (files, bytes) = (0, 0 as Int64)
        for id in ids {
            core.faults.report("repair a file that an earlier session left unfinished") {
                () throws(StoreError) in
                guard let gone = try remover.finishFile(id) else { return }
                files += 1
                bytes += gone
            }
        }
        if files > 0 {
            core.logger.notice("removed \(files) unfinished files (\(ByteSize(bytes: bytes)))")
        }
        // Whatever failed here is tried again at the next start.
        core.faults.report("shorten the list of unfinished files") { () throws(StoreError) in
            try core.files.unfinished.shorten { core.files.leftUnfinished }
        }
    }

    /// Examines a file, unless somebody uses it.
    /// - Returns: its size, if it had no row and was removed.
    func look(at id: GenerationID) -> Int64? {
        // Openings meanwhile wait for the queue.
        guard core.open.claimClosed(id, isLoadingToo: false) else { return nil }
        defer { core.open.release([id]) }
        var gone: Int64?
        core.faults.report("examine a file") { () throws(StoreError) in gone = try remover.finishFile(id) }
        return gone
    }
}

/// Examines all files after a power cut or the loss of the index: any of them may have blocks that no row describes.
/// The cache is already in use meanwhile; a part of the limit is set aside for what may be found.
struct Recount: Sendable {
    let core: StoreCore
    let queue: StoreQueue

    /// - Parameter isNew: whether the index is new, so that nothing is known.
    func begin(isNew: Bool, on pool: BlockingPool) {
        core.ledger.setUncounted(isNew ? .max / 4 : min(core.ledger.limit / 4, 256 << 20))
        pool.run { run() }
    }

    private func run() {
        var (files, bytes) = (0, 0 as Int64)
        let isDone = core.files.visitAll { id in
            guard !core.isEnding else { return false }
            guard !id.isMade(in: core.session), let gone = queue.sync({ $0.recovery.look(at: id) }) else { return true }
            files += 1
            bytes += gone
            return true
        }
        guard isDone else { return }
        core.ledger.setUncounted(0)
        core.faults.report("record that all files were examined") { () throws(StoreError) in
            try core.index.database.setMeta([(.isRecountDue, 0)])
        }
        if files > 0 {
            core.logger.notice(
                "removed \(files) files (\(ByteSize(bytes: bytes))) that are not in the index")
        }
    }
}
