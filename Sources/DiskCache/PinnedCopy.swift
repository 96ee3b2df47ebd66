import CachePolicy

/// A second copy of the rows of pinned resources, in a database of its own, for when the index is damaged or lost.
///
/// After a crash it may lag behind the index until the next start.
final class PinnedCopy {
    private let path: String
    /// nil until something is pinned.
    private(set) var copy: CacheIndex?
    /// Resources whose rows may be older than the index's.
    private var lagging: Set<CacheKey> = []

    /// Opens the copy, if there is one. A damaged copy is deleted: the index has all of it.
    /// - Throws: if it cannot be used for another reason.
    init(path: String) throws(StoreError) {
        self.path = path
        guard FileSystem.exists(path) else { return }
        do throws(StoreError) {
            try IndexDamage.check(path)
            copy = try CacheIndex(path: path, role: .pinnedCopy)
        } catch .damagedIndex {
            try IndexDamage.removeFiles(path)
        }
    }

    var isThere: Bool { copy != nil }

    /// The version of the index's pins that it has caught up with (`IndexDatabase.Meta.pinVersion`). If the index's own
    /// version is lower, the index has lost its latest changes.
    var version: Int64 { ((try? copy?.database.meta(.pinVersion)) ?? nil) ?? 0 }

    /// All its keys.
    func keys() throws(StoreError) -> [CacheKey] { try copy?.pins.pinned() ?? [] }

    /// Everything in it is pinned.
    func kept(_ key: CacheKey) -> IndexPins.Kept {
        var kept = (try? copy?.pins.kept(key)) ?? IndexPins.Kept()
        kept.isPinned = true
        return kept
    }

    /// Saves updates of pinned generations. After a failure, everything known of a resource is copied, because updates
    /// alone would leave gaps.
    func save(_ updates: [IndexSaving.Update], from index: CacheIndex) throws(StoreError) {
        guard !updates.isEmpty || !lagging.isEmpty else { return }
        let updated = updates.filter { !lagging.contains($0.key) }
        lagging.formUnion(updates.map(\.key))
        try save(updated)
        lagging.subtract(updated.map(\.key))
        try copyAll(of: Array(lagging), from: index)
    }

    /// Copies everything that the index has of resources.
    func copyAll(of keys: [CacheKey], from index: CacheIndex) throws(StoreError) {
        lagging.formUnion(keys)
        var updates: [IndexSaving.Update] = []
        for key in keys { if let update = try index.update(of: key) { updates.append(update) } }
        try save(updates)
        for key in keys { try copy?.pins.restore(try index.pins.kept(key), of: key) }
        lagging.subtract(keys)
        try follow(index)
    }

    private func follow(_ index: CacheIndex) throws(StoreError) {
        guard lagging.isEmpty, let copy, let version = try index.database.meta(.pinVersion) else { return }
        try copy.database.setMeta([(.pinVersion, version)])
    }

    private func save(_ updates: [IndexSaving.Update]) throws(StoreError) {
        guard !updates.isEmpty else { return }
        let copy = try opened()
        // Session 0: chunks restored from here are verified before they are served.
        for batch in IndexSaving.Update.batches(updates) { _ = try copy.saving.save(batch, session: 0) }
        _ = try copy.pins.setPinned(true, updates.map(\.key))
    }

    func remove(_ keys: [CacheKey]) throws(StoreError) {
        lagging.subtract(keys)
        try copy?.removal.remove(keys)
    }

    private func opened() throws(StoreError) -> CacheIndex {
        if let copy { return copy }
        let made = try CacheIndex(path: path, role: .pinnedCopy)
        copy = made
        return made
    }
}
