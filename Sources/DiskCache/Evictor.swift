import Activity
import CachePolicy
import Foundation

/// Frees space by evicting the least recently read extents that nobody needs. On the store's queue.
///
/// It removes the rows first, then the blocks, so that no row ever describes a hole; then it gives the bytes back to
/// the ledger.
final class Evictor {
    private let core: StoreCore
    private let checkpointer: Checkpointer
    private let closer: Closer
    private let remover: Remover

    init(_ core: StoreCore, _ checkpointer: Checkpointer, _ closer: Closer, _ remover: Remover) {
        (self.core, self.checkpointer, self.closer, self.remover) = (core, checkpointer, closer, remover)
    }

    /// Frees space for a writer that found none.
    /// - Returns: whether there is room now. If not, everything is leased or pinned.
    func makeRoom() -> Bool {
        let refused = core.ledger.takeRefused()
        core.ledger.refreshDisk(for: refused)
        // An eviction for another writer may just have freed enough for both. If the index is new, there is no room
        // before all files have been examined.
        let shortage = core.ledger.shortage(for: refused)
        guard shortage > 0 else { return core.ledger.uncounted < core.ledger.limit }
        // Less than is wanted for the next writes may be enough for this one.
        if evict(shortage) > 0 || core.ledger.hasRoom(for: refused) { return true }
        core.listeners.notifyFullness()
        return closer.closeUnused() > 0
    }

    /// Evicts until the limits are met.
    /// - Returns: the bytes freed.
    @discardableResult
    func evictShortage() -> Int64 {
        let shortage = core.ledger.shortage
        return shortage > 0 ? evict(shortage) : 0
    }

    /// Evicts the least recently read extents until this many bytes are free, or there are no more.
    /// - Returns: the bytes freed.
    func evict(_ wanted: Int64) -> Int64 {
        // Where the files are now, they would stay, without their rows.
        guard !core.isDisplaced else { return 0 }
        // The last reads, which are the order of eviction, are in memory until a checkpoint.
        checkpointer.checkpoint(core.files.punchesHoles ? .order : .all)
        let freed = closer.closeUnused()
        guard freed < wanted else { return freed }
        let evicted = core.files.punchesHoles ? evictExtents(wanted - freed) : evictResources(wanted - freed)
        return freed + evicted + closer.closeUnused()
    }

    private func evictExtents(_ wanted: Int64) -> Int64 {
        var freed: Int64 = 0
        var place = EvictionOrder.Place()
        while freed < wanted {
            var found: (victims: [EvictionOrder.Victim], damaged: Set<GenerationID>, next: EvictionOrder.Place?) = (
                [], [], nil
            )
            core.faults.report("find what to evict") { () throws(StoreError) in
                found = try core.index.evictionOrder.leastRecent(after: place, limit: 32)
            }
            guard let next = found.next else { break }
            place = next
            for id in found.damaged { remover.removeDamage(of: id) }
            let done = evict(found.victims, upTo: wanted - freed)
            freed += done.freed
            core.metrics.evictedExtents.add(Int64(done.count))
            core.metrics.evictedBytes.add(done.freed)
            // If the disk fails, stop: the next extents would be lost without freeing anything.
            if done.hasFailed { break }
        }
        guard freed < wanted, !core.files.punchesHoles else { return freed }
        // Only now is it known that whole files have to go, in the order of their last reads.
        checkpointer.checkpoint(.all)
        return freed + evictResources(wanted - freed)
    }

    /// Evicts whole files, because the file system cannot punch holes: only those that nobody uses.
    private func evictResources(_ wanted: Int64) -> Int64 {
        var freed: Int64 = 0
        var place = EvictionOrder.Place()
        while freed < wanted {
            var found: (generations: [GenerationID], next: EvictionOrder.Place?) = ([], nil)
            core.faults.report("find what to evict") { () throws(StoreError) in
                found = try core.index.evictionOrder.leastRecentResources(after: place, limit: 8)
            }
            guard let next = found.next else { break }
            place = next
            for id in found.generations where freed < wanted { freed += evictResource(id) }
        }
        return freed
    }

    private func evictResource(_ id: GenerationID) -> Int64 {
        if core.open[id]?.isNeeded == true { return 0 }
        let removed = remover.remove([id])
        if removed.freed + removed.later > 0 { core.metrics.evictedBytes.add(removed.freed + removed.later) }
        // An open generation has just been released by those that kept it for later.
        return removed.freed + (removed.later > 0 ? closer.closeUnused() : 0)
    }

    // MARK: Extents

    /// An extent being evicted.
    private struct Eviction {
        let victim: EvictionOrder.Victim
        /// The generation, if it is open, and the extent before the eviction.
        let open: (generation: Generation, extent: Extent)?
        /// The disk usage of its blocks.
        let bytes: Int64
    }

    /// The file of a generation that is not open, or the error from opening it, other than a shortage of descriptors.
    private typealias VictimFile = Result<SparseFile, StoreError>

    /// What an eviction frees, in bytes and in extents, and whether the index or the disk failed, or no file could be
    /// opened.
    typealias Outcome = (freed: Int64, count: Int, hasFailed: Bool)

