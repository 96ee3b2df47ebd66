import CachePolicy

/// What the download of a presentation needs of the store. All of it blocks, like what people ask for.
extension CacheStore {
    /// Makes what has come of a presentation durable, makes resources parts of it, and notes that they were downloaded.
    /// - Parameters:
    ///   - keys: its parts, whoever has fetched them; each time some of them, if there are many.
    ///   - whole: the cache key of its first playlist.
    /// - Throws: where the index could not be told of it.
    package func settle(_ keys: [CacheKey], partsOf whole: CacheKey) throws(StoreError) {
        queue.sync { $0.checkpointer.checkpoint() }
        try join(keys, to: whole)
        try administration.setDownloaded(keys)
    }

    /// Notes that a presentation was downloaded, and pins it with its parts if that is wanted.
    package func settle(whole: CacheKey, isPinned: Bool) throws(StoreError) {
        queue.sync { $0.checkpointer.checkpoint() }
        try administration.setDownloaded(whole)
        if isPinned { _ = try setPinned(true, whole) }
    }
}
