import CachePolicy

/// What survives a restart: resources, generations and the bitmaps of their extents, in SQLite. What is done with them,
/// by its parts; all of it blocks on the disk, and is not to be called on a loop.
final class CacheIndex: Sendable {
    let database: IndexDatabase
    /// Which keys it has, as far as that can be told without asking it.
    let keys = KeyFilter()
    let rows: IndexRows
    let listing: IndexListing
    let pins: IndexPins
    let parts: IndexParts
    let evictionOrder: EvictionOrder
    let removal: IndexRemoval
    let saving: IndexSaving

    init(path: String, role: IndexDatabase.Role = .index) throws(StoreError) {
        database = try IndexDatabase(path: path, role: role)
        rows = IndexRows(database: database)
        listing = IndexListing(database: database)
        pins = IndexPins(database: database)
        parts = IndexParts(database: database)
        evictionOrder = EvictionOrder(database: database)
        removal = IndexRemoval(database: database)
        saving = IndexSaving(database: database, keys: keys)
    }

    func close() throws(StoreError) { try database.close() }

    /// What the index and its log take on the disk.
    var allocatedBytes: Int64 { database.allocatedBytes }

    /// All that is known of a resource, to be kept elsewhere.
    func update(of key: CacheKey) throws(StoreError) -> Update? {
        guard let row = try rows.generation(of: key), let extents = try rows.extents(of: row) else { return nil }
        return Update(row, extents)
    }
}
