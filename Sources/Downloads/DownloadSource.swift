import CachePolicy
import DiskCache
import HTTPModel
import Presentations

/// Fetches bytes into the cache for downloads.
package protocol DownloadSource: Sendable {
    /// Whether origins must not be contacted: then nothing begins.
    var isOffline: Bool { get }

    /// Begins at once. The order of downloads was decided before: `priority` and `category` have no meaning here.
    /// - Parameter end: called once, on any thread, unless `stop` was called before.
    func begin(_ order: DownloadOrder, onEnd end: @escaping @Sendable (DownloadEnd) -> Void) -> any RunningDownload

    /// Bytes per second of all downloads together; nil for no limit.
    func limitAll(to rate: Int64?)

    /// Bytes per second of all downloads that obey the schedule (not `isAtOnce`); nil for no limit.
    func limitScheduled(to rate: Int64?)
}

/// A running download. Can be used from any thread.
package protocol RunningDownload: Sendable {
    var progress: DownloadProgress { get }
    /// The bytes that its transfers have delivered: not those that were cached before, nor those that a player's
    /// transfer delivered. Grows, and is final after `stop`.
    var fetched: Int64 { get }
    /// Bytes per second; nil for no limit.
    func limit(to rate: Int64?)
    /// Ends it and keeps the bytes that have arrived. `onEnd` need not be called any more; if it is, that is ignored.
    /// The bytes of a cancelled download are removed right after this.
    func stop()
}

/// The progress of a download.
package typealias DownloadProgress = PresentationState.Progress

extension DownloadProgress {
    /// The bytes still to come; nil if unknown. For a presentation, an estimate from the segments so far.
    var rest: Int64? {
        guard total == nil, let segments, let totalSegments, segments > 0 else { return total.map { $0 -| bytes } }
        let rest = Double(bytes) / Double(segments) * Double(max(0, totalSegments -| segments))
        return Int64(whole: rest.rounded())
    }
}

package enum DownloadEnd: Sendable, Equatable {
    case completed(DownloadProgress)
    case failed(DownloadFault, DownloadProgress)
}

/// Why a download does not continue by itself.
package struct DownloadFault: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// No connection, a time-out, a broken transfer.
        case network
        /// 5xx or 429: the origin may answer later, after this many seconds if it says so.
        case busy(retryAfter: Double?)
        /// The proxy is offline.
        case offline
        /// It is cached under another key than the one of its restore point: it begins again under that one.
        case moved
        /// Retrying would be in vain: 403, 404, no room, not allowed.
        case final
    }

    package let kind: Kind
    /// One line that names the remedy, if there is one.
    package let message: String
    /// The host to which no connection could be made; nil for other faults.
    package let unreachable: String?
    /// Whether the cache has no room for it.
    package let lacksRoom: Bool

    package init(_ kind: Kind, _ message: String, unreachable: String? = nil, lacksRoom: Bool = false) {
        (self.kind, self.message, self.unreachable, self.lacksRoom) = (kind, message, unreachable, lacksRoom)
    }
}

/// What downloads need of the cache: it records what is cached before one begins, so that cancelling it can return to
/// that. Blocks.
package protocol RestorePointKeeper: Sendable {
    /// The current content of a resource, before anything is fetched for it.
    func restorePoint(_ url: OriginURL) throws -> RestorePoint
    /// The cache key of a resource: that of a page can change when its media is found.
    func key(of url: OriginURL) -> String
    /// Removes what was not cached before, unless it is in use or a player has used it, and unpins what was not pinned
    /// before.
    /// - Returns: the bytes freed on the disk.
    func release(_ restorePoint: RestorePoint) throws -> Int64
    /// Notes what the order of a resource said of it, by its cache key.
    func noteOrder(title: String?, category: String?, isByHand: Bool, of key: String) throws
    /// The pinned resources that people miss least, in that order.
    func leastMissed(limit: Int) throws -> [CachedResource]
}
