import CachePolicy

/// What brings bytes into the cache for a download.
package protocol DownloadSource: Sendable {
    /// Whether origins must not be asked: then nothing is begun.
    var isOffline: Bool { get }

    /// Begins at once. Whose turn it is was decided before: `priority` and `category` mean nothing here.
    /// - Parameter end: called once, on any thread, unless `stop` came before.
    func begin(_ order: DownloadOrder, onEnd end: @escaping @Sendable (DownloadEnd) -> Void) -> any RunningDownload

    /// Bytes per second of all downloads together; nil for no limit.
    func limitAll(to rate: Int64?)
}

/// A download that is under way. From any thread.
package protocol RunningDownload: Sendable {
    var progress: DownloadProgress { get }
    /// Bytes per second; nil for no limit.
    func limit(to rate: Int64?)
    /// Ends it: what has come stays. `onEnd` need not be called any more; if it is, that is ignored. What a cancelled
    /// one has brought is removed right after.
    func stop()
}

/// How far a download is.
package struct DownloadProgress: Sendable, Equatable {
    /// Of what is wanted, so much is cached. It falls when the content changes under it.
    package var bytes: Int64 = 0
    /// What is wanted; nil while unknown.
    package var total: Int64?
    /// The origin's name for the file, as it sent it; nil where it has none.
    package var fileName: String?

    package init() {}
}

package enum DownloadEnd: Sendable, Equatable {
    case completed(DownloadProgress)
    case failed(DownloadFault, DownloadProgress)
}

/// Why a download does not go on by itself.
package struct DownloadFault: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// No connection, a time-out, a transfer that broke.
        case network
        /// 5xx, 429: the origin may answer another time, and not before so many seconds if it says so.
        case busy(retryAfter: Double?)
        /// No origin is asked at the moment.
        case offline
        /// Trying again would be in vain: 403, 404, no room, not allowed.
        case final
    }

    package let kind: Kind
    /// One line that says what to do, where something can be done.
    package let message: String

    package init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }
}

/// Knows what is cached before a download begins, so that a cancelled one leaves what it found. Blocks.
package protocol RestorePointKeeper: Sendable {
    /// What of a resource is there now, before anything is fetched for it.
    func restorePoint(_ url: OriginURL) throws -> RestorePoint
    /// Removes what was not there before, unless it is in use or a player has used it; unpins what was not pinned
    /// before.
    /// - Returns: the bytes freed on the disk.
    func release(_ restorePoint: RestorePoint) throws -> Int64
}

/// What of a resource was cached before a download. Kept with the download.
package struct RestorePoint: Codable, Sendable, Equatable {
    /// One generation that was there.
    package struct Former: Codable, Sendable, Equatable {
        package var generation: String
        /// First and past-the-last byte of each run that was present, one after the other.
        package var present: [Int64]
        package var hits: Int64
        package var isPinned: Bool

        package init(generation: String, present: [Int64], hits: Int64, isPinned: Bool = false) {
            (self.generation, self.present, self.hits, self.isPinned) = (generation, present, hits, isPinned)
        }
    }

    /// The resource's cache key.
    package var key: String
    package var wasPinned: Bool
    package var former: [Former]
    /// Whether a presentation had more parts than are listed: then none goes of which nothing is known. nil for false.
    package var hasMoreParts: Bool?

    package init(key: String, wasPinned: Bool, former: [Former], hasMoreParts: Bool = false) {
        (self.key, self.wasPinned, self.former) = (key, wasPinned, former)
        self.hasMoreParts = hasMoreParts ? true : nil
    }
}
