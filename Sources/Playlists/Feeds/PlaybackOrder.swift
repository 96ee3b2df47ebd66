import CachePolicy
import HTTPModel

/// The order in which people play the items of a feed or list.
///
///     podcast   newest first in the text, played from the oldest to the newest
///     list      played as it stands
package struct PlaybackOrder: Sendable {
    /// What follows an item.
    package enum Next: Sendable, Equatable {
        /// The URL is not one of an item.
        case unknown
        /// Nothing follows: it is the last one.
        case nothing
        case item(OriginURL)
    }

    /// One form of an item's media.
    private struct Form: Sendable {
        let url: OriginURL
        let type: String?
    }

    /// Each item with the form that players play by default first.
    private let items: [[Form]]
    private let positions: [OriginURL: Int]
    /// Roughly the memory that its URLs take, in bytes.
    package let bytes: Int

    /// The further forms of an item that are known.
    private static let mostAlternatives = 4

    /// Podcasts are played in the order of their dates; without dates by season and episode; without these, the last
    /// item of the text is the first.
    package init(of feed: Feed) {
        let isList = feed.kind == .m3u || feed.kind == .pls || feed.kind == .xspf
        self.init((isList ? feed.items : Self.sorted(feed.items)).map(Self.forms))
    }

    /// The files of a list that names nothing but their URLs.
    package init(ofList files: [OriginURL]) { self.init(files.map { [Form(url: $0, type: nil)] }) }

    private init(_ items: [[Form]]) {
        self.items = items
        var positions: [OriginURL: Int] = [:]
        for (position, forms) in items.enumerated() {
            // If several items share a file, the first of them counts.
            for form in forms where positions[form.url.normalized] == nil { positions[form.url.normalized] = position }
        }
        self.positions = positions
        // A URL is kept twice, and each has some fields beside its text.
        // no trap: twice a string's length
        bytes = items.joined().reduce(0) { $0 +| 2 * ($1.url.absolute.utf8.count +| 64) }
    }

    package var isEmpty: Bool { items.isEmpty }

    /// Whether a URL is that of an item's media.
    package func contains(_ url: OriginURL) -> Bool { positions[url.normalized] != nil }

    /// The item to be played after one: in the same form, if it has that (the MP3 file after the MP3 file).
    package func next(after url: OriginURL) -> Next {
        let name = url.normalized
        guard let position = positions[name] else { return .unknown }
        let type = items[position].first { $0.url.normalized == name }?.type
        let further = items[(position + 1)...].first { !$0.contains { $0.url.normalized == name } }
        guard let further, let standard = further.first else { return .nothing }
        return .item((further.first { type != nil && $0.type == type } ?? standard).url)
    }

    private static func forms(_ item: FeedItem) -> [Form] {
        ([item.enclosure] + item.alternatives.prefix(mostAlternatives)).map { Form(url: $0.url, type: $0.type) }
    }

    // MARK: - Order

    private struct Rank: Comparable {
        let date: Duration
        let season: Int
        let episode: Int
        /// Counted from the end of the text.
        let place: Int

        static func < (a: Rank, b: Rank) -> Bool {
            (a.date, a.season, a.episode, a.place) < (b.date, b.season, b.episode, b.place)
        }
    }

    private static func sorted(_ items: [FeedItem]) -> [FeedItem] {
        var date = items.lazy.compactMap(\.published).first
        let ranks = items.enumerated().map { place, item in
            // An item without a date was published between those around it.
            date = item.published ?? date
            return Rank(
                date: date ?? .zero, season: item.season ?? 0, episode: item.episode ?? 0, place: items.count - place)
        }
        return zip(ranks, items).sorted { $0.0 < $1.0 }.map(\.1)
    }
}
