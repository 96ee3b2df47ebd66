import Activity
import Foundation

/// What happens in an open cache at one moment: who plays what, and what is fetched from origins. At most a hundred of
/// each, those that began first; further ones are left out without a count.
public struct CacheActivity: Sendable, Equatable {
    /// What one player reads of one resource or stream. A player that reconnects, as most do when they seek, continues
    /// its play. A request that fails is not a play.
    public struct Play: Sendable, Equatable, Identifiable {
        /// What it does at this moment.
        public enum State: String, Sendable, CaseIterable {
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

        /// The same for as long as the play lasts; unique within the process.
        public let id: Int64
        /// A name for people, such as `mpv 0.35.1`.
        public let player: String
        /// The player's address.
        public let client: String
        /// The title of the playlist, or the name of the file: one line, without the secrets of the URL.
        public let title: String
        /// The exact URL of the resource, or of the stream's first playlist, with its secrets.
        public let urlText: String
        /// What it does at this moment.
        public let state: State
        /// The offset of the next byte of the latest request; nil before its first.
        public let position: Int64?
        /// The length of what that request reads, in bytes; nil while unknown.
        public let length: Int64?
        /// The bytes sent that were cached.
        public let bytesFromCache: Int64
        /// The bytes sent that were fetched for it.
        public let bytesFromOrigin: Int64
        /// The time when it began, to the second.
        public let began: Date
    }

    /// A transfer from an origin.
    public struct Transfer: Sendable, Equatable, Identifiable {
        /// Unique within the process.
        public let id: String
        /// The exact URL that is fetched, with its secrets.
        public let urlText: String
        /// The host that sends the bytes: after redirects, perhaps another than that of the URL.
        public let host: String
        /// Why it runs, such as `uri-miss` or `gap`: the guide lists the reasons with the HTTP API.
        public let reason: String
        /// The offset at which it began.
        public let from: Int64
        /// The end of what it fetches; nil while unknown.
        public let to: Int64?
        /// The bytes that have arrived.
        public let received: Int64
        /// The time when it began, to the second.
        public let began: Date
    }

    /// Who plays what.
    public let plays: [Play]
    /// What is fetched.
    public let transfers: [Transfer]
}

extension MediaCache {
    /// What happens at this moment. Does not wait for the disk.
    /// - Throws: `CacheError.closed`.
    public func activity() async throws(CacheError) -> CacheActivity {
        try checkOpen()
        guard let report = await live.look()?.report else { throw .closed }
        return CacheActivity(plays: report.plays.map { .init($0) }, transfers: report.transfers.map { .init($0) })
    }
}

extension CacheActivity.Play {
    fileprivate init(_ report: PlayReport) {
        self.init(
            id: report.id, player: report.player, client: report.client, title: report.title, urlText: report.url,
            state: State(report.state), position: report.position, length: report.length,
            bytesFromCache: report.fromCache, bytesFromOrigin: report.fromOrigin,
            began: Date(timeIntervalSince1970: Double(report.since)))
    }
}

extension CacheActivity.Play.State {
    fileprivate init(_ state: PlayReport.State) {
        switch state {
        case .starting: self = .starting
        case .active: self = .active
        case .stalled: self = .stalled
        case .buffered: self = .buffered
        case .idle: self = .idle
        }
    }
}

extension CacheActivity.Transfer {
    fileprivate init(_ report: TransferReport) {
        self.init(
            id: report.id, urlText: report.url, host: report.host, reason: report.reason, from: report.from,
            to: report.to, received: report.received, began: Date(timeIntervalSince1970: Double(report.since)))
    }
}
