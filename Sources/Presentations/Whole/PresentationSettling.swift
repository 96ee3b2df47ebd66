import CachePolicy
import DiskCache
import Playlists

/// The end of a presentation's download: all of it is there, durable, and known to belong together. Blocks.
struct PresentationSettling: Sendable {
    let store: CacheStore
    let policy: ProxyPolicy
    /// Of the first playlist.
    let whole: CacheKey
    let isPinned: Bool
    /// Asked now and then.
    let isWanted: @Sendable () -> Bool

    /// So many keys are told at a time.
    private static let batch = 512

    /// - Returns: what is not there any more, as it was evicted or the disk did not take it; the presentation then is
    ///   not settled.
    func settle(_ items: PresentationItems, playlists: [OriginURL]) throws(StoreError) -> [PresentationItem] {
        try store.settle(playlists.map(key), partsOf: whole)
        var (rest, keys) = (items, [CacheKey]())
        while isWanted(), let item = rest.next() {
            keys.append(key(item.url))
            guard keys.count == Self.batch else { continue }
            try store.settle(keys, partsOf: whole)
            keys = []
        }
        try store.settle(keys, partsOf: whole)
        let missing = try missing(of: items)
        if missing.isEmpty, isWanted() { try store.settle(whole: whole, isPinned: isPinned) }
        return missing
    }

    private func missing(of items: PresentationItems) throws(StoreError) -> [PresentationItem] {
        var (parts, items, missing) = (try CachedParts(of: whole, store, policy), items, [PresentationItem]())
        while isWanted(), let item = items.next() {
            if try !parts.state(of: item.url, item.range).isWhole { missing.append(item) }
        }
        return missing
    }

    private func key(_ url: OriginURL) -> CacheKey { policy.resolve(url).key }
}
