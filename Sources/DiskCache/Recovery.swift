import CachePolicy
import Units

/// Mends what an earlier session has left. On the store's queue.
final class Recovery {
    private let core: StoreCore
    private let pins: PinnedCopy
    private let remover: Remover

    init(_ core: StoreCore, _ pins: PinnedCopy, _ remover: Remover) {
        (self.core, self.pins, self.remover) = (core, pins, remover)
    }

    /// What came between the index and its copy, where a crash did, or where the copy is lost.
    /// - Parameter wasClean: whether the last session was closed in order.
    func completePins(wasClean: Bool) {
        guard !wasClean || !pins.isThere else { return }
        // First: the copy then gets these, too.
        if !wasClean { completePinsOfParts() }
        core.faults.report("complete the copy of pinned rows") { () throws(StoreError) in
            let wanted = Set(try core.index.pins.pinned())
            for key in try pins.keys() where !wanted.contains(key) { try pins.remove(key) }
            for key in wanted {
                do throws(StoreError) { try pins.copyAll(of: key, from: core.index) } catch .damagedRow { continue }
            }
        }
    }

    /// What came between the transactions in which a presentation was pinned.
    private func completePinsOfParts() {
        core.faults.report("pin what is left of pinned resources") { () throws(StoreError) in
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

    /// Brings files that were being written, evicted or removed when a session ended to what their rows say.
    func finish(_ ids: Set<GenerationID>) {
        guard !ids.isEmpty else { return }
        var (files, bytes) = (0, 0 as Int64)
        for id in ids {
            core.faults.report("bring a file to an end that an earlier session left unfinished") {
                () throws(StoreError) in
                guard let gone = try remover.finishFile(id) else { return }
                files += 1
                bytes += gone
            }
        }
        if files > 0 {
            core.logger.notice("removed \(files) files (\(ByteSize(bytes: bytes))) that were not finished")
        }
        // What they leave to do is done, or is done again at the next start.
        core.faults.report("shorten the list of unfinished files") { () throws(StoreError) in
            try core.files.unfinished.shorten { core.files.leftUnfinished }
        }
    }

    /// Looks at a file, unless somebody has it in hand.
    /// - Returns: what it took, where no row speaks of it and it is gone.
    func look(at id: GenerationID) -> Int64? {
        // Whoever wants to open it meanwhile waits for the queue.
        guard core.open.claimClosed(id, isLoadingToo: false) else { return nil }
        defer { core.open.release([id]) }
        var gone: Int64?
        core.faults.report("look at a file") { () throws(StoreError) in gone = try remover.finishFile(id) }
        return gone
    }
}

/// After a power cut, or where the index was lost, any file may have what no row speaks of. All are looked at while the
/// cache is already in use; until that is done a part of the limit is kept for what may be found.
struct Recount: Sendable {
    let core: StoreCore
    let queue: StoreQueue

    /// - Parameter isNew: whether the index is: nothing is known of what is there.
    func begin(isNew: Bool) {
        core.ledger.setUncounted(isNew ? .max / 4 : min(core.ledger.limit / 4, 256 << 20))
    }

    /// Blocks.
    func run() {
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
        core.faults.report("note that all files were looked at") { () throws(StoreError) in
            try core.index.database.setMeta([(.isRecountDue, 0)])
        }
        if files > 0 {
            core.logger.notice(
                "removed \(files) files (\(ByteSize(bytes: bytes))) of which the index knows nothing")
        }
    }
}
