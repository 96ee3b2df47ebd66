import CachePolicy

/// A second copy of the rows of pinned resources, in a database of its own: where the index is damaged or gone, they
/// come back from here.
///
/// It may lag behind the index by what a crash left out, until the next start.
final class PinnedCopy {
    private let path: String
    /// nil until something is pinned.
    private var copy: CacheIndex?
    /// Resources of which it may lack something that the index has been told.
    private var lagging: Set<CacheKey> = []

    /// Opens the copy, if there is one. A damaged one is thrown away: the index has all of it.
    /// - Throws: where it cannot be used, but is not damaged.
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

    /// The version of the index's pins that it has followed to (`IndexDatabase.Meta.pinVersion`). Where the index itself
    /// is behind that, it has lost what was last written to it.
    var version: Int64 { ((try? copy?.database.meta(.pinVersion)) ?? nil) ?? 0 }

    /// The keys that it has.
    func keys() throws(StoreError) -> [CacheKey] { try copy?.pins.pinned() ?? [] }

    func update(of key: CacheKey) throws(StoreError) -> CacheIndex.Update? { try copy?.update(of: key) }

    /// All that it has is pinned.
    func kept(_ key: CacheKey) -> CacheIndex.Kept {
        CacheIndex.Kept(isPinned: true, isDownloaded: (try? copy?.pins.kept(key).isDownloaded) ?? false)
    }

    /// Notes of a resource that it has that somebody has had it downloaded.
    func setDownloaded(_ key: CacheKey) throws(StoreError) { try copy?.pins.setDownloaded(key) }

    /// Takes over news of pinned generations. After one that failed, all of a resource is copied, as news alone would
    /// leave gaps.
    func save(_ updates: [CacheIndex.Update], from index: CacheIndex) throws(StoreError) {
        guard !updates.isEmpty || !lagging.isEmpty else { return }
        let updated = updates.filter { !lagging.contains($0.key) }
        lagging.formUnion(updates.map(\.key))
        try save(updated)
        lagging.subtract(updated.map(\.key))
        try copyAll(of: Array(lagging), from: index)
    }

    /// Copies all that the index has of a resource.
    func copyAll(of key: CacheKey, from index: CacheIndex) throws(StoreError) { try copyAll(of: [key], from: index) }

    func copyAll(of keys: [CacheKey], from index: CacheIndex) throws(StoreError) {
        lagging.formUnion(keys)
        var updates: [CacheIndex.Update] = []
        for key in keys { if let update = try index.update(of: key) { updates.append(update) } }
        try save(updates)
        for key in keys where try index.pins.kept(key).isDownloaded { try setDownloaded(key) }
        lagging.subtract(keys)
        try follow(index)
    }

    private func follow(_ index: CacheIndex) throws(StoreError) {
        guard lagging.isEmpty, let copy, let version = try index.database.meta(.pinVersion) else { return }
        try copy.database.setMeta([(.pinVersion, version)])
    }

    private func save(_ updates: [CacheIndex.Update]) throws(StoreError) {
        guard !updates.isEmpty else { return }
        let copy = try opened()
        // Session 0: what comes back from here is verified before it is served.
        for batch in CacheIndex.Update.batches(updates) { _ = try copy.saving.save(batch, session: 0) }
        _ = try copy.pins.setPinned(true, updates.map(\.key))
    }

    func remove(_ key: CacheKey) throws(StoreError) { try remove([key]) }

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

    var allocatedBytes: Int64 { copy?.allocatedBytes ?? 0 }

    func close() throws(StoreError) { try copy?.close() }
}
