import DiskCache

/// How much of a presentation (an HLS or DASH film) is cached at one moment.
public struct CachedPresentation: Sendable, Equatable {
    /// One sequence of segments.
    public struct Rendition: Sendable, Equatable, Identifiable {
        /// A name for people, unique within the presentation: `1080p 4.5 Mbit/s`, `audio en`, `subtitles de`.
        public let name: String
        /// The number of segments; 0 if its playlist is not cached.
        public let segments: Int
        /// The number of completely cached segments.
        public let cachedSegments: Int
        /// The number of cached bytes.
        public let cachedBytes: Int64
        /// Whether everything that it needs is cached.
        public let isComplete: Bool

        /// The same as `name`.
        public var id: String { name }
    }

    /// The title that its author has given it; nil if there is none.
    public let title: String?
    /// Whether completely cached renditions can be played by themselves, so that it plays without its origin.
    public let isPlayable: Bool
    /// Whether all renditions are completely cached.
    public let isComplete: Bool
    /// Whether more segments may follow.
    public let isLive: Bool
    /// The renditions, in the order of the playlist.
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
