import CachePolicy

/// One element of a feed, of a list in XML, or of an OPML file, with the places of its addresses in the text.
struct FeedElement {
    /// The elements that are kept, in lower case, with the usual prefix of their vocabulary. Others are passed over.
    enum Name: String {
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
        case duration
        case itunesDuration = "itunes:duration"
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
        "base", "contenttype", "default", "duration", "filesize", "href", "isdefault", "length", "medium", "rel",
        "resource", "text", "title", "type", "uri", "url", "xmlurl",
    ]

    let name: Name
    /// Against which its references are resolved.
    let base: OriginURL
    /// `base` is one that the text gives (`xml:base`).
    let hasOwnBase: Bool
    /// In lower case and without a prefix; entities replaced.
    let attributes: [String: String]
    /// Of attributes that may hold addresses, without quotes.
    let places: [String: Range<Int>]
    /// Its own and that of elements in it that are passed over, with entities replaced.
    var text = ""
    /// Between its tags; nil where there are elements in it.
    var content: Range<Int>?
    var children: [FeedElement] = []

    subscript(_ attribute: String) -> String? { attributes[attribute] }

    func children(_ names: Name...) -> [FeedElement] { children.filter { names.contains($0.name) } }

    func child(_ name: Name) -> FeedElement? { children.first { $0.name == name } }

    /// The texts of the children with one of these names, first those of the first name.
    func texts(_ names: Name...) -> [String] { names.flatMap { name in children(name).map(\.text) } }
}

extension FeedElement.Name {
    /// It ends as an item of its own, wherever it stands.
    var isItem: Bool { self == .item || self == .entry || self == .track }

    /// A document begins with it.
    var isRoot: Bool {
        switch self {
        case .rss, .rdf, .feed, .channel, .playlist, .opml: true
        default: false
        }
    }

    /// The attributes that may hold an address.
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

    /// Those whose text means something.
    var hasText: Bool {
        switch self {
        case .rss, .rdf, .feed, .channel, .playlist, .opml, .html, .item, .entry, .track, .trackList, .enclosure: false
        case .mediaGroup, .mediaContent, .mediaThumbnail, .alternateEnclosure, .source, .head, .body, .outline: false
        default: true
        }
    }
}
