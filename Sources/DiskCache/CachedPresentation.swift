import HTTPModel

/// How much of a presentation (an HLS or DASH film) is cached, according to its stored playlists.
public struct CachedPresentation: Codable, Sendable, Equatable {
    /// One sequence of segments.
    public struct Rendition: Codable, Sendable, Equatable, Identifiable {
        /// A name for people, unique within the presentation: `1080p 4.5 Mbit/s`, `audio en`, `subtitles de`.
        public package(set) var name: String
        /// `video`, `audio`, `subtitles` or `image`.
        package var kind: String
        /// Bits per second, if the playlist says so.
        package var bandwidth: Int64?
        /// The number of segments; 0 if its playlist is not cached.
        public package(set) var segments = 0
        /// The number of completely cached segments.
        public package(set) var cachedSegments = 0
        /// The number of cached bytes of segments, initialization sections and keys.
        public package(set) var cachedBytes: Int64 = 0
        /// Whether everything that it needs is cached: segments, playlist, initialization sections and keys.
        public package(set) var isComplete = false
        /// Whether it is encrypted.
        package var isEncrypted = false
        /// The URL of its media playlist; nil if it has none of its own (DASH).
        package var url: String?
        /// Its segments in order, if requested.
        package var segmentList: [SegmentReport]?
        /// Its initialization sections, if requested.
        package var initializations: [PlaceReport]?

        private enum CodingKeys: String, CodingKey {
            case name, kind, bandwidth, segments, cachedSegments, isComplete, isEncrypted, url, segmentList
            case initializations
            case cachedBytes = "cached"
        }

        package init(name: String, kind: String, bandwidth: Int64? = nil) {
            (self.name, self.kind, self.bandwidth) = (name, kind, bandwidth)
        }

        /// The same as `name`.
        public var id: String { name }
    }

    /// `hls` or `dash`.
    package var kind: String
    /// The title that its author has given it; nil if there is none.
    public package(set) var title: String?
    /// The segments of all renditions, and how many of them are cached.
    package var segments: Int
    package var cachedSegments: Int
    /// Whether all renditions are completely cached.
    public package(set) var isComplete: Bool
    /// Whether completely cached renditions can be played by themselves, so that it plays without its origin.
    public package(set) var isPlayable: Bool
    /// Whether more segments may follow.
    public package(set) var isLive: Bool
    /// The renditions, in the order of the playlist.
    public package(set) var renditions: [Rendition]

    package init(kind: String, title: String?, isPlayable: Bool, isLive: Bool, renditions: [Rendition]) {
        (self.kind, self.title, self.isPlayable, self.isLive) = (kind, title, isPlayable, isLive)
        self.renditions = renditions
        segments = renditions.reduce(0) { $0 +| $1.segments }
        cachedSegments = renditions.reduce(0) { $0 +| $1.cachedSegments }
        isComplete = !renditions.isEmpty && renditions.allSatisfy(\.isComplete)
    }
}

/// A file, or a range of one.
package struct PlaceReport: Codable, Sendable, Equatable {
    package var url: String
    /// nil for the whole file.
    package var range: ByteSpan?

    package init(url: String, range: ByteSpan?) { (self.url, self.range) = (url, range) }
}

/// A segment of a rendition.
package struct SegmentReport: Codable, Sendable, Equatable {
    /// Its number in the playlist.
    package var number: Int64
    package var url: String
    /// The range of the file; nil for the whole.
    package var range: ByteSpan?
    /// In seconds.
    package var duration: Double
    /// Cached bytes.
    package var cached: Int64
    package var isCached: Bool

    package init(number: Int64, url: String, range: ByteSpan?, duration: Double, cached: Int64, isCached: Bool) {
        (self.number, self.url, self.range) = (number, url, range)
        (self.duration, self.cached, self.isCached) = (duration, cached, isCached)
    }
}
