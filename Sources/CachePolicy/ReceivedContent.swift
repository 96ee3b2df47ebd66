/// Content received from a URL that is not the film that people expect.
package enum ReceivedContent: Sendable, Equatable {
    case page
    case playlist

    /// - Parameter type: the response's `Content-Type`.
    /// - Returns: nil for media, and for unidentified content.
    package init?(type: String, _ url: OriginURL) {
        if StrayPage.isPage(type: type) {
            self = .page
        } else if StrayPage.isPlaylist(type: type, url) {
            self = .playlist
        } else {
            return nil
        }
    }

    /// Whether a check is worthwhile: a URL named like a film whose answer was not rejected as a page is a film.
    package static func mayBeNoMedia(_ url: OriginURL) -> Bool {
        !StrayPage.expectsMedia(at: url) || StrayPage.isPlaylist(type: "", url)
    }

    package func text(_ type: String) -> String {
        switch self {
        case .page: "received a web page (\(type)), not a film: give the URL of the media itself"
        case .playlist: "received a playlist (\(type)), not the film: the parts that it lists are not fetched"
        }
    }
}
