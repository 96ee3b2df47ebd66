import Activity

/// The counters of an open cache at one moment. Counts are since it was opened, sizes are in bytes.
public struct CacheStatistics: Sendable, Equatable {
    /// The disk space used by the cache, index included.
    public let size: Int64
    /// The limit of `size`.
    public let maxSize: Int64
    /// The disk space to keep free.
    public let minFree: Int64
    /// Players' requests.
    public let requests: UInt64
    /// Requests answered from the cache alone.
    public let hits: UInt64
    /// Requests answered from the cache in part.
    public let partialHits: UInt64
    /// Requests for which all bytes came from the origin.
    public let misses: UInt64
    /// Bytes sent to players from the cache.
    public let bytesFromCache: UInt64
    /// Bytes sent to players while they arrived from origins.
    public let bytesFromOrigins: UInt64
    /// Bytes received from origins, downloads included.
    public let receivedBytes: UInt64
    /// Bytes evicted to make room.
    public let evictedBytes: UInt64
    /// Open connections of players.
    public let connections: Int64

    init(_ stats: StatsSnapshot) {
        (size, maxSize, minFree) = (stats[\.size], stats[\.limit], stats[\.minFree])
        (requests, hits, partialHits, misses) = (
            stats[\.requests], stats[\.hits], stats[\.partialHits], stats[\.misses]
        )
        (bytesFromCache, bytesFromOrigins, receivedBytes) = (
            stats[\.bytesFromCache], stats[\.bytesFromUpstream], stats[\.upstreamBytes]
        )
        (evictedBytes, connections) = (stats[\.evictedBytes], stats[\.connections])
    }
}
