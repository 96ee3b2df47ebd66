import CachePolicy
import Playlists

/// What follows from a reading of a feed: the episodes that become downloads, and what is remembered of all others.
///
/// An episode is ordered once, however often it is read, moved or removed. Right after subscribing, the newest
/// `latest` are ordered, and all others passed over; later, each that is new. If very many are new at once, as when a
/// feed moves to another host that gives all its items other identities, only the newest of them are. An unknown
/// episode is not new if it is on an older page, or older than all that are known: the feed lists more of its past.
///
/// If its download failed and the feed has another URL for it by now, it is ordered once more, with that URL.
struct SubscriptionPlan {
    /// New episodes that are ordered at once, unless `latest` is greater.
    static let mostAtOnce = 10
    /// Episodes that are remembered although the feed no longer has them.
    static let mostRemembered = 20_000
    /// Bytes of their rows: all of them are read with each check.
    static let mostRememberedBytes = 8 << 20

    /// What became of the download of an episode.
    struct Download {
        enum State {
            /// It may fail yet, or be retried later.
            case open
            /// It failed, and is to be retried.
            case due
            /// It completed, was cancelled, or failed for good.
            case over
        }

        let id: Int64
        let url: OriginURL
        let state: State
    }

    /// An episode whose failed download another one replaces, at the URL that it has now.
    struct Renewal {
        let episode: KnownEpisode
        /// The failed download.
        let replaced: Int64
    }

    /// The episodes to order, newest first. Their state is `ordered`.
    private(set) var orders: [KnownEpisode] = []
    /// Those whose failed downloads are replaced by ones with their new URLs, newest first.
    private(set) var renewals: [Renewal] = []
    /// Whether an episode has another URL by now than its download, which may fail: the feed is to be read again then.
    private(set) var awaitsRenewal = false
    /// The rows to save: all that are new or changed, oldest first, those of `orders` and `renewals` included.
    private(set) var changed: [KnownEpisode] = []
    /// Saved episodes to forget.
    private(set) var forgotten: [Int64] = []
    /// How many episodes were not known before.
    private(set) var newCount = 0

    /// - Parameters:
    ///   - items: the items of the reading, in document order.
    ///   - firstPage: how many of them are on the feed's first page.
    ///   - known: all saved episodes of the feed.
    ///   - isFirst: whether the feed has not been read before.
    ///   - wantsLatest: whether the newest `latest` are wanted although they are not new.
    ///   - downloads: those of the feed, by the identities of their episodes. An episode that was passed over, or is not
    ///     known, may have one: the process ended before it was saved.
    ///   - now: seconds since 1970.
    init(
        _ items: [FeedItem], firstPage: Int = .max, known: [KnownEpisode], options: SubscriptionOptions, isFirst: Bool,
        wantsLatest: Bool, downloads: [String: Download], now: Int64
    ) {
        var lookup = EpisodeLookup(known, items)
        let oldest = known.lazy.compactMap(\.published).min() ?? .min
        // A stable order: of equal dates, the earlier in the document is the newer.
        let newestFirst = Self.dated(items).enumerated().sorted {
            ($0.element.date, -$0.offset) > ($1.element.date, -$1.offset)
        }.map { (item: $0.element.item, isOnFirstPage: $0.offset < firstPage) }
        let most = options.keep?.count ?? .max
        var (latestLeft, newLeft) = (
            wantsLatest ? min(options.latest, most) : 0,
            isFirst ? 0 : min(max(options.latest, Self.mostAtOnce), most)
        )
        for (item, isOnFirstPage) in newestFirst {
            let former = lookup.take(item)
            var episode = former ?? KnownEpisode(item, found: now, state: .passedOver)
            episode.take(item)
            if former == nil { newCount += 1 }
            let isNews = former == nil && isOnFirstPage && episode.published ?? .max >= oldest
            let isWanted = options.title?.matches(item.title) ?? true
            switch episode.state {
            case .passedOver:
                if let download = downloads[item.identity] ?? downloads[item.file] {
                    (episode.state, episode.url) = (.ordered, download.url)
                } else if isWanted, latestLeft > 0 || isNews && newLeft > 0 {
                    episode.state = .ordered
                    orders.append(episode)
                }
            case .ordered:
                if let download = downloads[former?.identity ?? ""] {
                    // The process may have ended between a renewal and its save.
                    episode.url = download.url
                    renew(&episode, download, item)
                }
            case .removed: break
            }
            let url = item.enclosure.url
            episode.listed = episode.state == .ordered && url != episode.url ? url : nil
            if isWanted {
                latestLeft = max(0, latestLeft - 1)
                if isNews { newLeft = max(0, newLeft - 1) }
            }
            if episode != former { changed.append(episode) }
        }
        changed.reverse()
        forgotten = Self.surplus(lookup.missing)
    }

    private mutating func renew(_ episode: inout KnownEpisode, _ download: Download, _ item: FeedItem) {
        guard item.enclosure.url != download.url else { return }
        switch download.state {
        case .open: awaitsRenewal = true
        case .due:
            episode.url = item.enclosure.url
            renewals.append(Renewal(episode: episode, replaced: download.id))
        case .over: break
        }
    }

    /// Gives items without a date that of the one before them in the document. Without any date, the document's order
    /// counts, which begins with the newest.
    private static func dated(_ items: [FeedItem]) -> [(date: Int64, item: FeedItem)] {
        var last = items.lazy.compactMap(\.published).first?.components.seconds ?? 0
        return items.map { item in
            last = item.published?.components.seconds ?? last
            return (last, item)
        }
    }

    /// The oldest of those passed over that the feed no longer has. Those that became downloads are few, and still
    /// matter: they may be cached, and must not be ordered again.
    private static func surplus(_ missing: [KnownEpisode]) -> [Int64] {
        let newestFirst = missing.filter { $0.state == .passedOver }.sorted { $0.id > $1.id }
        var (count, bytes) = (0, 0)
        let kept = newestFirst.prefix { episode in
            (count, bytes) = (count + 1, bytes + episode.storedBytes)
            return count <= mostRemembered && bytes <= mostRememberedBytes
        }
        return newestFirst.dropFirst(kept.count).reversed().map(\.id)
    }
}

/// Finds the saved episode of an item.
private struct EpisodeLookup {
    private var byGUID: [String: KnownEpisode] = [:]
    private var byFile: [String: KnownEpisode] = [:]
    private let guids: Set<String>
    private var untaken: [Int64: KnownEpisode]

    init(_ known: [KnownEpisode], _ items: [FeedItem]) {
        for episode in known {
            if let guid = episode.guid { byGUID[guid] = episode }
            byFile[episode.file] = episode
        }
        guids = Set(items.compactMap(\.guid))
        untaken = Dictionary(known.map { ($0.id, $0) }) { $1 }
    }

    /// The saved episodes that no item was.
    var missing: [KnownEpisode] { Array(untaken.values) }

    /// The saved episode that an item is, which no other item is then. The GUID decides (`FeedItem.isSame`); an item
    /// whose GUID is not known is the episode with its file, unless another item has that one's GUID.
    mutating func take(_ item: FeedItem) -> KnownEpisode? {
        let found = item.guid.flatMap { byGUID[$0] } ?? byFile[item.file].flatMap { isFree($0, for: item) ? $0 : nil }
        guard let found, untaken.removeValue(forKey: found.id) != nil else { return nil }
        return found
    }

    private func isFree(_ episode: KnownEpisode, for item: FeedItem) -> Bool {
        guard let known = episode.guid, item.guid != nil else { return true }
        return !guids.contains(known)
    }
}
