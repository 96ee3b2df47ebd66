import CachePolicy
import Playlists

/// A rendition's role in its presentation. A player plays one rendition of each role at a time: another one of the
/// same role is a switch of quality or language. Renditions of different roles play side by side.
enum RenditionRole: Hashable, Sendable {
    /// A variant of a multivariant playlist.
    case variant(CacheKey)
    /// An alternative rendition of a multivariant playlist, such as one of its audio tracks.
    case alternative(CacheKey, AlternativeRendition.Kind)
    /// A representation of one adaptation set of an MPD.
    case adaptationSet(CacheKey, period: Int, set: Int)
}

extension PlaylistShelf {
    /// The media playlists of a presentation: how listings call each, and its role. Made once, off the loops.
    struct Roles: Sendable {
        struct Entry: Sendable {
            var name: String
            var role: RenditionRole
        }

        /// By the hash of the URL, which may be long.
        private(set) var entries: [Int: Entry] = [:]
        /// The names of representations.
        private(set) var names: [MPD.RepresentationID: String] = [:]
        /// The memory that all takes, in bytes.
        let weight: Int

        /// Nobody tells more apart by their names.
        private static let most = 1000

        /// - Parameter budget: that of the text.
        init(_ document: PlaylistDocument, within budget: WorkBudget) {
            var bytes = 0
            switch document.content {
            case .hls(let playlist):
                guard let playlist = playlist.multivariant else { break }
                for list in NamedRenditions.of(playlist, upTo: Self.most, within: budget) {
                    entries[list.url.hashValue] = Entry(name: list.name, role: .variant(document.key))
                    bytes += list.name.utf8.count &+ MemoryLayout<(Int, Entry)>.stride
                }
                // An audio rendition may be a variant too, for players of sound alone: it does not replace the video.
                for one in playlist.renditions.prefix(Self.most).reversed() {
                    if let url = one.url { entries[url.hashValue]?.role = .alternative(document.key, one.kind) }
                }
            case .dash(let mpd):
                guard mpd.representations.count <= Self.most else { break }
                for (id, name) in NamedRenditions.of(mpd) {
                    names[id] = name
                    bytes += name.utf8.count &+ MemoryLayout<(MPD.RepresentationID, String)>.stride
                }
            case .feed: break
            }
            weight = bytes &* 2
        }
    }
}
