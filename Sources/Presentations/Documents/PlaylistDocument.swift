import CachePolicy
import DiskCache
import HTTPModel
import Playlists
import Synchronization

/// A playlist or feed that was read: its text, its content, and its source. The document of one version of a resource
/// does not change.
package final class PlaylistDocument: Sendable {
    package enum Content: Sendable {
        case hls(HLSPlaylist)
        case dash(MPD)
        /// A feed, or a list of files that does not begin as HLS does. Its items are in `order`.
        case feed(Feed)
    }

    /// The cache key of its resource.
    package let key: CacheKey
    /// The requested URL.
    package let url: OriginURL
    /// The URL that answered, after any redirects: the base against which addresses are resolved.
    package let base: OriginURL
    /// Decoded: without a content coding.
    package let text: [UInt8]
    package let content: Content
    /// The order in which people play what it lists; empty for a presentation.
    package let order: PlaybackOrder
    /// The generation from which it was read; nil if unknown.
    package let generation: GenerationID?
    /// Its text for clients, by form.
    private let texts = Mutex<[PlaylistForm: PlaylistText]>([:])

    /// Parses a text. Large ones take a while: not for loops.
    /// - Parameter variables: the variables that the multivariant playlist which led here defines
    ///   (`EXT-X-DEFINE`); nil if none is known.
    /// - Throws: if it is neither kind of playlist, or cannot be parsed.
    package convenience init(
        _ text: [UInt8], key: CacheKey, url: OriginURL, base: OriginURL, generation: GenerationID? = nil,
        importing variables: [String: String]? = nil
    ) throws(PlaylistError) {
        let content: Content, order: PlaybackOrder
        switch PlaylistKind.sniff(text) {
        case .hls:
            let playlist = try HLSPlaylist(text, at: base, importing: variables)
            (content, order) = (.hls(playlist), PlaybackOrder(ofList: playlist.listedFiles))
        case .dash: (content, order) = (.dash(try MPD(text, at: base)), PlaybackOrder(ofList: []))
        case nil:
            throw PlaylistError(.notAPlaylist, "the text begins neither with #EXTM3U nor with an MPD element")
        }
        self.init(content, order, text, key: key, url: url, base: base, generation: generation)
    }

    /// Parses a feed, or a list of files. Large ones take a while: not for loops.
    /// - Parameter type: the `Content-Type` of the response.
    /// - Throws: if it is not a feed, or cannot be read.
    package convenience init(
        feed text: [UInt8], type: String?, key: CacheKey, url: OriginURL, base: OriginURL,
        generation: GenerationID? = nil
    ) throws(FeedError) {
        var feed = try Feed(reading: text, at: base, type: type)
        let order = PlaybackOrder(of: feed)
        // Only the addresses are needed any more.
        (feed.items, feed.skipped) = ([], [])
        self.init(.feed(feed), order, text, key: key, url: url, base: base, generation: generation)
    }

    private init(
        _ content: Content, _ order: PlaybackOrder, _ text: [UInt8], key: CacheKey, url: OriginURL, base: OriginURL,
        generation: GenerationID?
    ) {
        (self.content, self.order, self.text) = (content, order, text)
        (self.key, self.url, self.base, self.generation) = (key, url, base, generation)
    }

    /// Whether it is a feed, or a list of files that does not begin as HLS does.
    package var isFeed: Bool { if case .feed = content { true } else { false } }

    /// The further playlists of the presentation, each once: those of a multivariant playlist.
    package var playlists: [OriginURL] {
        if case .hls(let playlist) = content { playlist.multivariant?.playlists ?? [] } else { [] }
    }

    /// Whether players choose among the renditions in it: it is a multivariant playlist, or an MPD.
    package var listsRenditions: Bool {
        switch content {
        case .hls(let playlist): playlist.multivariant != nil
        case .dash: true
        case .feed: false
        }
    }

    /// The variables for the media playlists that import them.
    package var variables: [String: String] {
        if case .hls(let playlist) = content { playlist.variables } else { [:] }
    }

    /// How long it counts as the stream's current state; nil if it does not change.
    package var refreshRule: RefreshRule? {
        switch content {
        case .hls(let playlist): playlist.refreshRule
        case .dash(let mpd): mpd.refreshRule
        case .feed: nil
        }
    }

    /// Whether segments are added to it, or removed.
    package var isLive: Bool {
        switch content {
        case .hls(let playlist): playlist.media.map { !$0.hasEnd } ?? false
        case .dash(let mpd): mpd.isDynamic
        case .feed: false
        }
    }

    /// Roughly the memory that it takes as long as it is kept, in bytes: with the longest text for clients that is
    /// kept, or those that are.
    package var weight: Int {
        guard !isListOfFiles else { return text.count +| order.bytes +| longestKept }
        let kept = texts.withLock { $0.values.reduce(0) { $0 +| $1.bytes.count } }
        // Parsed, HLS takes about four times as many.
        return kept +| (mpd?.weight ?? text.count *| 5)
    }

    private var mpd: MPD? { if case .dash(let mpd) = content { mpd } else { nil } }

    /// Its text for a client, so that players find everything in it through the proxy. Generated once for each
    /// form, unless it is much longer than the origin's. Takes a while: not for loops.
    /// - Throws: if it would exceed the size limit of playlists.
    package func text(for form: PlaylistForm) throws(PlaylistError) -> PlaylistText {
        if let known = knownText(for: form) { return known }
        let made = try makeText(for: form)
        guard made.bytes.count <= longestKept else { return made }
        texts.withLock { texts in
            // A proxy has only a few names; for clients that invent more, texts are generated again.
            if texts.count >= mostTexts { texts = [:] }
            texts[form] = made
        }
        return made
    }

    /// A feed, or a playlist that is a list of files: `FeedShelf` keeps many of them.
    private var isListOfFiles: Bool { isFeed || !order.isEmpty }

    /// The most texts for clients that are kept. A household has one name for its proxy, seldom two.
    private var mostTexts: Int { isListOfFiles ? 1 : 4 }

    /// The longest text for clients that is kept, in bytes. A feed of short addresses and a long base can become a
    /// hundred times as long: such a text is generated again for each request.
    private var longestKept: Int { isListOfFiles ? 2 * text.count +| 64 << 10 : .max } // no trap: an array's length

    /// The text for a client that has been generated before, if it was kept.
    package func knownText(for form: PlaylistForm) -> PlaylistText? { texts.withLock { $0[form] } }

    private func makeText(for form: PlaylistForm) throws(PlaylistError) -> PlaylistText {
        if case .feed(let feed) = content { return makeText(of: feed, for: form) }
        let edits = try edits(for: form.proxyForm, at: form.client) + filterEdits(keeping: form.kept)
        return PlaylistText(edits.isEmpty ? text : edits.applied(to: text), isOriginal: edits.isEmpty)
    }

    /// A feed that cannot be rewritten stays as it is: its clients can still use it.
    private func makeText(of feed: Feed, for form: PlaylistForm) -> PlaylistText {
        // References below an xml:base would become absolute although nothing else changes.
        guard form.style != .absolute || form.client != base else { return PlaylistText(text, isOriginal: true) }
        do throws(FeedError) {
            let edits = try feed.edits(for: form.proxyForm, at: form.client)
            return PlaylistText(edits.isEmpty ? text : edits.applied(to: text), isOriginal: edits.isEmpty)
        } catch { return PlaylistText(text, isOriginal: true, fault: error.description) }
    }

    private func filterEdits(keeping kept: PlaylistForm.Kept?) -> [AddressEdit] {
        switch (content, kept) {
        case (.hls(let playlist), .playlists(let kept)?): playlist.multivariant?.edits(keeping: kept) ?? []
        case (.dash(let mpd), .representations(let kept)?): mpd.edits(keeping: kept) ?? []
        default: []
        }
    }

    /// The edits after which a client finds everything in it through the proxy.
    /// - Parameter client: the URL that the client requested, without dot segments.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        switch content {
        case .hls(let playlist): try playlist.edits(for: form, at: client)
        case .dash(let mpd): try mpd.edits(for: form, at: client)
        case .feed: []
        }
    }
}

