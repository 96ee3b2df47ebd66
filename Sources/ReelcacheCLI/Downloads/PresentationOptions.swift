import ArgumentParser
import Downloads
import HTTPModel
import Playlists

/// Which renditions of a stream are downloaded, and how long a live stream is recorded.
struct PresentationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Choose the picture: \(RenditionChoice.Quality.forms), or the next lower one. (default: best)",
            valueName: "quality"),
        completion: .list(["best", "worst", "2160p", "1080p", "720p", "480p"]),
        transform: Self.quality)
    var quality: RenditionChoice.Quality?
    @Option(
        help: ArgumentHelp(
            "Choose the languages of the sound, such as en,de, or all or none. (default: the stream's own choice)",
            valueName: "languages"),
        completion: .list(["all", "none", "default"]),
        transform: Self.languages)
    var audio: RenditionChoice.Languages?
    @Option(
        help: ArgumentHelp(
            "Choose the languages of the subtitles, such as en,de, or all. (default: none)", valueName: "languages"),
        completion: .list(["all", "none"]),
        transform: Self.languages)
    var subtitles: RenditionChoice.Languages?
    @Flag(help: "Download all qualities, languages and subtitles.")
    var all = false
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "Record a live HLS stream for this long, such as 30m or 2h; a week at most.", valueName: "time"),
        transform: Self.time)
    var recordFor: Int64?

    /// Whether none of these options is given.
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
            throw ValidationError(
                "--all downloads every rendition: leave it out, or leave --quality, --audio and --subtitles out")
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
        guard let time = TimeSpan(text), (1...DownloadOptions.longestRecording).contains(time.seconds) else {
            throw ValidationError("write a time like 30m or 2h; a week at most")
        }
        return time.seconds
    }
}
