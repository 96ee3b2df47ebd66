import CachePolicy
import DiskCache
import HTTPModel
import Playlists
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

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
    /// How long it counts as the stream's current state; nil if it does not change.
    package let refreshRule: RefreshRule?
    /// Whether segments are added to it, or removed.
    package let isLive: Bool
    /// Whether it states that it does not change (RFC 8216 §4.3.3.5).
    package let isUnchanging: Bool
    /// Whether players choose among the renditions in it: it is a multivariant playlist, or an MPD.
    package let listsRenditions: Bool
    /// The memory that all takes that was read, in bytes.
    private let readWeight: Int
    /// Its text for clients, by form.
    private let texts = Mutex<[(form: PlaylistForm, text: PlaylistText)]>([])

    /// Parses a text. Large ones take a while: not for loops.
    /// - Parameter variables: the variables that the multivariant playlist which led here defines
    ///   (`EXT-X-DEFINE`); nil if none is known.
    /// - Throws: if it is neither kind of playlist, or cannot be parsed.
    package convenience init(
        _ text: [UInt8], key: CacheKey, url: OriginURL, base: OriginURL, generation: GenerationID? = nil,
        importing variables: [String: String]? = nil, within budget: WorkBudget
    ) throws(PlaylistError) {
        let content: Content, order: PlaybackOrder
        switch PlaylistKind.sniff(text) {
        case .hls:
            let playlist = try HLSPlaylist(text, at: base, importing: variables, within: budget)
            (content, order) = (.hls(playlist), PlaybackOrder(ofList: playlist.listedFiles, within: budget))
        case .dash:
            let mpd = try MPD(text, at: base, within: budget)
            (content, order) = (.dash(mpd), PlaybackOrder(ofList: [], within: budget))
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
        generation: GenerationID? = nil, within budget: WorkBudget
    ) throws(FeedError) {
        var feed = try Feed(reading: text, at: base, type: type, within: budget)
        let order = PlaybackOrder(of: feed, within: budget)
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
        let read: Int
        switch content {
        case .hls(let playlist):
            let media = playlist.media
            (refreshRule, isLive, isUnchanging) = (
                media?.refreshRule, media?.hasEnd == false, Self.isUnchanging(media, text)
            )
            (listsRenditions, read) = (playlist.multivariant != nil, playlist.weight)
        case .dash(let mpd):
            (refreshRule, isLive, isUnchanging) = (mpd.refreshRule, mpd.isDynamic, false)
            (listsRenditions, read) = (true, mpd.weight)
        case .feed(let feed):
            (refreshRule, isLive, isUnchanging, listsRenditions, read) = (nil, false, false, false, feed.weight)
        }
        readWeight = text.count +| read +| order.weight
    }

    /// RFC 8216 §4.3.3.5: a list of type VOD must not change. One without its end may have been cut; addresses with a
    /// query may be signed for a short time.
    private static func isUnchanging(_ media: MediaPlaylist?, _ text: [UInt8]) -> Bool {
        guard let media, media.type == .vod, media.hasEndTag else { return false }
        return !text.contains(UInt8(ascii: "?"))
    }

    /// Whether it is a feed, or a list of files that does not begin as HLS does.
    package var isFeed: Bool { if case .feed = content { true } else { false } }

    /// Whether it lists the parts of a film: neither of a stream that is live, nor files or episodes.
    var isOfFilm: Bool { !isLive && !isListOfFiles }

    /// The variables for the media playlists that import them.
    package var variables: [String: String] {
        if case .hls(let playlist) = content { playlist.variables } else { [:] }
    }

    /// Whether it is the same if there are these variables to import.
    func fits(_ variables: [String: String]?) -> Bool {
        guard case .hls(let playlist) = content else { return true }
        return playlist.imported.allSatisfy { variables?[$0.key] == $0.value }
    }

    /// The first sources of the time that it names for its players, but for itself; no manifest has more than a few.
    var clocks: [OriginURL] {
        if case .dash(let mpd) = content {
            Array(mpd.clocks.lazy.filter { [url, base] in $0 != url && $0 != base }.prefix(16))
        } else {
            []
        }
    }

    /// The memory that it takes as long as it is kept, in bytes: of a list of files with the longest text for clients
    /// that may be kept, of others with those that are.
    package var weight: Int {
        let kept = isListOfFiles ? longestKept : texts.withLock { $0.reduce(0) { $0 +| $1.text.bytes.count } }
        return readWeight +| kept
    }

    /// Its text for a client, so that players find everything in it through the proxy. Generated once for each
    /// form, unless it is much longer than the origin's. Takes a while: not for loops.
    /// - Throws: if the budget is spent.
    package func text(for form: PlaylistForm, within budget: WorkBudget) throws(PlaylistError) -> PlaylistText {
        if let known = knownText(for: form) { return known }
        let made = try makeText(for: form, within: budget)
        guard made.bytes.count <= longestKept else { return made }
        texts.withLock { texts in
            // A proxy has only a few names; for clients that invent more, texts are generated again.
            guard !texts.contains(where: { $0.form == form }) else { return }
            if texts.count >= mostTexts { texts = [] }
            texts.append((form, made))
        }
        return made
    }

    /// A feed, or a playlist that is a list of files: `FeedShelf` keeps many of them.
    private var isListOfFiles: Bool { isFeed || !order.forms.isEmpty }

    /// The most texts for clients that are kept. A household has one name for its proxy, seldom two.
    private var mostTexts: Int { isListOfFiles ? 1 : 4 }

    /// The longest text for clients that is kept, in bytes. One of short addresses and a long base can become many
    /// times as long: such a text is generated again for each request.
    private var longestKept: Int { 2 * text.count +| 64 << 10 } // no trap: an array's length

    /// The text for a client that has been generated before, if it was kept.
    package func knownText(for form: PlaylistForm) -> PlaylistText? {
        texts.withLock { $0.first { $0.form == form }?.text }
    }

    private func makeText(for form: PlaylistForm, within budget: WorkBudget) throws(PlaylistError) -> PlaylistText {
        if case .feed(let feed) = content { return try makeText(of: feed, for: form, within: budget) }
        let edits =
            try edits(for: form.proxyForm, at: form.client, within: budget)
            + filterEdits(for: form, within: budget)
        return PlaylistText(edits.isEmpty ? text : edits.applied(to: text), isOriginal: edits.isEmpty)
    }

    /// A feed that cannot be rewritten stays as it is: its clients can still use it.
    private func makeText(of feed: Feed, for form: PlaylistForm, within budget: WorkBudget) throws(PlaylistError)
        -> PlaylistText
    {
        // References below an xml:base would become absolute although nothing else changes.
        guard form.style != .absolute || form.client != base else { return PlaylistText(text, isOriginal: true) }
        do throws(FeedError) {
            let edits = try feed.edits(for: form.proxyForm, at: form.client, within: budget)
            return PlaylistText(edits.isEmpty ? text : edits.applied(to: text), isOriginal: edits.isEmpty)
        } catch { return PlaylistText(text, isOriginal: true, fault: error.description) }
    }

    private func filterEdits(for form: PlaylistForm, within budget: WorkBudget) throws(PlaylistError) -> [AddressEdit] {
        switch (content, form.kept) {
        case (.hls(let playlist), .playlists(let kept)?):
            try playlist.multivariant?.edits(keeping: kept, within: budget) ?? []
        case (.dash(let mpd), .representations(let kept)?): try mpd.edits(keeping: kept, within: budget) ?? []
        case (.hls(let playlist), nil) where !form.limit.isNone:
            playlist.multivariant?.edits(within: form.limit) ?? []
        case (.dash(let mpd), nil) where !form.limit.isNone: try mpd.edits(within: form.limit, budget)
        default: []
        }
    }

    /// The edits after which a client finds everything in it through the proxy.
    /// - Parameter client: the URL that the client requested, without dot segments.
    package func edits(for form: ProxyForm, at client: OriginURL, within budget: WorkBudget) throws(PlaylistError)
        -> [AddressEdit]
    {
        switch content {
        case .hls(let playlist): try playlist.edits(for: form, at: client, within: budget)
        case .dash(let mpd): try mpd.edits(for: form, at: client, within: budget)
        case .feed: []
        }
    }
}

