import Playlists

/// Which renditions of a playlist are wanted: the best picture with its default sound and no subtitles, unless something
/// else is said.
public struct Renditions: Sendable, Hashable {
    /// How good a picture; a sound, where there is no picture.
    public enum Quality: Sendable, Hashable {
        /// The largest picture, of equals the one with the highest rate.
        case best
        /// The smallest one.
        case worst
        /// As many lines, 1080 for 1080p, or the next below; the fewest where all have more.
        case lines(Int)
        /// So many bits per second at most; the least where all have more.
        case bitsPerSecond(Int64)
    }

    /// Some of the languages there are.
    public enum Languages: Sendable, Hashable {
        /// The one that a player takes that has not been told.
        case standard
        /// None of them.
        case none
        /// Each of them.
        case all
        /// Those that are there of these, as BCP 47 writes them: `de` is also `de-AT`.
        case only([String])
    }

    /// How good a picture.
    public var quality = Quality.best
    /// The languages of the sound. Where none of them is there, the default comes all the same.
    public var audio = Languages.standard
    /// The languages of the subtitles.
    public var subtitles = Languages.none
    /// All renditions that there are, whatever the rest says.
    public var isEverything = false

    /// The best picture with its default sound.
    public init() {}

    /// The same but for what `change` changes.
    public init(_ change: (inout Renditions) -> Void) { change(&self) }
}

// MARK: - What the modules below call these

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
