import HTTPModel

/// What a browser can do with a response of this type, whoever sends it.
package struct ContentSafety: Sendable, Equatable {
    /// Media, a playlist, subtitles or a key: content that any page may read from a public origin.
    package let isMedia: Bool
    /// Nothing in it can run, not even if it is opened in a tab of its own.
    package let isInert: Bool

    /// - Parameter fields: the fields of the response. With several types, or none, a browser chooses a type
    ///   itself: the content then counts as neither media nor inert.
    package init(_ fields: HeaderFields) {
        let lines = fields.lines.filter { ASCII.equalIgnoringCase($0.name, "Content-Type") }
        let isOne = lines.count == 1 && !lines[0].value.utf8.contains(ASCII.comma)
        let type = isOne ? Self.essence(lines[0].value) : ""
        // RFC 7303 §4.2: a browser shows XML of any kind as a page, with scripts.
        let isXML = ["+xml", "/xml"].contains { type.utf8.suffix(4).elementsEqual($0.utf8) }
        let isAudioOrVideo = !isXML && ["audio/", "video/"].contains { type.utf8.starts(with: $0.utf8) }
        isMedia = isAudioOrVideo || Self.media.contains(type)
        isInert = isAudioOrVideo || !isXML && type.hasPrefix("font/") || Self.inert.contains(type)
    }

    /// Playlists, subtitles, and the types that misconfigured servers give to media and keys.
    private static let media: Set<String> = [
        "application/vnd.apple.mpegurl", "application/x-mpegurl", "application/dash+xml", "application/vnd.ms-sstr+xml",
        "application/mp4", "application/ogg",
        "text/vtt", "application/x-subrip", "application/ttml+xml", "application/octet-stream", "binary/octet-stream",
    ]

    /// Images except SVG, fonts, and media whose type is neither audio nor video.
    private static let inert: Set<String> = [
        "application/mp4", "application/ogg", "image/apng", "image/avif", "image/bmp", "image/gif", "image/heic",
        "image/heif", "image/jpeg", "image/jxl",
        "image/png", "image/tiff", "image/vnd.microsoft.icon", "image/webp", "image/x-icon", "application/font-woff",
    ]

    /// Type and subtype, in lower case; empty if the value is not a media type.
    private static func essence(_ value: String) -> String {
        let name = Listing.essence(of: value)
        guard let slash = name.utf8.firstIndex(of: UInt8(ascii: "/")) else { return "" }
        let parts = [name.utf8[..<slash], name.utf8[slash...].dropFirst()]
        return parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(ASCII.isToken) } ? name : ""
    }
}
