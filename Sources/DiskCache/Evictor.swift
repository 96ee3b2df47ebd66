import CachePolicy
import Foundation
import Metrics

/// Frees space: the least recently read extents go that nobody needs. On the store's queue.
///
/// Order: the rows go first, then the blocks, so that no row ever speaks of a hole; then the bytes are given back to the
/// ledger.
final class Evictor {
    private let core: StoreCore
    private let checkpointer: Checkpointer
    private let closer: Closer
    private let remover: Remover

    init(_ core: StoreCore, _ checkpointer: Checkpointer, _ closer: Closer, _ remover: Remover) {
        (self.core, self.checkpointer, self.closer, self.remover) = (core, checkpointer, closer, remover)
    }

    /// Frees space for a writer that found none.
    /// - Returns: whether there is some now. False: everything is leased or pinned.
    func makeRoom() -> Bool {
        core.ledger.refreshDisk()
        // Another writer's eviction, just before, may have been enough for both. What is kept for files not yet looked
        // at is not to be had.
        let shortage = core.ledger.shortage
        return shortage == 0 ? !core.ledger.hasUncounted : evict(shortage) > 0
    }

    /// Evicts what is over the limits.
    /// - Returns: the bytes freed.
    @discardableResult
    func evictShortage() -> Int64 {
        let shortage = core.ledger.shortage
        return shortage > 0 ? evict(shortage) : 0
    }

    /// Evicts least recently read extents until so many bytes are free, as far as there are any.
    /// - Returns: the bytes freed.
    func evict(_ wanted: Int64) -> Int64 {
        // The order of last reads is in memory until a checkpoint.
        checkpointer.checkpoint(touchesToo: true)
        let freed = closer.closeUnused()
        guard freed < wanted else { return freed }
        let evicted = core.files.punchesHoles ? evictExtents(wanted - freed) : evictResources(wanted - freed)
        return freed + evicted + closer.closeUnused()
    }

    private func evictExtents(_ wanted: Int64) -> Int64 {
        var freed: Int64 = 0
        var place = CacheIndex.Place()
        while freed < wanted {
            var found: (victims: [CacheIndex.Victim], damaged: Set<GenerationID>, next: CacheIndex.Place?) = (
                [], [], nil
            )
            core.faults.report("find what to evict") { () throws(StoreError) in
                found = try core.index.evictionOrder.leastRecent(after: place, limit: 32)
            }
            guard let next = found.next else { break }
            place = next
            for id in found.damaged { remover.removeDamage(of: id) }
            // A disk that fails does so for the next ones, too: nothing more is forgotten for nothing.
            guard let more = evict(found.victims, upTo: wanted - freed) else { break }
            freed += more
        }
        return freed < wanted && !core.files.punchesHoles ? freed + evictResources(wanted - freed) : freed
    }

