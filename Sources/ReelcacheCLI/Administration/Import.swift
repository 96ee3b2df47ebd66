import Administration
import ArgumentParser
import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import LocalFiles
import Reelcache

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Add a file to the cache as if it had been fetched from a URL, or an archive of another cache.",
        discussion: """
            Players that request the URL then get the file.

            Without --as, the file is an archive that reelcache export --all wrote; - reads it from standard input. What is \
            cached already is skipped, so that an interrupted import continues when it is run again. A newer version \
            replaces an older one. Nothing that was played later is evicted to make room.

              reelcache import film.mp4 --as https://example.org/film.mp4
              reelcache import cache.rca
              reelcache export --all --cache-dir old | reelcache import - --cache-dir new
            """)

    @Argument(help: "The file to add; - for an archive on standard input.", completion: .file())
    var file: String
    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("The URL that players will request. (default: the file is an archive)", valueName: "url"))
    var url: String?
    @Option(
        help: ArgumentHelp(
            "Set its media type, such as video/mp4. (default: by the file's extension)", valueName: "media/type"))
    var type: String?
    @Flag(help: "Replace what is cached under that URL.")
    var replace = false
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard url != nil || type == nil && !replace else {
            throw ValidationError("--type and --replace are for a single file: name its URL with --as")
        }
        guard url == nil || file != "-" else {
            throw ValidationError(
                "standard input can be an archive, and --as is for a file: name one, or leave --as out")
        }
        if let type, !MediaType.isOne(type) {
            throw ValidationError("--type '\(type)' is not a media type: write it like video/mp4")
        }
    }

    func run() throws {
        guard let url else {
            return try ArchiveInput(file: file, json: json, secret: secret).run(cache.configuration)
        }
        let interruption = Interruption()
        let source = try ImportedFile(file)
        var fields = HeaderFields()
        if let type = type ?? MediaType.byExtension(of: file) { fields.append("Content-Type", type) }
        let configuration = try cache.configuration
        let report = try configuration.withCache(isFilled: true, isWanted: { !interruption.isWished }) { access in
            let progress = ProgressLine()
            defer { progress.clear() }
            let origin = try access.url(url)
            return try access.importFile(origin, file: source, fields: fields, replaces: replace) { done in
                progress.show("import", done, of: source.length)
                return !interruption.isWished
            }
        }
        guard !json else { return print(try secret.json(report, configuration)) }
        print("imported \(file), \(report.length.size), as \(try secret.shown(report.url, configuration))")
    }
}

/// Media types of files that players play.
private enum MediaType {
    /// RFC 9110 §8.3.1, parameters as they are.
    static func isOne(_ text: String) -> Bool {
        let parts = text.prefix { $0 != ";" }.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isToken) }
            && text.utf8.allSatisfy { 0x20...0x7E ~= $0 }
    }

    static func byExtension(of file: String) -> String? { types[(file as NSString).pathExtension.lowercased()] }

    private static let types = [
        "mp4": "video/mp4", "m4v": "video/mp4", "mkv": "video/x-matroska", "webm": "video/webm",
        "mov": "video/quicktime", "avi": "video/x-msvideo",
        "ts": "video/mp2t", "m2ts": "video/mp2t", "mpg": "video/mpeg", "mpeg": "video/mpeg", "ogv": "video/ogg",
        "flv": "video/x-flv", "wmv": "video/x-ms-wmv",
        "3gp": "video/3gpp", "mp3": "audio/mpeg", "m4a": "audio/mp4", "m4b": "audio/mp4", "aac": "audio/aac",
        "ogg": "audio/ogg", "oga": "audio/ogg",
        "opus": "audio/ogg", "flac": "audio/flac", "wav": "audio/wav", "mka": "audio/x-matroska",
        "m3u8": "application/vnd.apple.mpegurl",
        "mpd": "application/dash+xml", "m4s": "video/iso.segment", "vtt": "text/vtt", "srt": "application/x-subrip",
        "jpg": "image/jpeg", "jpeg": "image/jpeg",
        "png": "image/png", "webp": "image/webp",
    ]
}
