import CachePolicy
import HTTPModel

/// The steps of commands that run on the store's queue.
extension StoreWork {
    /// Pins a resource without the parts of its presentation.
    /// - Returns: false if nothing of it is cached.
    func setPinned(_ isPinned: Bool, _ key: CacheKey, isByHand: Bool = false) throws(StoreError) -> Bool {
        checkpointer.checkpoint()
        guard try core.index.listing.resource(key) != nil else { return false }
        // In this order, the copy never has a pin that the index lacks.
        if !isPinned { try pins.remove([key]) }
        _ = try core.index.pins.setPinned(isPinned, [key], isByHand: isByHand)
        if isPinned { try pins.copyAll(of: [key], from: core.index) }
        try noteKept([key])
        checkpointer.countIndex()
        return true
    }

    /// Copies what is known of a pin, if there is one.
    func copyPin(of key: CacheKey) throws(StoreError) {
        if try core.index.pins.kept(key).isPinned { try pins.copyAll(of: [key], from: core.index) }
    }

    func noteDownloaded(_ keys: [CacheKey]) throws(StoreError) {
        try core.index.pins.setDownloaded(keys)
        try pins.copy?.pins.setDownloaded(keys)
        try noteKept(keys)
    }

    /// Updates the flags of open generations after a change of pins or downloads.
    func noteKept(_ keys: [CacheKey]) throws(StoreError) {
        core.open.notePins()
        for key in keys {
            if let open = core.open.newest(of: key) { open.setKept(try core.index.pins.isKept(key)) }
        }
    }

    /// Whether players have read a resource, or somebody has pinned it, since a restore point was made: then it keeps
    /// what came later.
    func isWanted(_ key: CacheKey, sinceHits hits: Int64, wasPinned: Bool) throws(StoreError) -> Bool {
        guard let own = try core.index.listing.own(key) else { return false }
        if own.isPinned, !wasPinned { return true }
        return try own.hits +| checkpointer.unsavedHits(of: key) > hits
    }

    /// Whether a person has pinned a resource since a restore point was made.
    func hasPinned(since point: RestorePoint) throws(StoreError) -> Bool {
        if point.wasPinned { return false }
        return try core.index.pins.kept(CacheKey(text: point.key)).isByHand
    }

    /// Removes a resource, perhaps with its variants, but without parts.
    /// - Returns: nil if nothing of it is cached.
    func remove(_ key: CacheKey, withVariants: Bool, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        checkpointer.checkpoint()
        let keys = try [key] + (withVariants ? core.index.rows.variants(of: key) : [])
        var ids: [GenerationID] = []
        for key in keys { ids += try core.index.rows.identifiers(of: key) }
        guard !ids.isEmpty else { return nil }
        guard !isDryRun else {
            return RemovalReport(
                resources: ids.count, bytes: try core.index.rows.taken(by: ids), pinned: 0, isDryRun: true)
        }
        try pins.remove(keys)
        _ = try core.index.pins.setPinned(false, keys)
        let removed = removal(of: ids)
        guard removed.resources > 0 else { throw .index(detail: "\(key.text) could not be removed: see the log") }
        return removed
    }

    func removal(of ids: [GenerationID]) -> RemovalReport {
        let removed = remover.remove(ids)
        closer.closeUnused()
        checkpointer.countIndex()
        return RemovalReport(resources: removed.count, bytes: removed.freed + removed.later, pinned: 0, isDryRun: false)
    }
}
