import ArgumentParser
import Downloads
import Playlists
import Units

/// Which renditions of a playlist are downloaded, and how much of a live stream.
struct PresentationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The picture: \(RenditionChoice.Quality.forms), or the next below it. Default: best.", valueName: "quality"),
        completion: .list(["best", "worst", "2160p", "1080p", "720p", "480p"]),
        transform: Self.quality)
    var quality: RenditionChoice.Quality?
    @Option(
        help: ArgumentHelp("Languages of the sound, such as en,de; all, none, or default.", valueName: "languages"),
        completion: .list(["all", "none", "default"]),
        transform: Self.languages)
    var audio: RenditionChoice.Languages?
    @Option(
        help: ArgumentHelp(
            "Languages of the subtitles, such as en,de; all, or none (default).", valueName: "languages"),
        completion: .list(["all", "none"]),
        transform: Self.languages)
    var subtitles: RenditionChoice.Languages?
    @Flag(help: "All qualities, languages and subtitles.")
    var all = false
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Record a live stream for so long, such as 30m or 2h.", valueName: "time"),
        transform: Self.time)
    var recordFor: Int64?

    /// Whether none of them is given.
    var isDefault: Bool { quality == nil && audio == nil && subtitles == nil && !all && recordFor == nil }

    var choice: RenditionChoice {
        var choice = RenditionChoice()
        choice.quality = quality ?? choice.quality
        choice.audio = audio ?? choice.audio
        choice.subtitles = subtitles ?? choice.subtitles
        choice.isEverything = all
        return choice
    }

    func validate() throws {
        guard !all || quality == nil && audio == nil && subtitles == nil else {
            throw ValidationError("--all takes every rendition: leave it away, or --quality, --audio and --subtitles")
        }
    }

    private static func quality(_ text: String) throws -> RenditionChoice.Quality {
        guard let quality = RenditionChoice.Quality(text) else {
            throw ValidationError("write \(RenditionChoice.Quality.forms)")
        }
        return quality
    }

    private static func languages(_ text: String) throws -> RenditionChoice.Languages {
        guard let languages = RenditionChoice.Languages(text) else {
            throw ValidationError("write \(RenditionChoice.Languages.forms)")
        }
        return languages
    }

    private static func time(_ text: String) throws -> Int64 {
        guard let time = TimeSpan(text), (1...DownloadOrder.longestRecording).contains(time.seconds) else {
            throw ValidationError("write a time like 30m or 2h, a week at most")
        }
        return time.seconds
    }
}
