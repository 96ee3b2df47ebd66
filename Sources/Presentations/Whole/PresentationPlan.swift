import CachePolicy
import HTTPModel
import Playlists

/// What to fetch of a presentation, given its first playlist and a choice of renditions. A value.
///
///     first playlist ─ choice ─▶ further playlists (HLS), indexes of files (DASH) ─▶ items
package struct PresentationPlan: Sendable {
    /// The place of the segment index of a file that is one rendition.
    package struct FileIndex: Sendable {
        package let id: MPD.RepresentationID
        package let item: PresentationItem
    }

    /// The chosen media playlists, each once.
    package private(set) var playlists: [OriginURL] = []
    package private(set) var indexes: [FileIndex] = []
    /// The chosen renditions, for people, such as `1080p 4.2 Mbit/s`, `audio en`.
    package private(set) var names: [String] = []
    /// Languages that were ordered but are not available.
    package private(set) var missingLanguages: [String] = []
    private let first: PlaylistDocument
    private var representations: [MPD.RepresentationID] = []
    private var sessionKeys: [PresentationItem] = []
    private var isProtected = false

    /// - Parameter document: the first playlist; neither a plain list of addresses nor a feed.
    package init(_ document: PlaylistDocument, _ choice: RenditionChoice) throws(PresentationFault) {
        first = document
        switch document.content {
        case .hls(let playlist): try take(playlist, choice)
        case .dash(let mpd): try take(mpd, choice)
        case .feed: throw .empty
        }
    }

    private mutating func take(_ playlist: HLSPlaylist, _ choice: RenditionChoice) throws(PresentationFault) {
        guard let multivariant = playlist.multivariant else { return }
        let chosen = multivariant.choose(choice)
        playlists = choice.isEverything ? multivariant.playlists : chosen.playlists
        guard !playlists.isEmpty else { throw .empty }
        names = chosen.variants.map(\.title) + chosen.renditions.map(\.title)
        missingLanguages = chosen.missingLanguages
        sessionKeys = multivariant.sessionKeys.filter(\.isFile).compactMap(\.url).map {
            PresentationItem(kind: .key, url: $0)
        }
    }

    private mutating func take(_ mpd: MPD, _ choice: RenditionChoice) throws(PresentationFault) {
        guard !mpd.periods.contains(where: { $0.remote != nil || $0.adaptationSets.contains { $0.remote != nil } })
        else { throw .remote }
        let chosen = mpd.choose(choice)
        (representations, missingLanguages) = (chosen.representations, chosen.missingLanguages)
        guard !representations.isEmpty else { throw .empty }
        isProtected = representations.contains { mpd[$0]?.isProtected ?? false }
        // The names of one period stand for all periods.
        names = representations.filter { $0.period == representations.first?.period }.compactMap { mpd.title(of: $0) }
        indexes = representations.compactMap { id in
            mpd.segmentIndex(of: id).map { index in
                FileIndex(id: id, item: PresentationItem(kind: .index, url: index.url, range: index.range))
            }
        }
    }

    /// The items to fetch, with the number of segments and a note for people.
    package typealias Found = (items: PresentationItems, segments: Int64, note: String?)

    /// What `items` returns, counted.
    package func found(
        _ documents: [OriginURL: PlaylistDocument] = [:], _ boxes: [MPD.RepresentationID: SegmentIndexBox] = [:]
    ) throws(PresentationFault) -> Found {
        let items = try items(documents, boxes)
        return (items, items.reduce(Int64(0)) { $0 +| $1.segments }, note(documents))
    }

    /// The items to fetch, once the further playlists and the indexes are cached.
    /// - Parameters:
    ///   - documents: the documents of `playlists`, by their URLs.
    ///   - boxes: the contents of `indexes`. A file without one is fetched as a whole.
    package func items(
        _ documents: [OriginURL: PlaylistDocument] = [:], _ boxes: [MPD.RepresentationID: SegmentIndexBox] = [:]
    ) throws(PresentationFault) -> PresentationItems {
        var tracks: [PresentationItems.Track] = []
        for document in mediaPlaylists(documents) {
            do throws(PlaylistError) {
                let segments = try document.media(within: WorkBudget(bytes: document.text.count))
                if let segments { tracks.append(PresentationItems.Track(segments)) }
            } catch { throw .unreadable(document.url, error) }
        }
        if case .dash(let mpd) = first.content {
            for id in representations { tracks.append(try Self.track(of: id, mpd, boxes[id], first.url)) }
        }
        return PresentationItems(tracks, before: sessionKeys + indexes.map(\.item))
    }

    private static func track(of id: MPD.RepresentationID, _ mpd: MPD, _ box: SegmentIndexBox?, _ url: OriginURL)
        throws(PresentationFault) -> PresentationItems.Track
    {
        do throws(PlaylistError) {
            return PresentationItems.Track(
                try mpd.segments(of: id, index: box), from: mpd.periods[id.period].start ?? .zero)
        } catch { throw .unreadable(url, error) }
    }

    private func mediaPlaylists(_ documents: [OriginURL: PlaylistDocument]) -> [PlaylistDocument] {
        guard case .hls(let playlist) = first.content else { return [] }
        return playlist.media != nil ? [first] : playlists.compactMap { documents[$0] }
    }

    /// Whether playing it requires more than can be fetched: the licences of a DRM system.
    private func needsLicence(_ documents: [OriginURL: PlaylistDocument]) -> Bool {
        isProtected
            || mediaPlaylists(documents).contains { document in
                guard case .hls(let playlist) = document.content, let media = playlist.media else { return false }
                return media.keySets.contains { !$0.isEmpty && !$0.contains { media.keys[Int($0)].needsNoLicence } }
            }
    }

    /// A note about the finished download, in one line; nil for none.
    package func note(_ documents: [OriginURL: PlaylistDocument] = [:]) -> String? {
        var parts = names.isEmpty ? [] : [names.prefix(Self.mostNames).joined(separator: ", ")]
        if names.count > Self.mostNames { parts[0] += " and \(names.count - Self.mostNames) more" }
        if !missingLanguages.isEmpty {
            parts.append("nothing is available in \(missingLanguages.joined(separator: ", "))")
        }
        if needsLicence(documents) {
            parts.append("it is encrypted for a DRM system, and plays only with its licence")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ").printable
    }

    private static let mostNames = 8
}

extension Playlists.Variant {
    fileprivate var title: String { RenditionName.of(self) }
}

extension AlternativeRendition {
    /// `audio en`
    fileprivate var title: String { RenditionName.of(self) }
}

extension MPD {
    fileprivate func title(of id: RepresentationID) -> String? {
        guard let representation = self[id] else { return nil }
        let set = periods[id.period].adaptationSets[id.adaptationSet]
        switch set.kind {
        case .video:
            return RenditionName.video(representation.resolution, bandwidth: representation.bandwidth, isVideo: true)
        case .audio, .text, .image:
            let kind = set.kind == .text ? "subtitles" : set.kind.rawValue
            return set.language.map { "\(kind) \($0)" } ?? kind
        }
    }
}
