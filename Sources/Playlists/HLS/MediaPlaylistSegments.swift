import CachePolicy
import HTTPModel

/// The segments of a media playlist, as players request them.
package struct MediaPlaylistSegments: SegmentSequence {
    private let playlist: MediaPlaylist
    private let base: OriginURL
    private let index: AddressIndex

    /// - Parameter base: the URL from which the playlist was received.
    package init(_ playlist: MediaPlaylist, at base: OriginURL) {
        self.playlist = playlist
        self.base = base
        index = AddressIndex(playlist.segments.lazy.map { ($0.reference, $0.range) }, base: base)
    }

    package var count: Int { playlist.segments.count }

    package subscript(position: Int) -> MediaSegment {
        let segment = playlist.segments[position]
        return MediaSegment(
            number: number(at: position), url: base.resolving(segment.reference), range: segment.range,
            duration: segment.duration, keys: segment.keySet.map { playlist.keySets[Int($0)] } ?? [],
            initialization: segment.initialization.map { playlist.initializations[Int($0)] },
            isDiscontinuity: segment.isDiscontinuity, isGap: segment.isGap)
    }

    package func number(at position: Int) -> Int64 {
        playlist.mediaSequence +| playlist.skippedSegments +| Int64(position)
    }

    package func position(within duration: Duration) -> Int {
        position(within: duration) { playlist.segments[$0].duration }
    }

    package func position(of url: OriginURL, at byte: Int64?) -> Int? {
        index.position(of: url, at: byte) {
            base.resolving(playlist.segments[$0].reference)?.isEquivalent(to: url) ?? false
        }
    }

    package var hosts: Set<String> {
        var hosts: Set<String> = [base.host]
        // Most references are relative.
        for segment in playlist.segments where segment.reference.contains("//") {
            if let host = base.resolving(segment.reference)?.host { hosts.insert(host) }
        }
        return hosts
    }

    /// The segment to which a part belongs; for a part of the unfinished segment, the position after all listed
    /// ones.
    /// - Returns: nil if the URL is not a part, or only `EXT-X-PRELOAD-HINT` names it.
    package func position(ofPart url: OriginURL) -> Int? {
        if let position = playlist.segments.lastIndex(where: { $0.parts.contains { $0.url == url } }) {
            return position
        }
        return playlist.trailingParts.contains { $0.url == url } ? playlist.segments.count : nil
    }
}

extension HLSPlaylist {
    /// The segments of a media playlist, with an index that is built on each call; nil for other kinds.
    package var segments: MediaPlaylistSegments? { media.map { MediaPlaylistSegments($0, at: base) } }
}
