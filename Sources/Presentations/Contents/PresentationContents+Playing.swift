import CachePolicy
import DiskCache
import Playlists

extension PresentationContents {
    /// Whether a completely cached resource can be played from the cache. For a playlist, its segments decide. Blocks.
    package static func isPlayable(_ key: CacheKey, in store: CacheStore, _ policy: ProxyPolicy) throws(StoreError)
        -> Bool
    {
        var isPlaylist = try store.parts.areKnown(of: key)
        if !isPlaylist { isPlaylist = try Self.isPlaylist(key, in: store) }
        guard isPlaylist else { return true }
        guard let contents = try PresentationContents(of: key, in: store, policy) else { return false }
        // A list of addresses, such as one of channels, has no segments to lack.
        if case .hls(let playlist) = contents.document.content, case .list = playlist.content { return true }
        return contents.isPlayable
    }

    /// By its type, or by its first bytes. A resource longer than any playlist is not read.
    private static func isPlaylist(_ key: CacheKey, in store: CacheStore) throws(StoreError) -> Bool {
        guard let length = try store.coverage(key)?.length, length > 0, length <= Int64(PlaylistLimits.bytes) else {
            return false
        }
        let beginning = 0..<min(Int64(PlaylistKind.sniffedBytes), length) // no trap: above 0
        guard let stored = try store.bytes(of: key, beginning, limit: PlaylistKind.sniffedBytes) else { return false }
        if let type = stored.fields["Content-Type"], PlaylistKind(mediaType: type) != nil { return true }
        return ContentEncoding.isUncoded(stored.fields) && PlaylistKind.sniff(stored.bytes) != nil
    }
}
