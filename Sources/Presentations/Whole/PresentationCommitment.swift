import CachePolicy
import DiskCache
import Playlists

extension PresentationFill {
    /// Finishes a presentation's download: checks that all of it is cached, makes it durable, and joins its parts.
    /// Blocks.
    struct Commitment: Sendable {
        let store: CacheStore
        let policy: ProxyPolicy
        /// The cache key of the first playlist.
        let whole: CacheKey
        let isPinned: Bool
        /// Called now and then; false stops the work.
        let isWanted: @Sendable () -> Bool

        /// The most keys passed to the store at a time.
        private static let batch = 512

        /// - Returns: the items that are no longer cached, because they were evicted or could not be written; in that
        ///   case the presentation is not marked as downloaded.
        func commit(_ items: PresentationItems, playlists: [OriginURL]) throws(StoreError) -> [PresentationItem] {
            try store.commit(playlists.map(key), partsOf: whole)
            var (rest, keys) = (items, [CacheKey]())
            while isWanted(), let item = rest.next() {
                keys.append(key(item.url))
                guard keys.count == Self.batch else { continue }
                try store.commit(keys, partsOf: whole)
                keys = []
            }
            try store.commit(keys, partsOf: whole)
            let missing = try missing(of: items)
            if missing.isEmpty { try store.commit(whole: whole, isPinned: isPinned, isWanted: isWanted) }
            return missing
        }

        private func missing(of items: PresentationItems) throws(StoreError) -> [PresentationItem] {
            var (parts, items, missing) = (try CachedParts(of: whole, store, policy), items, [PresentationItem]())
            while isWanted(), let item = items.next() {
                guard !item.isSurmised else { continue }
                if try !parts.state(of: item.url, item.range).isWhole { missing.append(item) }
            }
            return missing
        }

        private func key(_ url: OriginURL) -> CacheKey { policy.resolve(url).key }
    }
}
