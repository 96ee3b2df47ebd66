import Playlists

/// Which renditions of a playlist to download; by default the best picture with its default sound and no subtitles.
public struct Renditions: Sendable, Hashable {
    /// The quality of the picture, or of the sound if there is no picture.
    public enum Quality: Sendable, Hashable {
        /// The largest picture; of equal ones the one with the highest bit rate.
        case best
        /// The smallest picture.
        case worst
        /// At most this many lines, 1080 for 1080p; the fewest if all have more.
        case lines(Int)
        /// At most this many bits per second; the lowest rate if all have more.
        case bitsPerSecond(Int64)
    }

    /// A selection among the available languages.
    public enum Languages: Sendable, Hashable {
        /// The one that a player chooses by default.
        case standard
        /// No language.
        case none
        /// All languages.
        case all
        /// Those of these languages that are available, as BCP 47 tags: `de` also matches `de-AT`.
        case only([String])
    }

    /// The quality of the picture.
    public var quality = Quality.best
    /// The languages of the sound. If none of them is available, the default is downloaded nevertheless.
    public var audio = Languages.standard
    /// The languages of the subtitles.
    public var subtitles = Languages.none
    /// All available renditions, regardless of the other options.
    public var isEverything = false

    /// The best picture with its default sound.
    public init() {}

    /// The defaults with the changes that `change` makes.
    public init(_ change: (inout Renditions) -> Void) { change(&self) }
}

// MARK: - The counterparts in other modules

extension RenditionChoice {
    init(_ renditions: Renditions) {
        self.init(
            quality: Quality(renditions.quality), audio: Languages(renditions.audio),
            subtitles: Languages(renditions.subtitles), isEverything: renditions.isEverything)
    }
}

extension RenditionChoice.Quality {
    fileprivate init(_ quality: Renditions.Quality) {
        self =
            switch quality {
            case .best: .best
            case .worst: .worst
            case .lines(let lines): .lines(lines)
            case .bitsPerSecond(let rate): .bandwidth(rate)
            }
    }
}

extension RenditionChoice.Languages {
    fileprivate init(_ languages: Renditions.Languages) {
        self =
            switch languages {
            case .standard: .standard
            case .none: .none
            case .all: .all
            case .only(let names): .only(names)
            }
    }
}
