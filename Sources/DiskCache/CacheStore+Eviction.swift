import CachePolicy
import Foundation
import Metrics

extension CacheStore {
    /// Frees space for a writer that found none.
    /// - Parameter deliver: called on the store's queue: whether something was freed. False: everything is leased or
    ///   pinned, and the caller has to go on without the cache.
    package func makeRoom(then deliver: @escaping @Sendable (Bool) -> Void) {
        queue.async { [self] in deliver(makeRoom()) }
    }

    /// On `queue` only.
    func makeRoom() -> Bool {
        ledger.refreshDisk()
        // Another writer's eviction, just before, may have been enough for both. What is kept for files not yet looked
        // at is not to be had.
        let shortage = ledger.shortage
        return shortage == 0 ? !ledger.hasUncounted : evict(shortage) > 0
    }

    /// Evicts least recently read extents until so many bytes are free, as far as there are any. On `queue` only.
    ///
    /// Order: the rows go first, then the blocks, so that no row ever speaks of a hole.
    /// - Returns: the bytes freed.
    @discardableResult
    func evict(_ wanted: Int64) -> Int64 {
        dispatchPrecondition(condition: .onQueue(queue))
        // The order of last reads is in memory until a checkpoint.
        checkpoint(touchesToo: true)
        let freed = closeUnused()
        guard freed < wanted else { return freed }
        let evicted = punchesHoles ? evictExtents(wanted - freed) : evictResources(wanted - freed)
        return freed + evicted + closeUnused()
    }

    private func evictExtents(_ wanted: Int64) -> Int64 {
        var freed: Int64 = 0
        var place = CacheIndex.Place()
        while freed < wanted {
            var found: (victims: [CacheIndex.Victim], damaged: Set<GenerationID>, next: CacheIndex.Place?) = (
                [], [], nil
            )
            report("find what to evict") { () throws(StoreError) in
                found = try index.leastRecent(after: place, limit: 32)
            }
            guard let next = found.next else { break }
            place = next
            for id in found.damaged { removeDamage(of: id) }
            // A disk that fails does so for the next ones, too: nothing more is forgotten for nothing.
            guard let more = evict(found.victims, upTo: wanted - freed) else { break }
            freed += more
        }
        return freed < wanted && !punchesHoles ? freed + evictResources(wanted - freed) : freed
    }

