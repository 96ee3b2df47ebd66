import CachePolicy

extension Generation {
    /// The mutable state of a generation: a value, inside the lock of its `Generation`.
    struct State: Sendable {
        var chunks: ChunkTable
        var usage = Usage()
        var news: UnsavedNews
        var head: GenerationHead
        /// Replaced by another generation: new readers do not get it, and its file is removed when nobody has it open.
        var isRetired = false
        /// Hidden from look-ups until it is finished, such as an import.
        var isHidden = false
        /// The presentation that its resource is known to be a part of.
        var whole: CacheKey?
        /// The generation that it replaces, if that was open when it was made.
        var former: GenerationID?
        /// Whether its resource is pinned or downloaded; nil if this has not changed since it was opened.
        var isKept: Bool?
        /// Whether this session's list of unfinished files names its file.
        var isListed: Bool
        /// Whether its file's name is durable.
        var isNameSynced: Bool

        /// Counts the users of a generation.
        struct Usage: Sendable {
            /// Readers and writers, whether or not they need bytes just now.
            var users = 0
            /// Of these, those that send it to players.
            var readers = 0
            /// Holds of users that were told the file's name: as long as there are any, it keeps that name, and none of
            /// it is evicted.
            var holds = 0

            mutating func beginReading() { (users, readers) = (users + 1, readers + 1) } // no trap: a few
            mutating func endReading() { (users, readers) = (users - 1, readers - 1) } // no trap: after a beginning
        }

        /// Unsaved changes beside the extents.
        struct UnsavedNews: Sendable {
            /// Whether the index has the generation's row.
            var isIndexed: Bool
            /// Requests answered from it.
            var hits: Int64 = 0
            /// Whether its resource has an older last read than its extents.
            var isRead = false
            /// What players have read of it: more of it makes it played.
            var played = ReadRanges()
            /// Whether the head differs from the one in the index.
            var isHeadChanged = false
            /// The overhead that the index knows; nil to save it in any case.
            var savedOverhead: Int64?
            /// How many users want early checkpoints.
            var eager = 0
        }

        /// Whether it cannot be found any more once it is closed.
        var isLeftover: Bool { isRetired || isHidden || chunks.length == nil || chunks.isEmpty }

        /// Whether somebody reads or fills it.
        var isNeeded: Bool { usage.users > 0 || isHidden || chunks.isLeased }

        /// Whether the index knows all present chunks.
        var isSaved: Bool { news.isIndexed && chunks.isSaved }

        /// Whether the index knows the generation, and something beside new chunks and reads has changed.
        var isChanged: Bool {
            news.isIndexed && !isRetired
                && (news.isHeadChanged || news.savedOverhead != chunks.overhead || chunks.isChanged)
        }

        /// - Returns: whether it was not retired before.
        mutating func retire() -> Bool {
            defer { isRetired = true }
            return !isRetired
        }

        /// - Parameter isSynced: whether the data will be made durable before this is saved. Otherwise new chunks are
        ///   left out.
        /// - Returns: nil if it is hidden, or its length is not known.
        mutating func takeUpdate(_ id: GenerationID, _ key: CacheKey, isSynced: Bool) -> IndexSaving.Update? {
            guard let length = chunks.length, !isHidden else { return nil }
            let former = news, extents = chunks.takeNews(isSynced: isSynced)
            news.hits = 0
            news.isIndexed = former.isIndexed || !extents.isEmpty
            news.savedOverhead = chunks.overhead
            news.isHeadChanged = false
            return IndexSaving.Update(
                id: id, key: key, head: head, length: length, geometry: chunks.geometry, overhead: chunks.overhead,
                hits: former.hits, wasIndexed: former.isIndexed,
                isHeadChanged: former.isIndexed && former.isHeadChanged,
                whole: whole, extents: extents)
        }

        /// What was read since the index was last told.
        /// - Parameter withResource: whether to include what the resource's row says of it.
        /// - Returns: nil if the index does not know the generation, or nothing was read.
        mutating func takeTouch(_ id: GenerationID, withResource: Bool) -> IndexSaving.Touch? {
            guard news.isIndexed, !isRetired else { return nil }
            let reads = chunks.takeReads()
            news.isRead = news.isRead || !reads.isEmpty
            guard withResource, news.isRead || news.hits > 0 || !news.played.ranges.isEmpty else {
                return reads.isEmpty ? nil : IndexSaving.Touch(id: id, reads: reads)
            }
            defer { (news.isRead, news.hits, news.played) = (false, 0, ReadRanges()) }
            return IndexSaving.Touch(
                id: id, reads: reads,
                // A hit that reads nothing, as of HEAD, does not undo that it is to be evicted first.
                resource: .init(
                    hits: news.hits, lastAccess: news.isRead ? chunks.lastAccess ?? 0 : 0, played: news.played))
        }

        /// Takes hits that the index has not been told, for the generation that replaces it.
        mutating func takeHits() -> Int64 {
            defer { news.hits = 0 }
            return news.hits
        }

        /// Takes back a touch that could not be saved.
        mutating func restore(_ touch: IndexSaving.Touch) {
            chunks.restore(touch.reads)
            news.hits += touch.resource?.hits ?? 0
            for range in touch.resource?.played.ranges ?? [] { news.played.insert(range) }
            news.isRead = news.isRead || touch.resource.map { $0.lastAccess > 0 } ?? false
        }

        /// Takes back an update that could not be saved.
        mutating func restore(_ update: IndexSaving.Update) {
            news.hits += update.hits
            news.isIndexed = update.wasIndexed
            news.savedOverhead = nil
            news.isHeadChanged = news.isHeadChanged || update.isHeadChanged
            chunks.restore(update.extents)
        }

        /// Its approximate memory usage: several copies of the head, and the extents.
        var memoryBytes: Int {
            let lines = head.fields.lines.count, text = head.fieldBytes.count + head.siteBytes.count
            return 2048 + 4 * text + 160 * lines + chunks.extents.values.count * 2 * MemoryLayout<Extent>.stride
        }
    }
}
