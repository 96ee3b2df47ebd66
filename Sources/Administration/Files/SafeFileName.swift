import Foundation
import HTTPModel

/// A file name for a download that is safe in a directory, whatever name its origin gives: a single path component,
/// not hidden, free of characters that a terminal obeys, and not too long.
package struct SafeFileName: Sendable, Equatable, CustomStringConvertible {
    private let stem: String
    /// The extension with its dot; empty if there is none.
    private let suffix: String

    /// The longest name in bytes, on all file systems that matter.
    private static let maxBytes = 255

    /// - Parameters:
    ///   - fileName: the name that the origin gives, decoded; nil if it gives none.
    ///   - url: its last path component is the name otherwise.
    ///   - type: the media type, which supplies a missing extension.
    package init(_ fileName: String?, url: String, type: String? = nil) {
        let name =
            [fileName.map(Self.cleaned), Self.cleaned(Self.lastPart(of: url))].compactMap { $0 }.first { !$0.isEmpty }
            ?? "download"
        let (stem, suffix) = Self.parts(name)
        self.init(stem: stem, suffix: suffix.isEmpty ? Self.suffix(of: type) : suffix)
    }

    private init(stem: String, suffix: String) { (self.stem, self.suffix) = (stem.isEmpty ? "download" : stem, suffix) }

    package var description: String { text(mark: "") }

    /// An alternative name for the same file: `film (2).mp4`.
    package func numbered(_ number: Int) -> String { text(mark: " (\(number))") }

    /// Whether the name tells the kind of the file.
    package var hasExtension: Bool { !suffix.isEmpty }

    /// Truncates the stem, so that the extension stays: between two characters, unless a single one is too long, as
    /// it may have any number of combining marks.
    private func text(mark: String) -> String {
        let room = Self.maxBytes - mark.utf8.count - suffix.utf8.count
        var cut = stem
        while cut.utf8.count > room { cut.removeLast() }
        if cut.isEmpty {
            cut = stem
            while cut.utf8.count > room { cut.unicodeScalars.removeLast() }
        }
        // Windows has no names that end so.
        if mark.isEmpty, suffix.isEmpty { while cut.last == " " { cut.removeLast() } }
        return cut + mark + suffix
    }

    // MARK: Cleaning

    private static func lastPart(of url: String) -> String {
        let path = url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        // The first two parts are the scheme and the host.
        let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: true).dropFirst(2)
        guard let last = parts.last else { return "" }
        return PercentEncoding.decoded(last).flatMap { String(validating: $0, as: UTF8.self) }
            ?? String(Substring(last))
    }

    /// Works scalar by scalar: a slash or a dot with a combining mark is another character, but contains the same
    /// byte.
    private static func cleaned(_ name: String) -> String {
        let last = name.unicodeScalars.split(separator: "/").last.map(Array.init) ?? []
        let visible = last.filter { !isObeyed($0) }.drop { $0 == "." || $0.properties.isWhitespace }
        let end = visible.lastIndex { !$0.properties.isWhitespace }.map { $0 + 1 } ?? visible.startIndex
        return String(String.UnicodeScalarView(visible[..<end]))
    }

    /// Whether a terminal obeys the scalar: control characters, line separators, and characters that reverse the
    /// order of letters. Other format characters are parts of scripts.
    private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: scalar.properties.isBidiControl || scalar == "\u{FEFF}"
        default: false
        }
    }

    // MARK: Extensions

    private static func parts(_ name: String) -> (stem: String, suffix: String) {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name, "") }
        let letters = name[name.index(after: dot)...].utf8
        guard 1...8 ~= letters.count, letters.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) }) else {
            return (name, "")
        }
        return (String(name[..<dot]), String(name[dot...]))
    }

    private static func suffix(of type: String?) -> String {
        guard let type else { return "" }
        let name = ASCII.lowercased(ASCII.trimmed(Substring(type.utf8.prefix { $0 != UInt8(ascii: ";") })))
        return extensions[name].map { ".\($0)" } ?? ""
    }

    private static let extensions = [
        "video/mp4": "mp4", "video/x-m4v": "m4v", "video/x-matroska": "mkv", "video/webm": "webm",
        "video/quicktime": "mov", "video/x-msvideo": "avi",
        "video/mp2t": "ts", "video/mpeg": "mpg", "video/ogg": "ogv", "video/x-flv": "flv", "video/x-ms-wmv": "wmv",
        "video/3gpp": "3gp",
        "audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/mp4": "m4a", "audio/x-m4a": "m4a", "audio/aac": "aac",
        "audio/ogg": "ogg", "audio/opus": "opus",
        "audio/flac": "flac", "audio/x-flac": "flac", "audio/wav": "wav", "audio/x-wav": "wav",
        "audio/x-matroska": "mka", "audio/webm": "weba",
        "application/ogg": "ogg", "application/vnd.apple.mpegurl": "m3u8", "application/x-mpegurl": "m3u8",
        "audio/mpegurl": "m3u8",
        "application/dash+xml": "mpd", "text/vtt": "vtt", "application/x-subrip": "srt", "image/jpeg": "jpg",
        "image/png": "png", "image/webp": "webp",
    ]
}

extension SafeFileName {
    /// The name of the same file by a title, with the extension that it has; nil leaves it as it is.
    package func titled(_ title: String?) -> SafeFileName {
        // A slash would end the title.
        guard let title = title.map({ Self.cleaned(String($0.map { $0 == "/" ? "-" : $0 })) }), !title.isEmpty else {
            return self
        }
        return SafeFileName(stem: title, suffix: suffix)
    }

    /// The name of the same file where `FileNameRule` holds: `x:y?.mp3` is `x-y.mp3`.
    package var forWindows: SafeFileName {
        var scalars = String.UnicodeScalarView()
        for scalar in stem.unicodeScalars {
            switch scalar {
            case ":", "\\", "|": scalars.append("-")
            case "\"": scalars.append("'")
            case _ where FileNameRule.forbids(scalar): break
            default: scalars.append(scalar)
            }
        }
        while let last = scalars.last, last == " " || last == "." { scalars.removeLast() }
        let name = String(scalars)
        return SafeFileName(stem: FileNameRule.isReserved(name + suffix) ? "_" + name : name, suffix: suffix)
    }
}