extension HLSPlaylist {
    /// The files of a plain list; empty for a presentation.
    fileprivate var listedFiles: [OriginURL] {
        guard case .list = content else { return [] }
        return addresses.prefix(FeedLimits.items).compactMap { url(of: $0) }
    }
}

/// A rendition of a presentation.
package struct RenditionID: Sendable, Hashable {
    /// The media playlist, or the MPD.
    package let playlist: CacheKey
    /// Nil for a media playlist, which is a single rendition.
    package let representation: MPD.RepresentationID?

    package init(playlist: CacheKey, representation: MPD.RepresentationID? = nil) {
        (self.playlist, self.representation) = (playlist, representation)
    }
}

extension PlaylistDocument {
    /// The segments of a media playlist; nil for all else. With an index that is built on each call.
    var media: (any SegmentSequence)? { if case .hls(let playlist) = content { playlist.segments } else { nil } }

    /// Finds the representations of an MPD; nil for all else. Built on each call.
    var index: RepresentationSegments.Index? {
        if case .dash(let mpd) = content { RepresentationSegments.Index(mpd, length: text.count) } else { nil }
    }

    /// The renditions that it lists, each with its segments in order: those of an MPD are computed when they are asked
    /// for.
    /// - Parameter now: the time since 1970, by which a dynamic MPD's segments are counted.
    func renditions(at now: Duration) -> [(id: RenditionID, segments: any SegmentSequence)] {
        if let media { return [(RenditionID(playlist: key), media)] }
        guard case .dash(let mpd) = content else { return [] }
        // Renditions that cannot be enumerated still play, but nothing is fetched ahead.
        return mpd.representations.compactMap { id in
            segments(of: id, at: now, index: nil).map { (RenditionID(playlist: key, representation: id), $0) }
        }
    }

    /// The segments of a representation; nil if this is not an MPD, or they cannot be enumerated.
    /// - Parameters:
    ///   - now: the time since 1970.
    ///   - index: the segment index of the file, if the representation is a single file.
    func segments(of id: MPD.RepresentationID, at now: Duration, index: SegmentIndexBox?) -> RepresentationSegments? {
        if case .dash(let mpd) = content { try? mpd.segments(of: id, at: now, index: index) } else { nil }
    }

    /// The place of the segment index of a representation that is a single file.
    func segmentIndex(of id: MPD.RepresentationID) -> (url: OriginURL, range: Range<Int64>)? {
        guard case .dash(let mpd) = content, let (url, range) = mpd.segmentIndex(of: id), let range else { return nil }
        return (url, range)
    }

    /// The other resources of the presentation, besides segments and playlists: initialization sections, keys,
    /// pieces of segments. Those of an MPD are in its index.
    var companions: Set<OriginURL> {
        switch content {
        case .hls(let playlist):
            guard let media = playlist.media else {
                return Set(playlist.multivariant?.sessionKeys.compactMap(\.url) ?? [])
            }
            let keys = media.keySets.joined().compactMap(\.url)
            let parts = (media.segments.lazy.map(\.parts) + [media.trailingParts]).joined().compactMap(\.url)
            return Set(keys + media.initializations.compactMap(\.url) + parts + media.preloadHints.compactMap(\.url))
        case .dash, .feed: return []
        }
    }
}
