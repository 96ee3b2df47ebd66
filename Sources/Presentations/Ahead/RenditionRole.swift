import CachePolicy
import Playlists

/// What a rendition is to the presentation that it belongs to. Of those that have the same role a player plays one at a
/// time: another one is a switch of quality or of language. Those of different roles play beside one another.
enum RenditionRole: Hashable, Sendable {
    /// Of a multivariant playlist.
    case variant(CacheKey)
    /// Of a multivariant playlist: one of its sounds, say.
    case alternative(CacheKey, AlternativeRendition.Kind)
    /// Of an MPD.
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
    /// Of the media playlist at a URL. One that is a sound beside pictures may be a variant too, for who wants nothing
    /// but sound: it does not take the pictures' place.
    fileprivate func role(of url: OriginURL) -> RenditionRole? {
        guard case .hls(let playlist) = content, let multivariant = playlist.multivariant else { return nil }
        if let found = multivariant.renditions.first(where: { $0.url == url }) { return .alternative(key, found.kind) }
        return multivariant.variants.contains { $0.url == url } ? .variant(key) : nil
    }
}