    func evict(_ victims: [EvictionOrder.Victim], upTo wanted: Int64) -> Outcome {
        var chosen: [Eviction] = []
        var sum: Int64 = 0
        for victim in victims where sum < wanted {
            guard let eviction = begin(victim) else { continue }
            chosen.append(eviction)
            sum += eviction.bytes
        }
        guard !chosen.isEmpty else { return (0, 0, false) }
        defer { core.open.release(chosen.filter { $0.open == nil }.map(\.victim.generation)) }
        // Open the files before the rows are removed: otherwise an extent would be lost without making room.
        let files = openFiles(of: chosen)
        let evictable = chosen.filter { $0.open != nil || files[$0.victim.generation] != nil }
        return evictable.isEmpty ? (0, 0, true) : evict(evictable, files)
    }

    private func evict(_ chosen: [Eviction], _ files: [GenerationID: VictimFile]) -> Outcome {
        let gone: [GenerationID: Int64]
        do throws(StoreError) {
            gone = try core.ledger.diskReserve.lend { () throws(StoreError) in
                try remover.list(Array(Set(chosen.map(\.victim.generation))))
                return try core.index.removal.remove(chosen.map { ($0.victim.generation, $0.victim.ordinal) })
            }
        } catch {
            // The rows are still there, so the extents must not become holes.
            core.faults.note("evict extents", error)
            for eviction in chosen {
                guard let (generation, extent) = eviction.open else { continue }
                generation.withChunks { $0.cancelEviction(ofExtent: eviction.victim.ordinal, restoring: extent) }
            }
            return (0, 0, true)
        }
        // A closed file without any extents left is removed instead of punched.
        let closed = Set(chosen.filter { $0.open == nil }.map(\.victim.generation))
        let removed = gone.filter { closed.contains($0.key) && core.files.remove($0.key) }
        core.ledger.release(removed.values.reduce(0, +))
        let finished = chosen.filter {
            finish($0, files[$0.victim.generation], isRemoved: removed[$0.victim.generation] != nil)
        }
        for id in gone.keys where !closed.contains(id) { remover.removeEmptied(id) }
        let freed = finished.reduce(removed.values.reduce(0, +)) { $0 + $1.bytes }
        return (freed, finished.count, finished.count < chosen.count)
    }

    /// Opens the files of generations that are not open, as far as possible.
    private func openFiles(of chosen: [Eviction]) -> [GenerationID: VictimFile] {
        var files: [GenerationID: VictimFile] = [:]
        var isShort = false
        for victim in chosen where victim.open == nil && files[victim.victim.generation] == nil {
            let (id, length) = (victim.victim.generation, victim.victim.length)
            var file = openFile(id, length)
            if case .failure(let error) = file, error.isShortageOfFiles, !isShort {
                core.noteShortage()
                closer.closeUnused()
                isShort = true
                file = openFile(id, length)
            }
            if case .failure(let error) = file, error.isShortageOfFiles {
                core.faults.note("open files to evict from", error)
            } else {
                files[id] = file
            }
        }
        return files
    }

    private func openFile(_ id: GenerationID, _ length: Int64) -> VictimFile {
        Result { () throws(StoreError) in try core.files.open(id, length: length) }
    }

    /// Makes an extent absent, unless it is needed.
    /// - Returns: nil if it has to stay.
    private func begin(_ victim: EvictionOrder.Victim) -> Eviction? {
        switch core.open.claimToEvict(victim.generation) {
        case .loading: return nil
        case .claimed:
            let bytes = victim.geometry.blockBytes(of: victim.present, inExtent: victim.ordinal, length: victim.length)
            return Eviction(victim: victim, open: nil, bytes: bytes)
        case .open(let generation):
            return generation.beginEviction(ofExtent: victim.ordinal).map {
                Eviction(victim: victim, open: (generation, $0), bytes: $1)
            }
        }
    }

    /// - Parameter isRemoved: whether its file has been removed.
    /// - Returns: whether its bytes are free.
    private func finish(_ eviction: Eviction, _ file: VictimFile?, isRemoved: Bool) -> Bool {
        let (victim, generation, bytes) = (eviction.victim, eviction.open?.generation, eviction.bytes)
        let isPunched = isRemoved || punch(victim, generation, file)
        generation?.withChunks { $0.endEviction(ofExtent: victim.ordinal, bytes: bytes, isPunched: isPunched) }
        guard isPunched else {
            // Its blocks stay counted; the list of unfinished files tells the next session about it.
            core.files.leaveUnfinished(victim.generation)
            return false
        }
        core.ledger.release(bytes)
        return true
    }

    private func punch(_ victim: EvictionOrder.Victim, _ generation: Generation?, _ file: VictimFile?) -> Bool {
        core.faults.report("punch a hole") { () throws(StoreError) in
            do throws(StoreError) {
                let range = victim.geometry.extentBytes(victim.ordinal, length: victim.length)
                if let generation { return try generation.file.punchHole(range) }
                guard let file = try file?.get() else { return }
                let wasSealed = file.isSealed(length: victim.length)
                try file.punchHole(range)
                if wasSealed { file.seal() }
            } catch {
                // The file was deleted from outside, so its blocks are free.
                if case .system("open", _, ENOENT) = error { return }
                if case .system(_, _, EOPNOTSUPP) = error { core.files.cannotPunchHoles() }
                throw error
            }
        }
    }
}
