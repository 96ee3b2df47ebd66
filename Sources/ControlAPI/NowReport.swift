import Activity
import CachePolicy
import Downloads

/// What happens at one moment. Sizes are in bytes, times in seconds since 1970.
package struct NowReport: Codable, Sendable, Equatable {
    package struct Cache: Codable, Sendable, Equatable {
        package var size: Int64
        package var limit: Int64
    }

    /// The bytes sent to players since the proxy began.
    package struct Served: Codable, Sendable, Equatable {
        package var fromCache: UInt64
        package var fromOrigin: UInt64
        /// The share of the former, 0 to 1; nil before the first byte.
        package var hitRatio: Double?
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

    /// As JSON, but for the downloads, which may have been written before.
    func members(_ mask: URLMask?) throws -> JSONMembers {
        var members = JSONMembers()
        try members.set("time", time, mask)
        try members.set("plays", plays, mask)
        try members.set("transfers", transfers, mask)
        try members.set("queue", queue, mask)
        try members.set("cache", cache, mask)
        try members.set("served", served, mask)
        try members.set("hidden", hidden, mask)
        return members
    }

    /// With half of each list; nil if they are empty.
    var half: NowReport? {
        guard !plays.isEmpty || !transfers.isEmpty || !downloads.isEmpty else { return nil }
        var half = self
        (half.plays, half.transfers) = (
            Array(plays.prefix(plays.count / 2)), Array(transfers.prefix(transfers.count / 2))
        )
        half.downloads = Array(downloads.prefix(downloads.count / 2))
        half.hidden.plays += plays.count - half.plays.count
        half.hidden.transfers += transfers.count - half.transfers.count
        half.hidden.downloads += downloads.count - half.downloads.count
        return half
    }

    /// Whether something else happens than at another moment.
    func differs(from other: NowReport?) -> Bool {
        guard var other else { return true }
        other.time = time
        return self != other
    }
}
