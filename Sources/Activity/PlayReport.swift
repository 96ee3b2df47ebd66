import HTTPModel

/// What one player plays, at one moment. Sizes are in bytes, times in seconds since 1970.
package struct PlayReport: Codable, Sendable, Equatable, Identifiable {
    package enum State: String, Codable, Sendable, CaseIterable {
        /// Nothing has been sent yet: the origin has not answered.
        case starting
        /// Bytes flow.
        case active
        /// The player waits for bytes that the origin does not send.
        case stalled
        /// The player takes no bytes: it has buffered enough, or is paused.
        case buffered
        /// No request is running: the player is between two requests, or has left.
        case idle
    }

    /// A rendition that is being played.
    package struct Segment: Codable, Sendable, Equatable {
        /// The name of the rendition: `1080p 4.5 Mbit/s`, `audio en`.
        package var rendition: String
        /// The segment that was requested last, counted from 1, and how many there are.
        package var number: Int
        package var count: Int

        /// The name of a rendition as it is shown: an origin chooses parts of it.
        package static func name(_ text: String) -> String { text.printable(upTo: 100, keepsJoiners: true) }

        package init(rendition: String, number: Int, count: Int) {
            (self.rendition, self.number, self.count) = (rendition, number, count)
        }
    }

    /// The same for as long as the play lasts; unique within the process.
    package var id: Int64
    /// A name for people: `mpv 0.35.1`.
    package var player: String
    /// The player's address.
    package var client: String
    package var userAgent: String?
    /// The playlist's title, or the file's name, without secrets.
    package var title: String
    /// The URL of the resource, or of the presentation's first playlist.
    package var url: String
    /// Whether it is a presentation: then position and length are those of its segments.
    package var isPresentation: Bool
    package var state: State
    /// The offset of the next byte to be sent; nil before the first.
    package var position: Int64?
    package var length: Int64?
    /// Where the player reads, if it has several requests running, at most eight.
    package var positions: [Int64]
    package var segments: [Segment]
    /// Bytes sent that were cached, and that were fetched for it.
    package var fromCache: Int64
    package var fromOrigin: Int64
    /// Bytes per second, as of late; nil while none move, or when nobody has looked shortly before.
    package var rate: Int64?
    /// Requests that are being answered.
    package var requests: Int
    package var since: Int64

    package init(id: Int64, player: String, client: String, title: String, url: String, state: State, since: Int64) {
        (self.id, self.player, self.client, self.title, self.url) = (id, player, client, title, url)
        (self.state, self.since) = (state, since)
        (isPresentation, positions, segments, fromCache, fromOrigin, requests) = (false, [], [], 0, 0, 0)
    }
}
