import HTTPModel

/// A *listing* is a document that lists what there is to play: a playlist or a feed. It changes more often than the
/// media that it lists. If its origin states no lifetime, none is estimated, and it is validated on every request.
package enum Listing {
    /// Whether a response is a listing, by its `Content-Type`.
    package static func isListing(_ fields: HeaderFields) -> Bool {
        fields["Content-Type"].map(isListing(type:)) ?? false
    }

    package static func isListing(type: String) -> Bool {
        let essence = ASCII.lowercased(ASCII.trimmed(type.prefix { $0 != ";" }))
        return types.contains(essence) || PlaylistKind(mediaType: essence) != nil
    }

    /// Feeds are also served as plain XML or JSON.
    private static let types: Set<String> = [
        "audio/x-mpegurl", "audio/x-scpls", "application/pls+xml", "application/xspf+xml",
        "application/vnd.ms-sstr+xml", "application/rss+xml", "application/atom+xml", "application/feed+json",
        "application/xml", "text/xml", "application/json", "text/x-opml",
    ]
}
