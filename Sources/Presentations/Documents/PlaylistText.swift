import CXXHash
import CachePolicy
import HTTPModel
import Playlists

/// How a client reaches what a playlist names: all that its text depends on beside the origin's.
package struct PlaylistForm: Sendable, Hashable {
    /// How URLs of origins are written.
    package enum Style: Sendable, Hashable {
        /// As they are: for clients that take the proxy for an HTTP proxy.
        case absolute
        /// `/https/host/path`
        case path
        /// Below a mount; what is below none by its path, where any origin is served.
        case mount(servesAnyOrigin: Bool)
    }

    /// The renditions that are left in it.
    package enum Kept: Sendable, Hashable {
        /// Of a multivariant playlist: the URLs of their media playlists.
        case playlists(Set<OriginURL>)
        case representations(Set<MPD.RepresentationID>)
    }

    /// The URL under which the client has asked for the playlist, by the name that it has for the proxy; without dot
    /// segments.
    package let client: OriginURL
    package let style: Style
    private let mounts: [Mount]
    /// Nil for all renditions.
    package var kept: Kept?

    package init(client: OriginURL, style: Style, mounts: [Mount] = [], kept: Kept? = nil) {
        (self.client, self.style, self.kept) = (client, style, kept)
        self.mounts = mounts
    }

    var proxyForm: ProxyForm {
        switch style {
        case .absolute: ProxyForm { $0 }
        case .path: .path(at: client)
        case .mount(let servesAnyOrigin):
            .mounts(mounts, at: client, otherwise: servesAnyOrigin ? .path(at: client) : nil)
        }
    }
}

/// The text of a playlist as a client gets it. The same input gives the same bytes.
package struct PlaylistText: Sendable {
    package let bytes: [UInt8]
    /// Whether it is the origin's, byte for byte.
    package let isOriginal: Bool
    /// Strong: by its bytes (RFC 9110 §8.8.3).
    package let etag: EntityTag

    init(_ bytes: [UInt8], isOriginal: Bool) {
        (self.bytes, self.isOriginal) = (bytes, isOriginal)
        let hash = bytes.withUnsafeBytes { XXH3_128bits($0.baseAddress, $0.count) }
        etag = EntityTag(opaque: [hash.high64, hash.low64].map { String($0, radix: 16) }.joined(separator: "-"))
    }
}
