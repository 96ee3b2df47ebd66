import CachePolicy
import HTTPModel

/// The segments of a media playlist, as players request them. One object for all requests: a playlist is a large value.
package final class MediaPlaylistSegments: SegmentSequence {
    private let playlist: MediaPlaylist
    private let base: OriginURL
    private let index: AddressIndex
    package let hosts: NamedHosts

    /// - Parameter base: the URL from which the playlist was received.
    package init(_ playlist: MediaPlaylist, at base: OriginURL, within budget: WorkBudget) throws(PlaylistError) {
        self.playlist = playlist
        self.base = base
        index = try AddressIndex(
            playlist.segments.lazy.map { ($0.reference, $0.range) }, base: base, within: budget)
        hosts = index.hosts
    }

    /// The memory that it takes besides the playlist, in bytes.
    package var weight: Int { index.size }

    package var count: Int { playlist.segments.count }

    package subscript(position: Int) -> MediaSegment {
        let segment = playlist.segments[position]
        return MediaSegment(
            number: number(at: position), url: base.resolving(segment.reference), range: segment.range,
            duration: segment.duration,
            keys: keys(segment.keySet),
            initialization: segment.initialization < 0 ? nil : initialization(Int(segment.initialization)),
            isDiscontinuity: segment.isDiscontinuity, isGap: segment.isGap)
    }

    private func keys(_ set: Int32) -> [EncryptionKey] {
        set < 0 ? [] : playlist.keySets[Int(set)].map { playlist.keys[Int($0)] }
    }

    private func initialization(_ place: Int) -> InitializationSection {
        var section = playlist.initializations[place]
        section.keys = keys(playlist.initializationKeySets[place])
        return section
    }

    package func number(at position: Int) -> Int64 {
        playlist.mediaSequence +| playlist.skippedSegments +| Int64(position)
    }

    package func position(within duration: Duration, _ budget: WorkBudget) throws(PlaylistError) -> Int {
        try position(within: duration, budget) { playlist.segments[$0].duration }
    }

    package func position(of url: OriginURL, at byte: Int64?, within budget: WorkBudget) throws(PlaylistError) -> Int? {
        try index.position(of: url, at: byte) { position throws(PlaylistError) in
            let segment = playlist.segments[position]
            guard byte ?? 0 < segment.range?.upperBound ?? .max else { return false }
            return try base.leads(by: segment.reference, to: url, within: budget)
        }
    }

}

extension HLSPlaylist {
    /// The segments of a media playlist, with an index that is built on each call; nil for other kinds.
    package func segments(within budget: WorkBudget) throws(PlaylistError) -> MediaPlaylistSegments? {
        guard let media else { return nil }
        return try MediaPlaylistSegments(media, at: base, within: budget)
    }

    /// The other resources of the presentation that it names, besides segments and playlists: initialization sections,
    /// keys, pieces of segments.
    package func companions(within budget: WorkBudget) throws(PlaylistError) -> NamedAddresses {
        guard let media else {
            return try NamedAddresses(multivariant?.sessionKeys.compactMap(\.address) ?? [], at: base, within: budget)
        }
        let parts = (media.segments.lazy.map(\.parts) + [media.trailingParts]).joined().map(\.address)
        let others = media.keys.compactMap(\.address) + media.initializations.compactMap(\.address)
        return try NamedAddresses(
            others + parts + media.preloadHints.compactMap(\.address), at: base, within: budget)
    }

    /// The further playlists of the presentation: those of a multivariant playlist.
    package func playlists(within budget: WorkBudget) throws(PlaylistError) -> NamedAddresses {
        try NamedAddresses(multivariant?.addresses ?? [], at: base, within: budget)
    }
}

/// Addresses that one text names, found by hash.
package struct NamedAddresses: Sendable {
    private let references: [String]
    private let base: OriginURL
    private let index: AddressIndex
    package let hosts: NamedHosts

    fileprivate init(_ addresses: [WrittenAddress], at base: OriginURL, within budget: WorkBudget)
        throws(PlaylistError)
    {
        references = addresses.map(\.reference)
        self.base = base
        index = try AddressIndex(references.lazy.map { ($0, nil) }, base: base, within: budget)
        hosts = index.hosts
    }

    /// The memory that it takes besides the strings of its text, in bytes.
    package var weight: Int {
        references.capacity * MemoryLayout<String>.stride + index.size // no trap: what is in memory
    }

    package func contains(_ url: OriginURL, within budget: WorkBudget) throws(PlaylistError) -> Bool {
        try index.position(of: url, at: nil) { position throws(PlaylistError) in
            try base.resolving(references[position], within: budget) == url
        } != nil
    }
}