extension HLSPlaylist {
    /// The files of a plain list; empty for a presentation.
    fileprivate var listedFiles: some Sequence<OriginURL> {
        let count = if case .list = content { FeedLimits.items } else { 0 }
        return addresses.prefix(count).lazy.compactMap { url(of: $0) }
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
    func media(within budget: WorkBudget) throws(PlaylistError) -> MediaPlaylistSegments? {
        if case .hls(let playlist) = content { try playlist.segments(within: budget) } else { nil }
    }

    /// The same as far as its own text pays for it.
    var media: MediaPlaylistSegments? { (try? media(within: WorkBudget(bytes: text.count))).flatMap(\.self) }

    /// Finds the representations of an MPD; nil for all else. Built on each call.
    func index(within budget: WorkBudget) -> RepresentationSegments.Index? {
        if case .dash(let mpd) = content { RepresentationSegments.Index(mpd, within: budget) } else { nil }
    }

    /// The renditions that it lists, each with its segments in order: those of an MPD are computed when they are asked
    /// for.
    /// - Parameter now: the time since 1970, by which a dynamic MPD's segments are counted.
    func renditions(at now: Duration, within budget: WorkBudget) throws(PlaylistError)
        -> [(id: RenditionID, segments: any SegmentSequence)]
    {
        if let media = try media(within: budget) { return [(RenditionID(playlist: key), media)] }
        guard case .dash(let mpd) = content else { return [] }
        try budget.take(mpd.representations.count)
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
}
