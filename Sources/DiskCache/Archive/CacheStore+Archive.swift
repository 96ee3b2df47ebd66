import CachePolicy
import HTTPModel

/// Archives of a cache. All of these methods block, like other commands.
extension CacheStore {
    /// - Parameters:
    ///   - generations: only these, as `ArchiveSelection` writes them; nil for everything. Those that are not there any
    ///     more are left out.
    ///   - isTold: whether a resource's head, as JSON, may be told.
    package func exportArchive(
        of generations: [String]? = nil, isTold: @escaping @Sendable ([UInt8]) -> Bool = { _ in true }
    )
        throws(StoreError) -> ArchiveExport
    {
        ArchiveExport(core, queue, loader, try archiveCatalog(generations, isTold))
    }

    /// Lists what `exportArchive` would export.
    package func listArchive(
        of generations: [String]? = nil, isTold: @escaping @Sendable ([UInt8]) -> Bool = { _ in true }
    )
        throws(StoreError) -> ArchiveList
    {
        ArchiveList(try archiveCatalog(generations, isTold))
    }

    private func archiveCatalog(_ generations: [String]?, _ isTold: @escaping @Sendable ([UInt8]) -> Bool)
        throws(StoreError) -> ArchiveCatalog
    {
        try ArchiveCatalog(core, queue, only: generations?.compactMap(ArchiveSelection.init(_:)), isTold: isTold)
    }

    package func importArchive(_ options: ArchiveOptions) -> ArchiveImport { ArchiveImport(self, options) }

    /// Which resources of another cache's list would be imported now, and for how many there is no room. Those that are
    /// not valid are left out.
    /// - Parameter claimed: bytes that are going to be imported beside these, from earlier in the list.
    package func wanted(_ heads: [ArchiveHead], beside claimed: Int64 = 0, _ options: ArchiveOptions)
        throws(StoreError) -> WantedHeads
    {
        let now = AccessClock.now()
        var (wanted, spare) = (WantedHeads(), ledger.spare -| claimed)
        for head in heads {
            guard let resource = try? head.checked(now: now) else { continue }
            let own = try administration.ownVersion(of: resource.key)
            let decision = ArchiveDecision(
                resource, own: own, isBeingDownloaded: options.isBeingDownloaded(resource.key))
            if case .pass = decision { continue }
            let bytes = resource.bytesWithOverhead
            if bytes > spare, try index.listing.evictableBytes(readBefore: resource.lastAccess) < bytes -| spare {
                wanted.noRoom += 1
                continue
            }
            wanted.heads.append(head)
            if decision == .extend, let start = own?.firstLacking(of: resource), start > 0 {
                wanted.starts[head.generation] = start
            }
            wanted.bytes +|= bytes
            spare -|= bytes
        }
        return wanted
    }
}

/// What a cache wants of another's list.
package struct WantedHeads {
    package var heads: [ArchiveHead] = []
    /// The first byte that is lacking of those that are cached in part, by generation.
    package var starts: [String: Int64] = [:]
    /// The room that these take.
    package var bytes: Int64 = 0
    /// For how many more there is no room.
    package var noRoom = 0
}

extension Administration {
    /// What is cached of a resource; nil for nothing.
    func ownVersion(of key: CacheKey) throws(StoreError) -> OwnVersion? {
        if let open = core.open.newest(of: key) {
            let known = open.presentRanges
            return OwnVersion(
                id: open.id, head: open.head, length: known?.length, geometry: open.geometry,
                present: known?.present ?? [], isKept: open.isKept, isBeingFilled: open.isBeingFilled)
        }
        let found: CacheIndex.GenerationRow?
        do throws(StoreError) { found = try core.index.rows.generation(of: key) } catch .damagedRow {
            // Looking it up removes the damage.
            _ = try loader.load(key)
            return nil
        }
        guard let row = found else { return nil }
        let extents = try core.index.rows.presence(of: row).map { ($0.ordinal, $0.present) }
        return OwnVersion(
            id: row.id, head: row.head, length: row.length, geometry: row.geometry,
            present: row.geometry.ranges(of: extents, length: row.length), isKept: try core.index.pins.isKept(key),
            isBeingFilled: false)
    }

    /// Whether there is room for this many bytes, if what was read before a time is evicted. Nothing is evicted yet:
    /// it is only somebody else's word that so many will come.
    func couldHold(_ bytes: Int64, readBefore time: Int64) throws(StoreError) -> Bool {
        let lacking = bytes -| core.ledger.spare
        guard lacking > 0 else { return true }
        // Until then, the index does not know the last chunks and reads.
        queue.sync { $0.checkpointer.checkpoint(touchesToo: true) }
        return try core.index.listing.evictableBytes(readBefore: time) >= lacking
    }
}
