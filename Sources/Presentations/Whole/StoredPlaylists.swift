import CachePolicy
import DiskCache
import HTTPModel
import Playlists

/// Playlists and indexes as they are read out of the cache. All of it blocks.
struct StoredPlaylists: Sendable {
    let store: CacheStore

    /// What a resource turns out to be.
    enum Content: Sendable {
        case file
        case playlist(PlaylistDocument)
    }

    /// - Parameters:
    ///   - key: of the resource, which is there as a whole; for what is no playlist its beginning is enough.
    ///   - url: by which it was asked for.
    ///   - variables: of the multivariant playlist that led here.
    func content(of key: CacheKey, _ url: OriginURL, importing variables: [String: String]? = nil)
        throws(PresentationFault) -> Content
    {
        guard try isPlaylist(key) else { return .file }
        guard let stored = try bytes(of: key, limit: PlaylistLimits.bytes) else {
            throw .unreadable(url, PlaylistError(.tooLarge, "it is longer than any playlist, or not all there"))
        }
        guard let text = try? ContentCoding.decoded(stored.bytes, stored.fields) else {
            throw .unreadable(url, PlaylistError(.encoding, "its content coding is broken, or not known"))
        }
        do throws(PlaylistError) {
            let document = try PlaylistDocument(
                text, key: key, url: url, base: (try? OriginURL(url: stored.finalURL)) ?? url, importing: variables)
            return document.isPlainList ? .file : .playlist(document)
        } catch { throw .unreadable(url, error) }
    }

    /// By what it begins with, or by its type where that is encoded.
    private func isPlaylist(_ key: CacheKey) throws(PresentationFault) -> Bool {
        let length: Int64?
        do throws(StoreError) { length = try store.coverage(key)?.length } catch { throw .cache("\(error)") }
        let beginning = 0..<min(Int64(PlaylistKind.sniffedBytes), max(0, length ?? 0)) // no trap: not below 0
        guard let stored = try bytes(of: key, beginning, limit: PlaylistKind.sniffedBytes) else { return false }
        if ContentEncoding.isUncoded(stored.fields) { return PlaylistKind.sniff(stored.bytes) != nil }
        return stored.fields["Content-Type"].flatMap { PlaylistKind(mediaType: $0) } != nil
    }

    /// Of a file of one rendition, the bytes that say which segments it has; nil where they say nothing that is
    /// understood.
    func index(_ item: PresentationItem, _ key: CacheKey) throws(PresentationFault) -> SegmentIndexBox? {
        guard let range = item.range, let stored = try bytes(of: key, range, limit: Self.longestIndex) else {
            return nil
        }
        return try? SegmentIndexBox(stored.bytes, at: range.lowerBound)
    }

    /// 65,535 entries of twelve bytes, and what stands before them.
    private static let longestIndex = 2 << 20

    private func bytes(of key: CacheKey, _ range: Range<Int64>? = nil, limit: Int) throws(PresentationFault)
        -> StoredBytes?
    {
        do throws(StoreError) { return try store.bytes(of: key, range, limit: limit) } catch {
            throw .cache("\(error)")
        }
    }
}

extension PlaylistDocument {
    /// Whether it is a list of addresses and nothing else, such as one of channels.
    var isPlainList: Bool {
        if case .hls(let playlist) = content, case .list = playlist.content { true } else { false }
    }
}
