import CachePolicy
import Playlists

/// An item of a subscribed feed, as it was read last.
struct KnownEpisode: Sendable, Equatable {
    enum State: String, Sendable, CaseIterable {
        /// Not downloaded: it is older than the subscription, its title does not match, or too many were new at once.
        case passedOver = "passed_over"
        /// It became a download, which happens once.
        case ordered
        /// The same, and the feed has let go of it: it was removed from the cache since, or belongs to others, too.
        case removed
    }

    /// 0 before it is saved.
    var id: Int64 = 0
    /// The ID of its subscription; 0 before it is saved.
    var subscription: Int64 = 0
    /// The identity that the feed states, and the one that it has without that (`FeedItem`).
    var guid: String?
    var file: String
    /// Where it is; once it became a download, the URL of that, under which it is cached.
    var url: OriginURL
    /// The URL that the feed lists by now for what became a download, and that its readers play; nil if it is `url`, or
    /// not known.
    var listed: OriginURL?
    var title: String?
    /// Seconds since 1970; nil if the feed states no date.
    var published: Int64?
    /// When it was first seen, in seconds since 1970.
    var found: Int64
    var state: State
    /// When it had been played, in seconds since 1970; nil before.
    var played: Int64?

    init(_ item: FeedItem, found: Int64, state: State) {
        (guid, file, url, title) = (item.guid, item.file, item.enclosure.url, item.title)
        published = item.published.map { $0.components.seconds }
        (self.found, self.state) = (found, state)
    }

    init(file: String, url: OriginURL, found: Int64, state: State) {
        (self.file, self.url, self.found, self.state) = (file, url, found, state)
    }

    /// The identity by which downloads name it.
    var identity: String { guid ?? file }

    /// The URLs at which it may have been played.
    var urls: [OriginURL] { [url] + [listed].compactMap { $0 } }

    /// The same, let go of by its feed.
    var letGo: KnownEpisode {
        var episode = self
        episode.state = .removed
        return episode
    }

    /// Roughly how many bytes its row has.
    var storedBytes: Int {
        100 + url.absolute.utf8.count + file.utf8.count + (guid?.utf8.count ?? 0) + (title?.utf8.count ?? 0)
    }

    /// Whether it is newer than another one that was saved. Of episodes with equal dates, the later row is newer.
    func isNewer(than other: KnownEpisode) -> Bool {
        (published ?? found, id) > (other.published ?? other.found, other.id)
    }

    /// Takes over what another reading says of the same episode.
    mutating func take(_ item: FeedItem) {
        guid = item.guid ?? guid
        (file, title) = (item.file, item.title)
        // What became a download is cached under the URL of that.
        if state == .passedOver { url = item.enclosure.url }
        published = item.published.map { $0.components.seconds } ?? published
    }
}
