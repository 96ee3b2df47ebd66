import HTTPModel
import Synchronization

/// A *listing* is a document that lists what there is to play: a playlist or a feed. It changes more often than the
/// media that it lists. If its origin states no lifetime, none is estimated, and it is validated on every request,
/// unless its text states that it does not change.
package enum Listing {
    /// Whether a response is a listing, by its `Content-Type`.
    package static func isListing(_ fields: HeaderFields) -> Bool {
        fields["Content-Type"].map(isListing(type:)) ?? false
    }

    package static func isListing(type: String) -> Bool {
        let essence = essence(of: type)
        return types.contains(essence) || certainTypes.contains(essence)
    }

    /// Whether a media type is used for playlists, feeds and lists of files only.
    package static func isCertain(type: String) -> Bool {
        certainTypes.contains(essence(of: type))
    }

    /// Whether the beginning of a text is that of a playlist, feed or list.
    /// - Parameters:
    ///   - beginning: decoded (no content coding); only the first `PlaylistKind.sniffedBytes` are examined.
    ///   - type: the `Content-Type` of the response; nil if it has none.
    package static func begins(_ beginning: some Collection<UInt8>, type: String?) -> Bool {
        PlaylistKind.sniff(beginning) != nil || FeedRecognition.isFeed(beginning, type: type)
    }

    /// What the first bytes of a body tell, whatever its media type says.
    package enum Beginning: UInt8, Sendable, AtomicRepresentable {
        /// They were not examined.
        case unknown
        /// A text, too little of which has come to decide.
        case text
        /// A playlist of segmented media.
        case playlist
        /// A feed or a list of files, unless its origin calls it a web page.
        case feed
        case other
    }

    /// Examines the first bytes of a body.
    /// - Parameters:
    ///   - bytes: decoded (no content coding).
    ///   - isEnough: whether no further bytes are needed: `PlaylistKind.sniffedBytes` are here, or all.
    package static func beginning(_ bytes: some Collection<UInt8>, isEnough: Bool) -> Beginning {
        guard let first = bytes.first else { return isEnough ? .other : .unknown }
        guard mayBegin(with: first) else { return .other }
        if PlaylistKind.sniff(bytes) != nil { return .playlist }
        if FeedRecognition.isFeed(bytes, type: nil) { return .feed }
        return isEnough ? .other : .text
    }

    /// The bytes of the longest body that is read as a listing.
    package static let longest: Int64 = 32 << 20

    /// Whether a listing whose media type leaves it open can begin with a byte. If not, nothing more needs to be
    /// examined.
    package static func mayBegin(with byte: UInt8) -> Bool {
        PlaylistKind.mayBegin(with: byte) || FeedRecognition.mayBegin(with: byte)
    }

    /// A media type in lower case and without its parameters.
    static func essence(of type: String) -> String {
        var type = type
        return type.withUTF8 { bytes in
            let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.count
            return ASCII.lowercased(ASCII.trimmed(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<end]))))
        }
    }

    private static let certainTypes = FeedRecognition.certainTypes.union(PlaylistKind.mediaTypes.keys)

    /// Feeds are also served as plain XML or JSON. A patch to a live manifest grows at its URL.
    private static let types: Set<String> = [
        "application/dash-patch+xml",
        "application/vnd.ms-sstr+xml", "application/feed+json", "application/xml", "text/xml", "application/json",
        "text/x-opml",
    ]
}
