import HTTPModel

/// A *listing* is a document that lists what there is to play: a playlist or a feed. It changes more often than the
/// media that it lists. If its origin states no lifetime, none is estimated, and it is validated on every request.
package enum Listing {
    /// Whether a response is a listing, by its `Content-Type`.
    package static func isListing(_ fields: HeaderFields) -> Bool {
        fields["Content-Type"].map(isListing(type:)) ?? false
    }

    package static func isListing(type: String) -> Bool {
        let essence = essence(of: type)
        return types.contains(essence) || isCertain(type: essence)
    }

    /// Whether a media type is used for playlists, feeds and lists of files only.
    package static func isCertain(type: String) -> Bool {
        PlaylistKind(mediaType: type) != nil || FeedRecognition.isCertain(type: type)
    }

    /// Whether the beginning of a text is that of a playlist, feed or list.
    /// - Parameters:
    ///   - beginning: decoded (no content coding); only the first `PlaylistKind.sniffedBytes` are examined.
    ///   - type: the `Content-Type` of the response; nil if it has none.
    package static func begins(_ beginning: some Collection<UInt8>, type: String?) -> Bool {
        PlaylistKind.sniff(beginning) != nil || FeedRecognition.isFeed(beginning, type: type)
    }

    /// Whether a listing whose media type leaves it open can begin with a byte. If not, nothing more needs to be
    /// examined.
    package static func mayBegin(with byte: UInt8) -> Bool {
        PlaylistKind.mayBegin(with: byte) || FeedRecognition.mayBegin(with: byte)
    }

    /// A media type in lower case and without its parameters.
    static func essence(of type: String) -> String {
        ASCII.lowercased(ASCII.trimmed(type.prefix { $0 != ";" }))
    }

    /// Feeds are also served as plain XML or JSON.
    private static let types: Set<String> = [
        "application/vnd.ms-sstr+xml", "application/feed+json", "application/xml", "text/xml", "application/json",
        "text/x-opml",
    ]
}
