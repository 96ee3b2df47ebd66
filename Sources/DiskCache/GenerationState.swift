import CachePolicy

/// What of a generation changes: a value, inside the lock of its `Generation`.
struct GenerationState: Sendable {
    var chunks: ChunkTable
    var usage = Usage()
    var news: UnsavedNews
    var head: GenerationHead
    /// Replaced by another generation: it is not given to new readers, and its file goes when nobody has it open.
    var isRetired = false
    /// Not to be found before it is finished: it comes in from elsewhere.
    var isHidden = false
    /// The presentation that its resource is a part of, as far as somebody has said so.
    var whole: CacheKey?
    /// Whether somebody has pinned or downloaded its resource; nil where nothing was said of that since it was opened.
    var isKept: Bool?
    /// Whether this session's list of unfinished files names its file.
    var isListed: Bool
    /// Whether its file's name is durable.
    var isNameSynced: Bool

    /// Who has a generation in hand.
    struct Usage: Sendable {
        /// Readers and writers, whether or not they need bytes just now.
        var users = 0
        /// Of these, those that give it to players.
        var readers = 0
        /// Whoever has been told the file's name: until they have done, it keeps that, and nothing of it is evicted.
        var holds = 0
    }

    /// What the index has yet to be told beside the extents.
    struct UnsavedNews: Sendable {
        /// Whether the index has the generation's row.
        var isIndexed: Bool
        /// Requests that were answered from it.
        var hits: Int64 = 0
        /// Whether the head is another one than the index has.
        var isHeadChanged = false
        /// What the index knows that the file takes beside its chunks; nil to tell it in any case.
        var savedOverhead: Int64?
        /// How many want the index to know soon what has come.
        var eager = 0
    }

    /// Whether nobody will find it again once it is closed.
    var isLeftover: Bool { isRetired || isHidden || chunks.length == nil || chunks.isEmpty }

    /// Whether somebody reads or fills it.
    var isNeeded: Bool { usage.users > 0 || isHidden || chunks.isLeased }

    /// Whether the index knows all that is present.
    var isSaved: Bool { news.isIndexed && chunks.isSaved }

    /// Whether the index knows the generation, and something has changed beside its chunks.
    var isTouched: Bool {
        news.isIndexed && !isRetired
            && (news.hits > 0 || news.isHeadChanged || news.savedOverhead != chunks.overhead || chunks.isTouched)
    }

    /// - Returns: whether it was not retired before.
    mutating func retire() -> Bool {
        defer { isRetired = true }
        return !isRetired
    }

    /// Nothing of it is left, and nobody fills it: whoever wants it begins a new one.
    /// - Returns: false where it stays.
    mutating func retireIfUnused() -> Bool {
        usage.users == 0 && chunks.isUnused && retire()
    }

    /// - Parameter isSynced: whether the data will be made durable before this is saved; else nothing is said of new
    ///   chunks.
    /// - Returns: nil where nobody is to find it yet, or its end is not known.
    mutating func takeUpdate(_ id: GenerationID, _ key: CacheKey, isSynced: Bool) -> CacheIndex.Update? {
        guard let length = chunks.length, !isHidden else { return nil }
        let former = news, extents = chunks.takeNews(isSynced: isSynced)
        news.hits = 0
        news.isIndexed = former.isIndexed || !extents.isEmpty
        news.savedOverhead = chunks.overhead
        news.isHeadChanged = false
        return CacheIndex.Update(
            id: id, key: key, head: head, length: length, geometry: chunks.geometry, overhead: chunks.overhead,
            hits: former.hits, wasIndexed: former.isIndexed, isHeadChanged: former.isIndexed && former.isHeadChanged,
            whole: whole, extents: extents)
    }

    /// The index could not be told.
    mutating func restore(_ update: CacheIndex.Update) {
        news.hits += update.hits
        news.isIndexed = update.wasIndexed
        news.savedOverhead = nil
        news.isHeadChanged = news.isHeadChanged || update.isHeadChanged
        chunks.restore(update.extents)
    }

    /// About what is held in memory: the head, several times, and what is known of the extents.
    var memoryBytes: Int {
        let lines = head.fields.lines.count, text = head.fieldBytes.count + head.siteBytes.count
        return 2048 + 3 * text + 160 * lines + chunks.extents.values.count * 2 * MemoryLayout<Extent>.stride
    }
}
