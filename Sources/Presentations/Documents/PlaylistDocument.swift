import CachePolicy
import DiskCache
import Playlists
import Synchronization

/// A playlist that was read: its text, what it says, and where it came from. What it says of one version of a resource
/// does not change.
package final class PlaylistDocument: Sendable {
    package enum Content: Sendable {
        case hls(HLSPlaylist)
        case dash(MPD)
    }

    /// Of the resource that it is.
    package let key: CacheKey
    /// By which it was asked for.
    package let url: OriginURL
    /// That answered, behind any redirects: what addresses are resolved against.
    package let base: OriginURL
    /// Decoded: without a content coding.
    package let text: [UInt8]
    package let content: Content
    /// Of which it was read; nil where that is not known.
    package let generation: GenerationID?
    /// As clients get it.
    private let texts = Mutex<[PlaylistForm: PlaylistText]>([:])

    /// Reads a text. For large ones this takes a while: not for loops.
    /// - Parameter variables: what the multivariant playlist that led here defines (`EXT-X-DEFINE`); nil where none is
    ///   known.
    /// - Throws: where it is neither kind of playlist, or cannot be read.
    package init(
        _ text: [UInt8], key: CacheKey, url: OriginURL, base: OriginURL, generation: GenerationID? = nil,
        importing variables: [String: String]? = nil
    ) throws(PlaylistError) {
        content =
            switch PlaylistKind.sniff(text) {
            case .hls: .hls(try HLSPlaylist(text, at: base, importing: variables))
            case .dash: .dash(try MPD(text, at: base))
            case nil:
                throw PlaylistError(.notAPlaylist, "the text begins neither with #EXTM3U nor with an MPD element")
            }
        (self.key, self.url, self.base, self.text, self.generation) = (key, url, base, text, generation)
    }

    /// Further playlists of the presentation, each once: those of a multivariant playlist.
    package var playlists: [OriginURL] {
        if case .hls(let playlist) = content { playlist.multivariant?.playlists ?? [] } else { [] }
    }

    /// Whether players choose among what it names: it is a multivariant playlist, or an MPD.
    package var listsRenditions: Bool {
        switch content {
        case .hls(let playlist): playlist.multivariant != nil
        case .dash: true
        }
    }

    /// For the media playlists that import them.
    package var variables: [String: String] {
        if case .hls(let playlist) = content { playlist.variables } else { [:] }
    }

    /// How long it may be taken for the stream's present state; nil for what does not change.
    package var refreshRule: RefreshRule? {
        switch content {
        case .hls(let playlist): playlist.refreshRule
        case .dash(let mpd): mpd.refreshRule
        }
    }

    /// Whether segments are added to it, or go.
    package var isLive: Bool {
        switch content {
        case .hls(let playlist): playlist.media.map { !$0.hasEnd } ?? false
        case .dash(let mpd): mpd.isDynamic
        }
    }

    /// As a client is to get it, whose players then find all that it names. Made once for each form; of a long text
    /// this takes a while.
    /// - Throws: where it would grow beyond any playlist.
    package func text(for form: PlaylistForm) throws(PlaylistError) -> PlaylistText {
        if let known = texts.withLock({ $0[form] }) { return known }
        let made = try makeText(for: form)
        texts.withLock { texts in
            // One proxy has a few names; whoever invents more has them made anew.
            if texts.count >= Self.mostTexts { texts = [:] }
            texts[form] = made
        }
        return made
    }

    private static let mostTexts = 4

    /// Whether `text(for:)` takes no time.
    package func hasText(for form: PlaylistForm) -> Bool {
        text.count <= 64 << 10 || texts.withLock { $0[form] != nil }
    }

    private func makeText(for form: PlaylistForm) throws(PlaylistError) -> PlaylistText {
        let edits = try edits(for: form.proxyForm, at: form.client) + filterEdits(keeping: form.kept)
        return PlaylistText(edits.isEmpty ? text : edits.applied(to: text), isOriginal: edits.isEmpty)
    }

    private func filterEdits(keeping kept: PlaylistForm.Kept?) -> [AddressEdit] {
        switch (content, kept) {
        case (.hls(let playlist), .playlists(let kept)?): playlist.multivariant?.edits(keeping: kept) ?? []
        case (.dash(let mpd), .representations(let kept)?): mpd.edits(keeping: kept) ?? []
        default: []
        }
    }

    /// What to change so that a client finds all that it names through the proxy.
    /// - Parameter client: the URL under which the client has asked for it, without dot segments.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        switch content {
        case .hls(let playlist): try playlist.edits(for: form, at: client)
        case .dash(let mpd): try mpd.edits(for: form, at: client)
        }
    }
}

/// A rendition of a presentation.
package struct RenditionID: Sendable, Hashable {
    /// The media playlist, or the MPD.
    package let playlist: CacheKey
    /// Nil for a media playlist, which is one rendition.
    package let representation: MPD.RepresentationID?

    package init(playlist: CacheKey, representation: MPD.RepresentationID? = nil) {
        (self.playlist, self.representation) = (playlist, representation)
    }
}

extension PlaylistDocument {
    /// What it lists segments of, each with its segments in order.
    /// - Parameters:
    ///   - now: since 1970: which segments of a dynamic MPD there are by then.
    ///   - indices: of renditions that are one file each, as far as they are known.
    func renditions(
        at now: Duration, _ indices: [MPD.RepresentationID: SegmentIndexBox?] = [:]
    ) -> [(id: RenditionID, segments: any SegmentSequence)] {
        switch content {
        case .hls(let playlist):
            return playlist.segments.map { [(RenditionID(playlist: key), $0)] } ?? []
        case .dash(let mpd):
            // What cannot be enumerated is played all the same, without anything ahead.
            return mpd.representations.compactMap { id in
                segments(of: id, at: now, index: indices[id] ?? nil).map {
                    (RenditionID(playlist: key, representation: id), $0)
                }
            }
        }
    }

    /// The segments of a representation; nil where this is no MPD, or they cannot be enumerated.
    /// - Parameters:
    ///   - now: since 1970.
    ///   - index: of the file, for one that is a single file.
    func segments(of id: MPD.RepresentationID, at now: Duration, index: SegmentIndexBox?) -> (any SegmentSequence)? {
        if case .dash(let mpd) = content { try? mpd.segments(of: id, at: now, index: index) } else { nil }
    }

    /// Where the index of a representation is that is a single file.
    func segmentIndex(of id: MPD.RepresentationID) -> (url: OriginURL, range: Range<Int64>)? {
        guard case .dash(let mpd) = content, let (url, range) = mpd.segmentIndex(of: id), let range else { return nil }
        return (url, range)
    }

    /// What belongs to the presentation beside segments and playlists: initialization sections, keys, pieces of
    /// segments.
    func companions(of renditions: [(id: RenditionID, segments: any SegmentSequence)]) -> Set<OriginURL> {
        switch content {
        case .hls(let playlist):
            guard let media = playlist.media else {
                return Set(playlist.multivariant?.sessionKeys.compactMap(\.url) ?? [])
            }
            let keys = media.keySets.joined().compactMap(\.url)
            let parts = (media.segments.lazy.map(\.parts) + [media.trailingParts]).joined().compactMap(\.url)
            return Set(keys + media.initializations.compactMap(\.url) + parts + media.preloadHints.compactMap(\.url))
        case .dash:
            let first = renditions.compactMap { $0.segments.isEmpty ? nil : $0.segments[0].initialization?.url }
            return Set(first)
        }
    }
}
