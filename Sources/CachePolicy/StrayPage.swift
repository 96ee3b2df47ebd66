import HTTPModel

/// A *stray page* is a web page that arrives where media was requested: from a captive portal, a login form, a "not
/// found" with status 200. It tells nothing about the media, so it must neither be stored in its place nor
/// invalidate what is stored.
package enum StrayPage {
    /// Whether a response is a web page, by its `Content-Type`.
    package static func isPage(_ fields: HeaderFields) -> Bool { fields["Content-Type"].map(isPage(type:)) ?? false }

    /// The media type of a response that is a web page, without parameters, because an origin's text there does not
    /// belong in logs and on terminals.
    package static func pageType(_ fields: HeaderFields) -> String? {
        fields["Content-Type"].map(Listing.essence).flatMap { pageTypes.contains($0) ? $0 : nil }
    }

    /// What a response in place of media is, as a person may read it.
    package static func name(of fields: HeaderFields) -> String {
        pageType(fields).map { "a web page (\($0))" } ?? (isText(fields) ? "a text" : "an empty response")
    }

    static func isPage(type: String) -> Bool { pageTypes.contains(Listing.essence(of: type)) }

    /// Whether content is a playlist, by its `Content-Type` or by the extension in its URL.
    static func isPlaylist(type: String, _ url: OriginURL) -> Bool {
        playlistTypes.contains(Listing.essence(of: type)) || isPlaylist(url)
    }

    /// Whether a URL names a playlist, by its extension.
    package static func isPlaylist(_ url: OriginURL) -> Bool {
        url.fileExtension.map(playlistExtensions.contains) ?? false
    }

    /// Whether the URL names media, or the browser requests media. Other URLs may well be those of pages.
    /// - Parameter destination: the request's `Sec-Fetch-Dest`, the element that requests the resource
    ///   (https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header).
    package static func expectsMedia(at url: OriginURL, destination: String? = nil) -> Bool {
        if let name = url.fileExtension, expectedExtensions.contains(name) { return true }
        return destination.map { mediaDestinations.contains(ASCII.lowercased($0)) } ?? false
    }

    /// Whether a stored response is known to be media, a playlist or a feed, so that a page cannot be its next version.
    package static func isMedia(_ stored: HeaderFields) -> Bool {
        guard let type = stored["Content-Type"].map(Listing.essence) else { return false }
        return mediaTypes.contains(type) || playlistTypes.contains(type) || FeedRecognition.isCertain(type: type)
            || ["video/", "audio/", "image/"].contains { type.hasPrefix($0) }
    }

    /// Whether a stored response is known to be picture or sound.
    package static func isFilm(_ stored: HeaderFields) -> Bool {
        let type = stored["Content-Type"].map(Listing.essence) ?? ""
        return ["video/", "audio/"].contains { type.hasPrefix($0) } && !playlistTypes.contains(type)
    }

    /// Whether a response is a text, by its `Content-Type`: an error of its origin's program, if a film was there.
    package static func isText(_ fields: HeaderFields) -> Bool {
        let type = fields["Content-Type"].map(Listing.essence) ?? ""
        return type.hasPrefix("text/")
            || ["json", "xml"].contains { type.hasSuffix("/" + $0) || type.hasSuffix("+" + $0) }
    }

    /// Whether what its origin calls a web page is media, or a playlist, by the first bytes: some servers have one
    /// media type for everything. Media is binary, also where it is encrypted or begins in its middle; pages are text.
    /// - Parameters:
    ///   - beginning: decoded (no content coding); only the first `sniffedBytes` are examined.
    ///   - isAll: whether there are no more.
    ///   - length: of the whole body; nil if unknown.
    /// - Returns: nil if more bytes are needed.
    package static func isMedia(beginning: some Collection<UInt8>, isAll: Bool, length: Int64?) -> Bool? {
        let bytes = Array(beginning.prefix(sniffedBytes)), isEnough = isAll || bytes.count == sniffedBytes
        let text = PlaylistKind.withoutBlanks(bytes[...])
        if text.starts(with: "WEBVTT".utf8) || PlaylistKind.sniff(bytes) != nil { return true }
        // Text in UTF-16 (https://mimesniff.spec.whatwg.org/#rules-for-text-or-binary), and compressed pages.
        if [[0xFE, 0xFF], [0xFF, 0xFE], [0x1F, 0x8B]].contains(where: { bytes.starts(with: $0) }) { return false }
        let binary = bytes.count(where: isBinary)
        // Encrypted bytes may begin like a tag.
        let seemsMarkup = text.first == UInt8(ascii: "<")
        if binary > 0, !seemsMarkup, bytes.count > 1 { return true }
        guard isEnough else { return nil }
        if seemsMarkup { return binary > bytes.count / 16 }
        // RFC 8216 §4.3.2.4: an AES-128 key has 16 bytes, by chance none of them binary.
        return length == 16 && bytes.contains { $0 > 0x7E }
    }

    /// How many of the first bytes tell media from pages.
    package static let sniffedBytes = 512

    /// The bytes that text does not have (https://mimesniff.spec.whatwg.org/#binary-data-byte).
    private static func isBinary(_ byte: UInt8) -> Bool {
        byte < 0x20 && ![0x09, 0x0A, 0x0C, 0x0D, 0x1B].contains(byte)
    }

    private static let pageTypes: Set<String> = [
        "text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "text/vnd.wap.wml", "multipart/related",
    ]

    private static let mediaDestinations: Set<String> = ["audio", "track", "video"]

    /// In addition to `video/*`, `audio/*` and `image/*`.
    private static let mediaTypes: Set<String> = [
        "application/octet-stream", "binary/octet-stream", "application/mp4", "application/ogg",
        "application/x-matroska", "application/mxf",
        "text/vtt", "application/x-subrip", "application/ttml+xml", "application/vnd.rn-realmedia",
        "application/vnd.ms-asf",
    ]

    private static let playlistTypes: Set<String> = [
        "application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl",
        "application/dash+xml", "application/vnd.ms-sstr+xml",
        "application/xspf+xml", "audio/x-scpls",
    ]

    private static let playlistExtensions: Set<String> = ["m3u", "m3u8", "mpd", "pls", "xspf"]

    private static let expectedExtensions = mediaExtensions.union(playlistExtensions)

    private static let mediaExtensions: Set<String> = Set(
        """
        3g2 3gp aac ac3 aif aiff alac amr ape asf au avi caf cmfa cmft cmfv dff divx dsf dts dv eac3 f4a f4v flac flv m1v m2t m2ts m2v m4a m4b m4p m4s
        m4v mjpeg mka mkv mov mp2 mp3 mp4 mpa mpc mpe mpeg mpg mts mxf nut oga ogg ogm ogv opus ra rm rmvb spx tak tp ts tta vob wav weba webm wma wmv wv
        ass dfxp idx srt ssa sub sup ttml vtt avif bmp gif heic jpeg jpg png tif tiff webp
        """.split(whereSeparator: \.isWhitespace).map(String.init))
}

extension OriginURL {
    /// The extension of the path's last name, in lower case and without its dot; nil if it has none.
    package var fileExtension: String? {
        var text = pathAndQuery
        return text.withUTF8 { text in
            let path = text.prefix { $0 != UInt8(ascii: "?") }
            guard let start = path.lastIndex(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "/") }),
                path[start] == UInt8(ascii: ".")
            else { return nil }
            return ASCII.lowercased(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: path[start...].dropFirst())))
        }
    }
}
