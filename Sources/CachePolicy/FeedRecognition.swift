import HTTPModel

/// Recognizes feeds (RSS, Atom) and plain lists of files (PLS, XSPF, M3U), by media type or by their first bytes.
///
/// HLS playlists and M3U lists that begin with `#EXTM3U` are recognized by `PlaylistKind`.
package enum FeedRecognition {
    /// Whether a media type is used for feeds and lists only.
    /// - Parameter type: with or without parameters; case does not matter.
    package static func isCertain(type: String) -> Bool { certainTypes.contains(Listing.essence(of: type)) }

    /// Whether a response may be a feed, by its media type: it is one of a feed, or of XML in general.
    package static func mayBe(type: String) -> Bool {
        let essence = Listing.essence(of: type)
        return certainTypes.contains(essence) || xmlTypes.contains(essence)
    }

    /// Whether a text is a feed or a list, by its beginning. A web page never is.
    /// - Parameters:
    ///   - beginning: decoded (no content coding); only the first `PlaylistKind.sniffedBytes` are examined.
    ///   - type: the `Content-Type` of the response; nil if it has none.
    package static func isFeed(_ beginning: some Collection<UInt8>, type: String?) -> Bool {
        let type = Listing.essence(of: type ?? ""), bytes = Array(beginning.prefix(PlaylistKind.sniffedBytes))
        if StrayPage.isPage(type: type) { return false }
        if certainTypes.contains(type) { return true }
        let text = PlaylistKind.withoutBlanks(bytes[...])
        if ASCII.equalIgnoringCase(text.prefix(playlistSection.count), playlistSection) { return true }
        guard let root = rootName(text) else { return isListType(type) && isPlainText(text) }
        switch root {
        case "rss": return true
        case "feed": return contains("/atom", text)
        case "rdf": return contains("purl.org/rss", text) || contains("netscape.com/rdf", text)
        case "playlist": return contains("xspf", text)
        default: return false
        }
    }

    /// Whether a feed can begin with a byte.
    static func mayBegin(with byte: UInt8) -> Bool { byte == playlistSection[0] }

    static let certainTypes: Set<String> = [
        "application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/xspf+xml", "audio/x-scpls",
        "application/pls+xml",
    ]
    private static let xmlTypes: Set<String> = ["text/xml", "application/xml"]
    private static let playlistSection = Array("[playlist]".utf8)

    /// A list of files may begin with its first file: only its media type says what it is.
    private static func isListType(_ type: String) -> Bool { PlaylistKind(mediaType: type) == .hls }

    /// Whether these are lines of text, rather than a stream of media, XML or JSON.
    private static func isPlainText(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, !Array("<{".utf8).contains(first) else { return false }
        return text.allSatisfy { $0 >= ASCII.space && $0 != 0x7F || ASCII.isXMLSpace($0) }
    }

    /// The name of the first element in lower case, without its prefix; nil if none begins in these bytes.
    private static func rootName(_ text: ArraySlice<UInt8>) -> String? {
        var rest = text
        while let end = endOfProlog(rest) {
            guard let next = rest.firstRange(of: end) else { return nil }
            rest = rest[next.upperBound...].drop(while: ASCII.isXMLSpace)
        }
        guard rest.first == UInt8(ascii: "<") else { return nil }
        let name = rest.dropFirst().prefix { !ASCII.isXMLSpace($0) && !Array(">/".utf8).contains($0) }
        return name.split(separator: ASCII.colon).last.map { ASCII.lowercased(String(decoding: $0, as: UTF8.self)) }
    }

    /// What ends the declaration, comment or document type that begins here; nil if none does.
    private static func endOfProlog(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        if text.starts(with: "<?".utf8) { return Array("?>".utf8) }
        if text.starts(with: "<!--".utf8) { return Array("-->".utf8) }
        guard text.starts(with: "<!".utf8) else { return nil }
        let declaration = text.prefix { $0 != UInt8(ascii: ">") }
        // Its own declarations contain further brackets.
        return Array((declaration.contains(UInt8(ascii: "[")) ? "]>" : ">").utf8)
    }

    private static func contains(_ word: String, _ text: ArraySlice<UInt8>) -> Bool {
        ASCII.lowercased(String(decoding: text, as: UTF8.self)).contains(word)
    }
}
