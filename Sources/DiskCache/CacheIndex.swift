import CachePolicy

/// The persistent state, in SQLite: resources, generations and the bitmaps of their extents. Each of its parts offers
/// one kind of operation. All of them wait for the disk, so they must not be called on a loop.
final class CacheIndex: Sendable {
    let database: IndexDatabase
    /// A filter that knows most of the keys which the index lacks.
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

    /// Everything known about a resource, to be stored in another index.
    func update(of key: CacheKey) throws(StoreError) -> IndexSaving.Update? {
        guard let row = try rows.generation(of: key), let extents = try rows.extents(of: row) else { return nil }
        return IndexSaving.Update(row, extents)
    }
}
