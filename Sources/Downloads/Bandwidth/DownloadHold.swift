/// Why downloads wait although it is their turn.
package struct DownloadHold: Sendable, Equatable {
    /// When that ends, in seconds since 1970; nil if it does not end by itself.
    package let until: Int64?
    /// One line, such as `outside of the schedule until 01:00`.
    package let reason: String

    /// The one that ends last.
    static func longest(_ holds: [DownloadHold?]) -> DownloadHold? {
        holds.compactMap { $0 }.max { $0.until ?? .max < $1.until ?? .max }
    }
}

/// What the schedule and the caps allow downloads at one moment. Downloads that were ordered at once are not bound by it.
struct DownloadAllowance: Sendable, Equatable {
    /// Bytes per second of all downloads together; nil for no limit.
    var rate: Int64?
    /// Why no download may run; nil if they may.
    var hold: DownloadHold?
    /// Why the downloads of a feed may not run, by the URL of the feed.
    var feedHolds: [String: DownloadHold] = [:]

    func hold(for lane: DownloadLane) -> DownloadHold? {
        switch lane {
        case .atOnce: nil
        case .common: hold
        case .feed(let feed): .longest([hold, feedHolds[feed]])
        }
    }
}

/// Which limits bind a download.
enum DownloadLane: Hashable {
    /// Neither the schedule nor a cap.
    case atOnce
    /// The schedule and the caps of all downloads.
    case common
    /// These, and the caps of a feed.
    case feed(String)
}

extension DownloadOrder {
    var lane: DownloadLane { options.isAtOnce ? .atOnce : episode.map { .feed($0.feed) } ?? .common }
}
