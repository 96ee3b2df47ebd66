/// What has come of a URL, where that is not what people mean by the film.
package enum ReceivedContent: Sendable, Equatable {
    case page
    case playlist

    /// - Parameter type: its `Content-Type`.
    /// - Returns: nil for media, and for what nobody can tell.
    package init?(type: String, _ url: OriginURL) {
        if StrayPage.isPage(type: type) {
            self = .page
        } else if StrayPage.isPlaylist(type: type, url) {
            self = .playlist
        } else {
            return nil
        }
    }

    /// Whether it is worth looking: what is named like a film and not refused as a page is one.
    package static func mayBeNoMedia(_ url: OriginURL) -> Bool {
        !StrayPage.expectsMedia(at: url) || StrayPage.isPlaylist(type: "", url)
    }

    package func text(_ type: String) -> String {
        switch self {
        case .page: "what came is a web page (\(type)), not a film: give the URL of the media itself"
        case .playlist: "what came is a playlist (\(type)), not the film: the parts that it names are not fetched"
        }
    }
}