    /// Where the file system gives back only whole files: those that nobody has in hand.
    private func evictResources(_ wanted: Int64) -> Int64 {
        var freed: Int64 = 0
        var place = CacheIndex.Place()
        while freed < wanted {
            var found: (generations: [GenerationID], next: CacheIndex.Place?) = ([], nil)
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
        // An open one has just been let go of by who kept it in case.
        return removed.freed + (removed.later > 0 ? closer.closeUnused() : 0)
    }

    // MARK: Extents

    /// An extent on its way out.
    private struct Eviction {
        let victim: CacheIndex.Victim
        /// Where it is open, and how the extent was.
        let open: (generation: Generation, extent: Extent)?
        /// What its blocks take.
        let bytes: Int64
    }

    /// The file of a generation that is not open; or why it is not to be had, for another reason than that too many
    /// are.
    private typealias VictimFile = Result<SparseFile, StoreError>

    /// - Returns: the bytes freed; nil where the index or the disk failed, or no file can be opened.
    func evict(_ victims: [CacheIndex.Victim], upTo wanted: Int64) -> Int64? {
        var chosen: [Eviction] = []
        var sum: Int64 = 0
        for victim in victims where sum < wanted {
            guard let eviction = begin(victim) else { continue }
            chosen.append(eviction)
            sum += eviction.bytes
        }
        guard !chosen.isEmpty else { return 0 }
        defer { core.open.release(chosen.filter { $0.open == nil }.map(\.victim.generation)) }
        // Before anything is forgotten of them: what could not be punched then would have gone without making room.
        let files = openFiles(of: chosen)
        let evictable = chosen.filter { $0.open != nil || files[$0.victim.generation] != nil }
        return evictable.isEmpty ? nil : evict(evictable, files)
    }

    private func evict(_ chosen: [Eviction], _ files: [GenerationID: VictimFile]) -> Int64? {
        let gone: [GenerationID: Int64]
        do throws(StoreError) {
            try remover.list(Array(Set(chosen.map(\.victim.generation))))
            gone = try core.index.removal.remove(chosen.map { ($0.victim.generation, $0.victim.ordinal) })
        } catch {
            // What the index still speaks of must not become a hole.
            core.faults.note("evict", error)
            for eviction in chosen {
                guard let (generation, extent) = eviction.open else { continue }
                generation.cancelEviction(ofExtent: eviction.victim.ordinal, restoring: extent)
            }
            return nil
        }
        // Of a file of which nothing is left, and that nobody has open, no holes are punched: it goes as a whole.
        let closed = Set(chosen.filter { $0.open == nil }.map(\.victim.generation))
        let removed = gone.filter { closed.contains($0.key) && core.files.remove($0.key) }
        core.ledger.release(removed.values.reduce(0, +))
        let finished = chosen.filter {
            finish($0, files[$0.victim.generation], isRemoved: removed[$0.victim.generation] != nil)
        }
        for id in gone.keys where !closed.contains(id) { remover.removeEmptied(id) }
        return finished.count < chosen.count ? nil : finished.reduce(removed.values.reduce(0, +)) { $0 + $1.bytes }
    }

    /// Opens the files of those that are not open, as far as that can be.
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

    /// Makes an extent absent, unless someone needs it.
    /// - Returns: nil where it has to stay.
    private func begin(_ victim: CacheIndex.Victim) -> Eviction? {
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

    /// - Parameter isRemoved: its file is gone already.
    /// - Returns: whether its bytes are free.
    private func finish(_ eviction: Eviction, _ file: VictimFile?, isRemoved: Bool) -> Bool {
        let (victim, generation, bytes) = (eviction.victim, eviction.open?.generation, eviction.bytes)
        let isPunched = isRemoved || punch(victim, generation, file)
        if let generation { generation.endEviction(ofExtent: victim.ordinal, bytes: bytes, isPunched: isPunched) }
        guard isPunched else {
            // Its blocks stay counted; what the next session makes of them is found in the list.
            core.files.leaveUnfinished(victim.generation)
            return false
        }
        core.ledger.release(bytes)
        core.metrics.evictedExtents.add()
        core.metrics.evictedBytes.add(bytes)
        return true
    }

    private func punch(_ victim: CacheIndex.Victim, _ generation: Generation?, _ file: VictimFile?) -> Bool {
        core.faults.report("punch a hole") { () throws(StoreError) in
            do throws(StoreError) {
                let range = victim.geometry.extentBytes(victim.ordinal, length: victim.length)
                if let generation { return try generation.file.punchHole(range) }
                guard let file = try file?.get() else { return }
                let wasSealed = file.isSealed(length: victim.length)
                try file.punchHole(range)
                if wasSealed { file.seal() }
            } catch {
                // Deleted from outside, its blocks are free.
                if case .system("open", _, ENOENT) = error { return }
                if case .system(_, _, EOPNOTSUPP) = error { core.files.cannotPunchHoles() }
                throw error
            }
        }
    }
}
