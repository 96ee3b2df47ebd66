import HTTPModel

/// How much of a presentation is cached, according to its stored playlists. Sizes are in bytes.
package struct PresentationReport: Codable, Sendable, Equatable {
    /// `hls` or `dash`.
    package var kind: String
    /// The author's title; nil if there is none.
    package var title: String?
    /// The segments of all renditions, and how many of them are cached.
    package var segments: Int
    package var cachedSegments: Int
    /// Whether all renditions are completely cached.
    package var isComplete: Bool
    /// Whether enough complete renditions are cached to play without the origin.
    package var isPlayable: Bool
    /// Whether more segments may be added.
    package var isLive: Bool
    /// In the order of the playlist.
    package var renditions: [RenditionReport]

    package init(
        kind: String, title: String?, isPlayable: Bool, isLive: Bool, renditions: [RenditionReport]
    ) {
        (self.kind, self.title, self.isPlayable, self.isLive) = (kind, title, isPlayable, isLive)
        self.renditions = renditions
        segments = renditions.reduce(0) { $0 +| $1.segments }
        cachedSegments = renditions.reduce(0) { $0 +| $1.cachedSegments }
        isComplete = !renditions.isEmpty && renditions.allSatisfy(\.isComplete)
    }
}

/// One sequence of segments.
package struct RenditionReport: Codable, Sendable, Equatable {
    /// A name for people, unique within the presentation: `1080p 4.5 Mbit/s`, `audio en`, `subtitles de`.
    package var name: String
    /// `video`, `audio`, `subtitles` or `image`.
    package var kind: String
    /// Bits per second, if the playlist says so.
    package var bandwidth: Int64?
    /// The number of listed segments; 0 if its playlist is not cached.
    package var segments: Int
    package var cachedSegments: Int
    /// The cached bytes of segments, initialization sections and keys.
    package var cached: Int64
    /// Whether all its segments are cached, with its playlist, initialization sections and keys.
    package var isComplete: Bool
    /// Whether it is encrypted.
    package var isEncrypted: Bool
    /// The URL of its media playlist; nil if it has none of its own (DASH).
    package var url: String?
    /// Its segments in order, if requested.
    package var segmentList: [SegmentReport]?
    /// Its initialization sections, if requested.
    package var initializations: [PlaceReport]?

    package init(name: String, kind: String, bandwidth: Int64? = nil) {
        (self.name, self.kind, self.bandwidth) = (name, kind, bandwidth)
        (segments, cachedSegments, cached, isComplete, isEncrypted) = (0, 0, 0, false, false)
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
