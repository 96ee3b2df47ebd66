import HTTPModel

/// A *listing* is a text that says what there is to play: a playlist or a feed. It changes more often than what it
/// lists, and where its origin gives no lifetime, none is guessed: it is asked for each time.
package enum Listing {
    /// Whether a response is one, by its `Content-Type`.
    package static func isListing(_ fields: HeaderFields) -> Bool {
        fields["Content-Type"].map(isListing(type:)) ?? false
    }

    package static func isListing(type: String) -> Bool {
        let essence = ASCII.lowercased(ASCII.trimmed(type.prefix { $0 != ";" }))
        return types.contains(essence) || PlaylistKind(mediaType: essence) != nil
    }

    /// Feeds come as plain XML or JSON, too.
    private static let types: Set<String> = [
        "audio/x-mpegurl", "audio/x-scpls", "application/pls+xml", "application/xspf+xml",
        "application/vnd.ms-sstr+xml", "application/rss+xml", "application/atom+xml", "application/feed+json",
        "application/xml", "text/xml", "application/json", "text/x-opml",
    ]
}
