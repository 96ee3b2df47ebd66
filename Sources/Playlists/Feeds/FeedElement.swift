import CachePolicy

/// One element of a feed, of a list in XML, or of an OPML file, with the positions of its addresses in the text.
struct FeedElement {
    /// The elements that are kept, in lower case, with the usual prefix of their vocabulary. Others are skipped.
    enum Name: String, CaseIterable {
        case rss, feed, channel, opml, playlist, html
        case rdf = "rdf:rdf"
        case item, entry, track
        case trackList = "tracklist"
        case title, link, guid, id, identifier
        case itunesTitle = "itunes:title"
        case mediaTitle = "media:title"
        case pubDate = "pubdate"
        case published, issued, created, date, updated, modified
        case dublinDate = "dc:date"
        case enclosure, location
        case mediaGroup = "media:group"
        case mediaContent = "media:content"
        case mediaThumbnail = "media:thumbnail"
        case alternateEnclosure = "podcast:alternateenclosure"
        case source = "podcast:source"
        case image, url, logo, icon
        case itunesImage = "itunes:image"
        case itunesSeason = "itunes:season"
        case itunesEpisode = "itunes:episode"
        case podcastSeason = "podcast:season"
        case podcastEpisode = "podcast:episode"
        case newAddress = "itunes:new-feed-url"
        case ttl
        case updatePeriod = "sy:updateperiod"
        case updateFrequency = "sy:updatefrequency"
        case complete = "fh:complete"
        case archive = "fh:archive"
        case head, body, outline
    }

    /// The attributes that are kept, in lower case and without a prefix.
    static let attributes: Set<String> = [
        "base", "contenttype", "default", "filesize", "href", "isdefault", "length", "medium", "rel", "resource",
        "text", "title", "type", "uri", "url", "xmlurl",
    ]

    let name: Name
    let base: Base
    /// The attributes, in lower case and without a prefix, with entities replaced.
    let attributes: [String: String]
    /// The positions of the values that may be addresses, without quotes.
    let places: [String: Range<Int>]
    /// The text of the element and of skipped elements in it, with entities replaced.
    var text = ""
    /// The position of the text between its tags; nil if it contains elements.
    var content: Range<Int>?
    var children: [FeedElement] = []

    subscript(_ attribute: String) -> String? { attributes[attribute] }

    func children(_ names: Name...) -> [FeedElement] { children.filter { names.contains($0.name) } }

    func child(_ name: Name) -> FeedElement? { children.first { $0.name == name } }

    /// The texts of the children with any of these names, in the order of the names.
    func texts(_ names: Name...) -> [String] { names.flatMap { name in children(name).map(\.text) } }
}

extension FeedElement {
    /// The URL against which the references of some elements are resolved, each within the budget of the text.
    final class Base: Sendable, Equatable {
        let url: OriginURL
        /// Whether the text states it (`xml:base`), which some clients use and others ignore.
        let isStated: Bool
        private let budget: WorkBudget

        init(_ url: OriginURL, isStated: Bool = false, within budget: WorkBudget) {
            (self.url, self.isStated, self.budget) = (url, isStated, budget)
        }

        static func == (a: Base, b: Base) -> Bool { a === b || a.url == b.url && a.isStated == b.isStated }

        /// Nil if it is not fetched over HTTP, or nothing is left of the budget: the text is then refused at its end.
        func resolving(_ reference: String) -> OriginURL? {
            (try? url.resolving(reference, within: budget)).flatMap { $0 }
        }

        /// The base of an element that states another one.
        func entering(_ written: String) throws(PlaylistError) -> Base? {
            guard let own = FeedReference(written)?.url(at: self), own.absolute.utf8.count <= FeedLimits.base else {
                return nil
            }
            try budget.make(own.pathAndQuery.utf8.count &+ 128)
            return Base(own, isStated: true, within: budget)
        }
    }
}

extension FeedElement.Name {
    /// Whether it is an item, at any depth.
    var isItem: Bool { self == .item || self == .entry || self == .track }

    /// Whether a document can begin with it.
    var isRoot: Bool {
        switch self {
        case .rss, .rdf, .feed, .channel, .playlist, .opml: true
        default: false
        }
    }

    /// The attributes whose values may be addresses.
    var addresses: [String] {
        switch self {
        case .enclosure: ["url", "href", "resource"]
        case .mediaContent, .mediaThumbnail: ["url"]
        case .itunesImage, .image: ["href", "url"]
        case .source: ["uri"]
        case .link: ["href"]
        default: []
        }
    }

    /// Whether its text is read.
    var hasText: Bool {
        switch self {
        case .rss, .rdf, .feed, .channel, .playlist, .opml, .html, .item, .entry, .track, .trackList, .enclosure: false
        case .mediaGroup, .mediaContent, .mediaThumbnail, .alternateEnclosure, .source, .head, .body, .outline: false
        default: true
        }
    }
}
