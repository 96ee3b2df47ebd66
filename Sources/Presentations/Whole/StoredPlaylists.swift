import CachePolicy
import DiskCache
import HTTPModel
import Playlists

extension PresentationFill {
    /// Reads playlists and indexes from the cache. All methods block.
    struct StoredPlaylists: Sendable {
        let store: CacheStore
        /// With which reading them is cancelled.
        let budget: WorkBudget

        /// The kind of a resource.
        enum Content: Sendable {
            case file
            case playlist(PlaylistDocument)
        }

        /// - Parameters:
        ///   - key: the cache key of the resource, which is completely cached; if it is not a playlist, its beginning
        ///     suffices.
        ///   - url: the requested URL.
        ///   - variables: the variables of the multivariant playlist that led here.
        func content(of key: CacheKey, _ url: OriginURL, importing variables: [String: String]? = nil)
            throws(PresentationFault) -> Content
        {
            guard try isPlaylist(key) else { return .file }
            guard let stored = try bytes(of: key, limit: PlaylistLimits.bytes) else {
                throw .unreadable(
                    url, PlaylistError(.tooLarge, "it is too long for a playlist, or not completely cached"))
            }
            guard let text = try? ContentCoding.decoded(stored.bytes, stored.fields) else {
                throw .unreadable(url, PlaylistError(.encoding, "its content coding is broken or unknown"))
            }
            do throws(PlaylistError) {
                let document = try PlaylistDocument(
                    text, key: key, url: url, base: (try? OriginURL(url: stored.finalURL)) ?? url, importing: variables,
                    within: WorkBudget(bytes: text.count, of: budget))
                return document.isPlainList ? .file : .playlist(document)
            } catch { throw .unreadable(url, error) }
        }

        /// Whether a playlist is cached as it was read.
        func isAsRead(_ document: PlaylistDocument) throws(PresentationFault) -> Bool {
            guard let stored = try bytes(of: document.key, limit: PlaylistLimits.bytes) else { return false }
            return (try? ContentCoding.decoded(stored.bytes, stored.fields)) == document.text
        }

        /// Decides by its first bytes, or by its type if it is encoded.
        private func isPlaylist(_ key: CacheKey) throws(PresentationFault) -> Bool {
            let length: Int64?
            do throws(StoreError) { length = try store.coverage(key)?.length } catch { throw .cache("\(error)") }
            let beginning = 0..<min(Int64(PlaylistKind.sniffedBytes), max(0, length ?? 0)) // no trap: not below 0
            guard let stored = try bytes(of: key, beginning, limit: PlaylistKind.sniffedBytes) else { return false }
            if ContentEncoding.isUncoded(stored.fields) { return PlaylistKind.sniff(stored.bytes) != nil }
            return stored.fields["Content-Type"].flatMap { PlaylistKind(mediaType: $0) } != nil
        }

        /// The segment index of a file that is one rendition; nil if its bytes cannot be parsed.
        func index(_ item: PresentationItem, _ key: CacheKey) throws(PresentationFault) -> SegmentIndexBox? {
            guard let range = item.range, let stored = try bytes(of: key, range, limit: Self.longestIndex) else {
                return nil
            }
            return try? SegmentIndexBox(stored.bytes, at: range.lowerBound)
        }

        /// 65,535 entries of twelve bytes, and the bytes before them.
        private static let longestIndex = 2 << 20

        private func bytes(of key: CacheKey, _ range: Range<Int64>? = nil, limit: Int) throws(PresentationFault)
            -> StoredBytes?
        {
            do throws(StoreError) { return try store.bytes(of: key, range, limit: limit) } catch {
                throw .cache("\(error)")
            }
        }
    }
}

extension PlaylistDocument {
    /// Whether it is a mere list of addresses, such as a list of channels.
    var isPlainList: Bool {
        if case .hls(let playlist) = content, case .list = playlist.content { true } else { false }
    }
}
