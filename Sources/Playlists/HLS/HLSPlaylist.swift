import CachePolicy
import HTTPModel

/// An HLS playlist of either kind: its contents, and the places of its addresses (RFC 8216;
/// draft-pantos-hls-rfc8216bis).
package struct HLSPlaylist: Sendable {
    package enum Content: Sendable {
        case multivariant(MultivariantPlaylist)
        case media(MediaPlaylist)
        /// A plain list of addresses, for example of channels: it begins like HLS, but has none of its tags.
        case list
    }

    /// The URL that answered, against which addresses are resolved.
    package let base: OriginURL
    package let content: Content
    /// In the order of the text.
    package let addresses: [PlaylistAddress]
    /// The variables that `EXT-X-DEFINE` defines, for media playlists that import them.
    package let variables: [String: String]
    let queryVariables: [QueryVariable]
    /// The variables that it imports, from the multivariant playlist.
    package let imported: [String: String]
    /// The memory that it takes besides its text, in bytes.
    package let weight: Int

    /// Parses a playlist. Unknown tags and invalid values are ignored, as players do.
    /// - Parameters:
    ///   - bytes: the text, decoded (no content coding).
    ///   - base: the URL that answered, after any redirects.
    ///   - variables: those of the multivariant playlist that refers to this one; nil if unknown.
    ///   - budget: earned by the text.
    /// - Throws: if the text is not a playlist, exceeds a limit, uses an undefined variable, or has segments that
    ///   cannot be told apart.
    package init(
        _ bytes: [UInt8], at base: OriginURL, importing variables: [String: String]? = nil, within budget: WorkBudget
    ) throws(PlaylistError) {
        try PlaylistError.check(size: bytes.count)
        guard bytes.starts(with: [0xFE, 0xFF]) == false, bytes.starts(with: [0xFF, 0xFE]) == false else {
            throw PlaylistError(.encoding, "the playlist is in UTF-16: only UTF-8 is supported")
        }
        guard PlaylistKind.isM3U(PlaylistKind.withoutBlanks(bytes[...])) else {
            throw PlaylistError(.notAPlaylist, "the text does not begin with #EXTM3U")
        }
        let former = budget.made
        var reader = HLSReader(bytes, base: base, importing: variables, within: budget)
        try reader.read()
        self.base = base
        content = try reader.content()
        addresses = reader.isPlainList ? reader.addresses.map(\.asEntry) : reader.addresses
        self.variables = reader.variables.values
        (queryVariables, imported) = (reader.queryVariables, reader.imported)
        // Replaced variables are kept as often as they were made.
        weight = reader.weight &+ budget.made &- former
    }

    package var multivariant: MultivariantPlaylist? {
        if case .multivariant(let playlist) = content { playlist } else { nil }
    }

    package var media: MediaPlaylist? {
        if case .media(let playlist) = content { playlist } else { nil }
    }

    /// The URL of an address; nil if it is not fetched over HTTP.
    package func url(of address: PlaylistAddress) -> OriginURL? { base.resolving(address.reference) }
}

extension PlaylistAddress {
    fileprivate var asEntry: PlaylistAddress { PlaylistAddress(range: range, reference: reference, role: .entry) }
}
