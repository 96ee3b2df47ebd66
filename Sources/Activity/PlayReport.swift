import Foundation
import HTTPModel

/// What one player reads of one resource or stream, at one moment. A player that reconnects, as most do when they seek,
/// continues its play. A request that fails is not a play. Sizes are in bytes.
public struct PlayReport: Codable, Sendable, Equatable, Identifiable {
    /// What it does at this moment.
    public enum State: String, Codable, Sendable, CaseIterable {
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
    public package(set) var id: Int64
    /// A name for people, such as `mpv 0.35.1`.
    public package(set) var player: String
    /// The player's address.
    public package(set) var client: String
    package var userAgent: String?
    /// The title of the playlist, or the name of the file: one line, without the secrets of the URL.
    public package(set) var title: String
    /// The exact URL of the resource, or of the stream's first playlist, with its secrets.
    public package(set) var urlText: String
    /// Whether it is a presentation: then position and length are those of its segments.
    package var isPresentation: Bool
    /// What it does at this moment.
    public package(set) var state: State
    /// The offset of the next byte of the latest request; nil before its first.
    public package(set) var position: Int64?
    /// The length of what that request reads, in bytes; nil while unknown.
    public package(set) var length: Int64?
    /// Where the player reads, if it has several requests running, at most eight.
    package var positions: [Int64]
    package var segments: [Segment]
    /// The bytes sent that were cached.
    public package(set) var bytesFromCache: Int64
    /// The bytes sent that were fetched for it.
    public package(set) var bytesFromOrigin: Int64
    /// Bytes per second, as of late; nil while none move, or when nobody has looked shortly before.
    package var rate: Int64?
    /// Requests that are being answered.
    package var requests: Int
    /// Seconds since 1970.
    package var since: Int64

    private enum CodingKeys: String, CodingKey {
        case id, player, client, userAgent, title, isPresentation, state, position, length, positions, segments, rate
        case requests, since
        case urlText = "url", bytesFromCache = "fromCache", bytesFromOrigin = "fromOrigin"
    }

    package init(id: Int64, player: String, client: String, title: String, url: String, state: State, since: Int64) {
        (self.id, self.player, self.client, self.title, urlText) = (id, player, client, title, url)
        (self.state, self.since) = (state, since)
        (isPresentation, positions, segments, bytesFromCache, bytesFromOrigin, requests) = (false, [], [], 0, 0, 0)
    }

    /// The time when it began, to the second.
    public var began: Date { Date(timeIntervalSince1970: Double(since)) }
}
