import Activity
import CXXHash
import CachePolicy
import HTTPModel
import Playlists

/// How a client reaches the URLs in a playlist or feed: everything that its text depends on besides the origin's text.
package struct PlaylistForm: Sendable, Equatable {
    /// How URLs of origins are written.
    package enum Style: Sendable, Equatable {
        /// Unchanged, for clients that use this as an HTTP proxy.
        case absolute
        /// `/https/host/path`
        case path
        /// Below a mount; URLs below none by their `/https/host/path`, if any origin is served.
        case mount(servesAnyOrigin: Bool)
    }

    /// The renditions that are kept in it.
    package enum Kept: Sendable, Equatable {
        /// For a multivariant playlist: the URLs of the media playlists.
        case playlists(Set<OriginURL>)
        case representations(Set<MPD.RepresentationID>)
    }

    /// The URL that the client requested for the playlist, with the name that it uses for the proxy; without dot
    /// segments.
    package let client: OriginURL
    package let style: Style
    private let mounts: [Mount]
    /// Nil for all renditions.
    package var kept: Kept?
    /// That of a rule; it applies unless some are kept.
    package let limit: ResolvedRule.QualityLimit

    package init(
        client: OriginURL, style: Style, mounts: [Mount] = [], kept: Kept? = nil,
        limit: ResolvedRule.QualityLimit = ResolvedRule.QualityLimit()
    ) {
        (self.client, self.style, self.kept, self.limit) = (client, style, kept, limit)
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

/// The text of a playlist or feed for a client. The same input gives the same bytes.
package struct PlaylistText: Sendable {
    package let bytes: [UInt8]
    /// Stands for the bytes, which many answers may send.
    package let shared = ProxyMetrics.Transit.SharedBytes()
    /// Whether it is the origin's text, byte for byte.
    package let isOriginal: Bool
    /// Why it was not rewritten although it needs it; nil if nothing went wrong.
    package let fault: String?
    /// A strong validator, derived from the bytes (RFC 9110 §8.8.3).
    package let etag: EntityTag
    /// The fields that describe it, as they are sent.
    package let fieldBytes: [UInt8]

    init(_ bytes: [UInt8], isOriginal: Bool, fault: String? = nil) {
        (self.bytes, self.isOriginal, self.fault) = (bytes, isOriginal, fault)
        let hash = bytes.withUnsafeBytes { XXH3_128bits($0.baseAddress, $0.count) }
        etag = EntityTag(opaque: [hash.high64, hash.low64].map { String($0, radix: 16) }.joined(separator: "-"))
        fieldBytes = Array("ETag: \(etag.fieldValue)\r\nAccept-Ranges: bytes\r\n".utf8)
    }
}
