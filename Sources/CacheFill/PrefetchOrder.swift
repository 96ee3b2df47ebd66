import CachePolicy

extension Prefetch {
    /// What to bring into the cache.
    package struct Order: Sendable {
        package let url: OriginURL
        /// The cache key under which it is to be; nil for the URL's own, whatever that turns out to be.
        package var key: CacheKey?
        /// The player's previous demand, whose request fields are used; nil if nobody plays.
        package let former: Demand?
        /// The wanted range, half-open, clamped to the resource; nil for all.
        package let range: Range<Int64>?
        /// The part of it to fetch before the rest; nil for all in order.
        package let ends: HeadAndTail?
        /// The number of parallel transfers, if the origin serves ranges.
        package let connections: Int
        /// Whether to pin it even if no rule does. Has an effect only with `keeps`.
        package let isPinned: Bool
        /// The cache key of the presentation that it is a part of; nil if it stands alone.
        package let whole: CacheKey?
        /// Whether it counts as downloaded: then it ends once it is saved in the index, and pinned if it is to be.
        /// Otherwise it ends once all bytes are present, and may be evicted like anything that was played.
        package let keeps: Bool
        /// Whether to revalidate stored bytes first, even fresh ones.
        package let isFresh: Bool

        package init(
            url: OriginURL, after former: Demand? = nil, range: Range<Int64>? = nil, ends: HeadAndTail? = nil,
            connections: Int = 1, isPinned: Bool = true, whole: CacheKey? = nil, keeps: Bool = true,
            isFresh: Bool = false
        ) {
            (self.url, self.former, self.connections, self.whole) = (url, former, connections, whole)
            (self.range, self.ends) = (range?.clamped(to: 0..<Int64.max), ends)
            (self.isPinned, self.keeps, self.isFresh) = (isPinned && keeps, keeps, isFresh)
        }

        /// Downloads make way for what a player is about to request.
        var kind: FollowerID.Kind { former == nil ? .download : .ahead }
    }
}
