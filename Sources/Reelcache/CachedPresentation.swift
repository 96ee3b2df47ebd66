import DiskCache

/// What of a presentation (an HLS or DASH film) is cached at a moment.
public struct CachedPresentation: Sendable, Equatable {
    /// One sequence of segments.
    public struct Rendition: Sendable, Equatable, Identifiable {
        /// For people, and unlike the others of the presentation: `1080p 4.5 Mbit/s`, `audio en`, `subtitles de`.
        public let name: String
        /// How many segments it has; 0 where its playlist is not cached.
        public let segments: Int
        /// How many of them are cached as a whole.
        public let cachedSegments: Int
        /// What is cached of it, in bytes.
        public let cachedBytes: Int64
        /// Whether all that it needs is cached.
        public let isComplete: Bool

        /// The same as `name`.
        public var id: String { name }
    }

    /// As its author gives it; nil where none is given.
    public let title: String?
    /// Whether renditions are cached as a whole that can be played by themselves: it then plays without its origin.
    public let isPlayable: Bool
    /// Whether all renditions are.
    public let isComplete: Bool
    /// Whether more segments may come.
    public let isLive: Bool
    /// In the order of the playlist.
    public let renditions: [Rendition]

    init(_ report: PresentationReport) {
        (title, isPlayable, isComplete, isLive) = (report.title, report.isPlayable, report.isComplete, report.isLive)
        renditions = report.renditions.map {
            Rendition(
                name: $0.name, segments: $0.segments, cachedSegments: $0.cachedSegments, cachedBytes: $0.cached,
                isComplete: $0.isComplete)
        }
    }
}
