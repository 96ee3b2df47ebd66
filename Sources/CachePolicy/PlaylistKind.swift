import HTTPModel

/// Kinds of playlists of segmented media: HLS (RFC 8216 and draft-pantos-hls-rfc8216bis) and DASH (ISO/IEC
/// 23009-1), identified by media type or by their first bytes.
package enum PlaylistKind: Sendable, Equatable, CaseIterable {
    case hls, dash

    /// Identifies a `Content-Type` (RFC 8216 §4, RFC 9110 §8.3); nil for types that are not of playlists, or are
    /// used for other content as well.
    /// - Parameter mediaType: with or without parameters; case does not matter.
    package init?(mediaType: String) {
        guard let kind = Self.mediaTypes[Listing.essence(of: mediaType)] else { return nil }
        self = kind
    }

    static let mediaTypes: [String: PlaylistKind] = [
        "application/vnd.apple.mpegurl": .hls, "application/x-mpegurl": .hls, "application/mpegurl": .hls,
        "audio/mpegurl": .hls,
        "audio/x-mpegurl": .hls, "application/dash+xml": .dash,
    ]

    /// How many of the first bytes are examined: enough for comments before a root element.
    package static let sniffedBytes = 4096

    /// Identifies the beginning of a body: `#EXTM3U`, or XML with the root `MPD`.
    /// - Parameter beginning: decoded (no content coding); only the first `sniffedBytes` are examined.
    package static func sniff(_ beginning: some Collection<UInt8>) -> PlaylistKind? {
        let text = withoutBlanks(Array(beginning.prefix(sniffedBytes))[...])
        if isM3U(text) { return .hls }
        return rootName(text).map(localName) == "MPD" ? .dash : nil
    }

    /// Whether a playlist can begin with a byte. If not, nothing more needs to be examined.
    package static func mayBegin(with byte: UInt8) -> Bool {
        byte == UInt8(ascii: "#") || byte == UInt8(ascii: "<") || byte == byteOrderMark[0] || ASCII.isXMLSpace(byte)
    }

    /// The byte order mark in UTF-8.
    package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Drops byte order marks and white space: templates leave empty lines, and joined files may have several marks.
    package static func withoutBlanks(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        // Hardly any begins so, and each hit comes here.
        guard let first = text.first, ASCII.isXMLSpace(first) || first == 0xEF else { return text }
        var rest = text.drop(while: ASCII.isXMLSpace)
        while rest.starts(with: byteOrderMark) {
            rest = rest.dropFirst(byteOrderMark.count).drop(while: ASCII.isXMLSpace)
        }
        return rest
    }

    /// RFC 8216 §4.3.1.1: the tag has a line to itself. Some servers append attributes to it.
    /// - Parameter text: without blanks.
    package static func isM3U(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.starts(with: "#EXTM3U".utf8) else { return false }
        return text.dropFirst(7).first.map { $0 <= ASCII.space } ?? true
    }

    /// The name of the first element, after a declaration, comments and processing instructions.
    private static func rootName(_ text: ArraySlice<UInt8>) -> String? {
        var rest = text
        while rest.starts(with: "<?".utf8) || rest.starts(with: "<!--".utf8) {
            let end: [UInt8] = rest.starts(with: "<?".utf8) ? Array("?>".utf8) : Array("-->".utf8)
            guard let next = rest.firstRange(of: end) else { return nil }
            rest = rest[next.upperBound...].drop(while: ASCII.isXMLSpace)
        }
        guard rest.first == UInt8(ascii: "<") else { return nil }
        let name = rest.dropFirst().prefix {
            !ASCII.isXMLSpace($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/")
        }
        return String(decoding: name, as: UTF8.self)
    }

    private static func localName(_ name: String) -> String {
        String(name.split(separator: ":", omittingEmptySubsequences: false).last ?? "")
    }
}
