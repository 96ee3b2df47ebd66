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
    /// Nil for a rendition that stands alone.
    func role(of rendition: RenditionID) -> RenditionRole? {
        if let id = rendition.representation {
            return .adaptationSet(rendition.playlist, period: id.period, set: id.adaptationSet)
        }
        guard let url = document(rendition.playlist)?.url, let parent = parent(of: url) else { return nil }
        return parent.role(of: url.withoutDeliveryDirectives)
    }
}

extension PlaylistDocument {
    /// The role of the media playlist at a URL. An audio rendition may be a variant too, for players that need
    /// only audio: it does not replace the video.
    fileprivate func role(of url: OriginURL) -> RenditionRole? {
        guard case .hls(let playlist) = content, let multivariant = playlist.multivariant else { return nil }
        if let found = multivariant.renditions.first(where: { $0.url == url }) { return .alternative(key, found.kind) }
        return multivariant.variants.contains { $0.url == url } ? .variant(key) : nil
    }
}
