import CachePolicy
import HTTPModel

/// An HLS playlist of either kind: what it says, and where its addresses stand (RFC 8216; draft-pantos-hls-rfc8216bis).
package struct HLSPlaylist: Sendable {
    package enum Content: Sendable {
        case multivariant(MultivariantPlaylist)
        case media(MediaPlaylist)
        /// A plain list of addresses, such as one of channels: it begins as HLS does, and has none of its tags.
        case list
    }

    /// The URL that answered, against which addresses are resolved.
    package let base: OriginURL
    package let content: Content
    /// In the order of the text.
    package let addresses: [PlaylistAddress]
    /// What `EXT-X-DEFINE` defines, for the media playlists that import it.
    package let variables: [String: String]
    let queryVariables: [QueryVariable]

    /// Reads a playlist. Tags that are not known, or whose values are not what they should be, are passed over, as
    /// players do.
    /// - Parameters:
    ///   - bytes: the text, decoded (no content coding).
    ///   - base: the URL that answered, behind any redirects.
    ///   - variables: of the multivariant playlist that led here; nil where it is not known.
    /// - Throws: where it is no playlist, passes a limit, uses a variable that is not defined, or has segments that
    ///   cannot be told apart.
    package init(_ bytes: [UInt8], at base: OriginURL, importing variables: [String: String]? = nil)
        throws(PlaylistError)
    {
        try PlaylistError.check(size: bytes.count)
        guard bytes.starts(with: [0xFE, 0xFF]) == false, bytes.starts(with: [0xFF, 0xFE]) == false else {
            throw PlaylistError(.encoding, "the playlist is in UTF-16: only UTF-8 is read")
        }
        let start = bytes.starts(with: PlaylistKind.byteOrderMark) ? PlaylistKind.byteOrderMark.count : 0
        guard PlaylistKind.isM3U(bytes[start...]) else {
            throw PlaylistError(.notAPlaylist, "the text does not begin with #EXTM3U")
        }
        var reader = HLSReader(bytes, base: base, imported: variables)
        try reader.read()
        self.base = base
        content = try reader.content()
        addresses = reader.isPlainList ? reader.addresses.map(\.asEntry) : reader.addresses
        self.variables = reader.variables.values
        queryVariables = reader.queryVariables
    }

    package var multivariant: MultivariantPlaylist? {
        if case .multivariant(let playlist) = content { playlist } else { nil }
    }

    package var media: MediaPlaylist? {
        if case .media(let playlist) = content { playlist } else { nil }
    }

    /// Where an address leads; nil where it is nothing that is fetched over HTTP.
    package func url(of address: PlaylistAddress) -> OriginURL? { base.resolving(address.reference) }
}

extension PlaylistAddress {
    fileprivate var asEntry: PlaylistAddress { PlaylistAddress(range: range, reference: reference, role: .entry) }
}
