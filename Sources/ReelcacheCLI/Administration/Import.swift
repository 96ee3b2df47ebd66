import Administration
import ArgumentParser
import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct Import: PrintingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Add a file to the cache as if it had been fetched from a URL.",
        discussion: """
            Players that request the URL then get the file.

              reelcache import film.mp4 --as https://example.org/film.mp4
            """)

    @Argument(help: "The file to add.", completion: .file())
    var file: String
    @Option(name: .customLong("as"), help: ArgumentHelp("The URL that players will request.", valueName: "url"))
    var url: String
    @Option(
        help: ArgumentHelp(
            "Set its media type, such as video/mp4. (default: by the file's extension)", valueName: "media/type"))
    var type: String?
    @Flag(help: "Replace what is cached under that URL.")
    var replace = false
    @OptionGroup var printing: PrintingOptions

    func validate() throws {
        if let type, !MediaType.isOne(type) {
            throw ValidationError("--type '\(type)' is not a media type: write it like video/mp4")
        }
    }

    func run() throws {
        let interruption = Interruption()
        let source = try ImportedFile(file)
        var fields = HeaderFields()
        if let type = type ?? MediaType.byExtension(of: file) { fields.append("Content-Type", type) }
        let configuration = try printing.cache.configuration
        let report = try configuration.withProxy(for: .adding, isWanted: { !interruption.isRequested }) { proxy in
            let progress = ProgressLine()
            defer { progress.clear() }
            let origin = try proxy.url(url)
            return try proxy.importFile(origin, file: source, fields: fields, replaces: replace) { done in
                progress.show("import", done, of: source.length)
                return !interruption.isRequested
            }
        }
        guard !printing.json else { return print(try printing.secret.json(report, configuration)) }
        print("imported \(file), \(report.length.size), as \(try printing.secret.shown(report.urlText, configuration))")
    }
}

extension Import {
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
}
