import HTTPModel

/// What of a presentation is cached, as its stored playlists tell. Sizes are bytes.
package struct PresentationReport: Codable, Sendable, Equatable {
    /// `hls` or `dash`.
    package var kind: String
    /// As its author gives it; nil where none is given.
    package var title: String?
    /// Of all renditions, and how many of them are cached.
    package var segments: Int
    package var cachedSegments: Int
    /// Whether all renditions are cached as a whole.
    package var isComplete: Bool
    /// Whether some are that can be played by themselves: it then plays without its origin.
    package var isPlayable: Bool
    /// Whether more segments may come.
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
    /// For people, and unlike the others of the presentation: `1080p 4.5 Mbit/s`, `audio en`, `subtitles de`.
    package var name: String
    /// `video`, `audio`, `subtitles` or `image`.
    package var kind: String
    /// Bits per second, where the playlist says so.
    package var bandwidth: Int64?
    /// How many it lists; 0 where its playlist is not cached.
    package var segments: Int
    package var cachedSegments: Int
    /// Bytes cached of segments, initialization sections and keys.
    package var cached: Int64
    /// Whether all its segments are cached, with its playlist, initialization sections and keys.
    package var isComplete: Bool
    /// Whether it is encrypted.
    package var isEncrypted: Bool
    /// Of its media playlist; nil where it has none of its own (DASH).
    package var url: String?
    /// Its segments in order, where these were asked for.
    package var segmentList: [SegmentReport]?
    /// What decoders need before them, likewise.
    package var initializations: [PlaceReport]?

    package init(name: String, kind: String, bandwidth: Int64? = nil) {
        (self.name, self.kind, self.bandwidth) = (name, kind, bandwidth)
        (segments, cachedSegments, cached, isComplete, isEncrypted) = (0, 0, 0, false, false)
    }
}

/// A file, or a part of one.
package struct PlaceReport: Codable, Sendable, Equatable {
    package var url: String
    /// nil for all of it.
    package var range: ByteSpan?

    package init(url: String, range: ByteSpan?) { (self.url, self.range) = (url, range) }
}

/// A segment of a rendition.
package struct SegmentReport: Codable, Sendable, Equatable {
    /// As the playlist counts.
    package var number: Int64
    package var url: String
    /// Of the file; nil for all of it.
    package var range: ByteSpan?
    /// Seconds.
    package var duration: Double
    /// Bytes cached.
    package var cached: Int64
    package var isCached: Bool

    package init(number: Int64, url: String, range: ByteSpan?, duration: Double, cached: Int64, isCached: Bool) {
        (self.number, self.url, self.range) = (number, url, range)
        (self.duration, self.cached, self.isCached) = (duration, cached, isCached)
    }
}
