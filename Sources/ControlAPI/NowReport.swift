import Activity
import Downloads

/// What happens at one moment. Sizes are in bytes, times in seconds since 1970.
package struct NowReport: Codable, Sendable, Equatable {
    package struct Cache: Codable, Sendable, Equatable {
        package var size: Int64
        package var limit: Int64
        /// Cached bytes of pinned resources, and free ones on the disk, of which the cache leaves `minFree`; measured
        /// once a minute, nil before.
        package var pinned, free, minFree: Int64?

        package init(size: Int64, limit: Int64) { (self.size, self.limit) = (size, limit) }
    }

    /// The bytes sent to players since the proxy began.
    package struct Served: Codable, Sendable, Equatable {
        package var fromCache: UInt64
        package var fromOrigin: UInt64
        /// The share of the former, 0 to 1; nil before the first byte.
        package var hitRatio: Double?
        /// Responses to players whose status is 500 or more.
        package var failures: UInt64?

        package init(fromCache: UInt64, fromOrigin: UInt64, hitRatio: Double?) {
            (self.fromCache, self.fromOrigin, self.hitRatio) = (fromCache, fromOrigin, hitRatio)
        }
    }

    /// How many entries of each list were left out, because it is too long.
    package struct Hidden: Codable, Sendable, Equatable {
        package var plays = 0
        package var transfers = 0
        package var downloads = 0

        package init() {}
    }

    package var time: Int64
    package var plays: [PlayReport]
    package var transfers: [TransferReport]
    /// Those that have not ended: running ones, then those that wait, then paused ones.
    package var downloads: [Download]
    package var queue: DownloadTotals
    package var cache: Cache
    package var served: Served
    package var hidden = Hidden()

    /// The most downloads of a report.
    package static let mostDownloads = 100

    package init(
        time: Int64, plays: [PlayReport], transfers: [TransferReport], downloads: [Download],
        queue: DownloadTotals, cache: Cache, served: Served
    ) {
        (self.time, self.plays, self.transfers, self.downloads) = (time, plays, transfers, downloads)
        (self.queue, self.cache, self.served) = (queue, cache, served)
    }
}
