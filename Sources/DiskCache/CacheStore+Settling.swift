import CachePolicy

/// What the download of a presentation needs of the store. All of these methods block, like other commands.
extension CacheStore {
    /// Makes the bytes of a presentation's parts durable, joins the parts to it, and marks them as downloaded.
    /// - Parameters:
    ///   - keys: its parts, whoever has fetched them; call several times if there are many.
    ///   - whole: the cache key of its first playlist.
    /// - Throws: if the index could not be updated.
    package func settle(_ keys: [CacheKey], partsOf whole: CacheKey) throws(StoreError) {
        queue.sync { $0.checkpointer.checkpoint() }
        try join(keys, to: whole)
        try administration.setDownloaded(keys)
    }

    /// Marks a presentation as downloaded, and pins it with its parts if wanted.
    package func settle(whole: CacheKey, isPinned: Bool) throws(StoreError) {
        queue.sync { $0.checkpointer.checkpoint() }
        try administration.setDownloaded(whole)
        if isPinned { _ = try setPinned(true, whole) }
    }
}