    /// Where the file system gives back only whole files: those that nobody has in hand.
    private func evictResources(_ wanted: Int64) -> Int64 {
        var freed: Int64 = 0
        var place = CacheIndex.Place()
        while freed < wanted {
            var found: (generations: [GenerationID], next: CacheIndex.Place?) = ([], nil)
            report("find what to evict") { () throws(StoreError) in
                found = try index.leastRecentResources(after: place, limit: 8)
            }
            guard let next = found.next else { break }
            place = next
            for id in found.generations where freed < wanted {
                if registry.withLock({ $0.open[id]?.isNeeded == true }) { continue }
                let removed = removeGenerations([id])
                freed += removed.freed
                // An open one has just been let go of by who kept it in case.
                if removed.later > 0 { freed += closeUnused() }
                if removed.freed + removed.later > 0 { metrics.evictedBytes.add(removed.freed + removed.later) }
            }
        }
        return freed
    }

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
        defer {
            for eviction in chosen where eviction.open == nil {
                registry.withLock { _ = $0.evicting.remove(eviction.victim.generation) }
            }
        }
        // Before anything is forgotten of them: what could not be punched then would have gone without making room.
        let files = openFiles(of: chosen)
        let evictable = chosen.filter { $0.open != nil || files[$0.victim.generation] != nil }
        return evictable.isEmpty ? nil : evict(evictable, files)
    }

    private func evict(_ chosen: [Eviction], _ files: [GenerationID: VictimFile]) -> Int64? {
        let gone: [GenerationID: Int64]
        do throws(StoreError) {
            try list(Array(Set(chosen.map(\.victim.generation))))
            gone = try index.remove(chosen.map { ($0.victim.generation, $0.victim.ordinal) })
        } catch {
            // What the index still speaks of must not become a hole.
            reportDisk("evict", error)
            for eviction in chosen {
                guard let (generation, extent) = eviction.open else { continue }
                generation.cancelEviction(ofExtent: eviction.victim.ordinal, restoring: extent)
            }
            return nil
        }
        // Of a file of which nothing is left, and that nobody has open, no holes are punched: it goes as a whole.
        let closed = Set(chosen.filter { $0.open == nil }.map(\.victim.generation))
        let removed = gone.filter { closed.contains($0.key) && removeFile($0.key) }
        ledger.release(removed.values.reduce(0, +))
        let finished = chosen.filter {
            finish($0, files[$0.victim.generation], isRemoved: removed[$0.victim.generation] != nil)
        }
        for id in gone.keys where !closed.contains(id) { removeOpen(id) }
        return finished.count < chosen.count ? nil : finished.reduce(removed.values.reduce(0, +)) { $0 + $1.bytes }
    }

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

    /// Opens the files of those that are not open, as far as that can be.
    private func openFiles(of chosen: [Eviction]) -> [GenerationID: VictimFile] {
        var files: [GenerationID: VictimFile] = [:]
        var isShort = false
        for victim in chosen where victim.open == nil && files[victim.victim.generation] == nil {
            let (id, length) = (victim.victim.generation, victim.victim.length)
            var file = openFile(of: id, length)
            if case .failure(let error) = file, error.isShortageOfFiles, !isShort {
                closeInShortage()
                closeUnused()
                isShort = true
                file = openFile(of: id, length)
            }
            if case .failure(let error) = file, error.isShortageOfFiles {
                reportDisk("open files to evict from", error)
            } else {
                files[id] = file
            }
        }
        return files
    }

    private func openFile(of id: GenerationID, _ length: Int64) -> VictimFile {
        Result { () throws(StoreError) in try SparseFile(path: path(of: id), length: length, creating: false) }
    }

    /// Makes an extent absent, unless someone needs it.
    /// - Returns: nil where it has to stay.
    private func begin(_ victim: CacheIndex.Victim) -> Eviction? {
        let open: Generation?? = registry.withLock { registry in
            if registry.loading[victim.generation] != nil { return nil }
            if let generation = registry.open[victim.generation] { return .some(generation) }
            registry.evicting.insert(victim.generation)
            return .some(nil)
        }
        switch open {
        case nil: return nil
        case .some(nil):
            let bytes = victim.geometry.blockBytes(of: victim.present, inExtent: victim.ordinal, length: victim.length)
            return Eviction(victim: victim, open: nil, bytes: bytes)
        case .some(let generation?):
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
            registry.withLock { _ = $0.leftUnfinished.insert(victim.generation) }
            return false
        }
        ledger.release(bytes)
        metrics.evictedExtents.add()
        metrics.evictedBytes.add(bytes)
        return true
    }

    private func punch(_ victim: CacheIndex.Victim, _ generation: Generation?, _ file: VictimFile?) -> Bool {
        report("punch a hole") { () throws(StoreError) in
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
                if case .system(_, _, EOPNOTSUPP) = error { cannotPunchHoles() }
                throw error
            }
        }
    }

    /// Removes the file of a generation that has no extents left, unless somebody is about to fill it again. What it
    /// still takes is counted until the last who has it open has let go of it, and whoever has it in case is told to.
    private func removeOpen(_ id: GenerationID) {
        guard let generation = registry.withLock({ $0.open[id] }), generation.retireIfUnused() else { return }
        _ = removeFile(id)
        tellChanged(generation.key, generation)
    }
}

extension Generation {
    /// Whether somebody reads or fills it.
    var isNeeded: Bool {
        state.withLock { state in state.users > 0 || state.isHidden || state.extents.values.contains { $0.leases > 0 } }
    }

    /// - Returns: the extent as it was and the bytes of its blocks; nil where it is leased or being evicted, or the
    ///   file is lent.
    func beginEviction(ofExtent ordinal: Int) -> (Extent, Int64)? {
        state.withLock { state in
            let extent = state.extents[ordinal]
            guard state.holds == 0, extent.leases == 0, !extent.isEvicting, !extent.hasBlocks.isEmpty else {
                return nil
            }
            let bytes = geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: state.length)
            state.absentChunks += extent.present.count
            state.extents[ordinal] = Extent()
            state.extents[ordinal].residue = extent.hasBlocks
            state.extents[ordinal].isEvicting = true
            return (extent, bytes)
        }
    }

    func cancelEviction(ofExtent ordinal: Int, restoring extent: Extent) {
        state.withLock { state in
            // Whoever has come meanwhile stays.
            let leases = state.extents[ordinal].leases
            state.extents[ordinal] = extent
            state.extents[ordinal].leases = leases
            state.absentChunks -= extent.present.count
        }
    }

    /// Nothing of it is left, and nobody fills it: whoever wants it begins a new one.
    /// - Returns: false where it stays.
    func retireIfUnused() -> Bool {
        state.withLock { state in
            guard !state.isRetired, state.users == 0,
                state.extents.values.allSatisfy({ $0.hasBlocks.isEmpty && $0.leases == 0 && !$0.isEvicting })
            else { return false }
            state.isRetired = true
            return true
        }
    }

    func endEviction(ofExtent ordinal: Int, bytes: Int64, isPunched: Bool) {
        state.withLock { state in
            state.extents[ordinal].isEvicting = false
            guard isPunched else { return }
            state.extents[ordinal].residue = Presence(bits: 0)
            state.allocated -= bytes
        }
    }
}

extension ChunkGeometry {
    func extentBytes(_ ordinal: Int, length: Int64) -> Range<Int64> {
        extentStart(ordinal)..<min(extentStart(ordinal + 1), length)
    }
}
