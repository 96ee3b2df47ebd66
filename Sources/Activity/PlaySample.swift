import CachePolicy

/// What one player has read of one thing, as one loop sees it at a moment.
package struct PlaySample: Sendable {
    /// Tells plays apart. A player that reconnects, as all do when they seek, continues its play.
    package struct Key: Sendable, Hashable {
        package let player: PlayerID
        /// The resource, or the presentation that it is a part of.
        package let whole: CacheKey

        package init(player: PlayerID, whole: CacheKey) { (self.player, self.whole) = (player, whole) }
    }

    /// The segment that the player requested last of one rendition.
    package struct Segment: Sendable, Equatable {
        package var rendition: String
        /// Its place in the rendition, from 0, and how many segments are listed.
        package var position: Int
        package var count: Int
        /// When it was requested; monotonic, in nanoseconds.
        package var requestedAt: UInt64

        package init(rendition: String, position: Int = 0, count: Int = 0, requestedAt: UInt64 = 0) {
            (self.rendition, self.position, self.count) = (rendition, position, count)
            self.requestedAt = requestedAt
        }

        /// Another one of the same rendition was requested.
        package mutating func note(_ position: Int, of count: Int, at now: UInt64) {
            (self.position, self.count, requestedAt) = (position, count, now)
        }
    }

    package var key: Key
    /// The URL of the resource, or of the presentation's first playlist.
    package var url: String
    /// The title that the origin gives: that of the playlist, or a file name; nil for none.
    package var title: String?
    package var isPresentation = false
    /// The offsets of the next bytes that running requests send, the latest request first; where none runs, that at
    /// which the last one ended.
    package var offsets: [Int64] = []
    /// The length of what was requested last; nil while unknown.
    package var length: Int64?
    /// One for each rendition that is being played.
    package var segments: [Segment] = []
    /// Requests that are being answered.
    package var requests = 0
    /// Whether all of these wait for bytes from the origin.
    package var isStarved = false
    /// Bytes sent so far that were cached, and that were fetched meanwhile.
    package var fromCache: Int64 = 0
    package var fromOrigin: Int64 = 0
    /// When it began, and when its last request began or ended; monotonic, in nanoseconds.
    package var began: UInt64
    package var lastUse: UInt64

    package init(_ key: Key, url: String, began: UInt64, lastUse: UInt64) {
        (self.key, self.url, self.began, self.lastUse) = (key, url, began, lastUse)
    }
}
