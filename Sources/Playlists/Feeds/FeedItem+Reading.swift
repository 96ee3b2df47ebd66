import CachePolicy
import HTTPModel

extension FeedDraft {
    /// Reads an `item` of RSS, an `entry` of Atom or a `track` of XSPF.
    init(_ element: FeedElement, isCut: Bool, isPage: (OriginURL) -> Bool) {
        self.isCut = isCut
        guid = element.texts(.guid, .id, .identifier).lazy.compactMap(Self.identity).first
        title = element.texts(.title, .itunesTitle, .mediaTitle).lazy.compactMap(FeedTitle.plain).first
        published = element.times.lazy.compactMap(FeedDate.time).first
        season = element.texts(.itunesSeason, .podcastSeason).lazy.compactMap { Self.number($0, isLast: false) }.first
        episode = element.texts(.itunesEpisode, .podcastEpisode).lazy.compactMap { Self.number($0) }.first
        image = element.picture
        resolved = image?.absolute.utf8.count ?? 0
        takeMedia(of: element, isPage)
        if media.first?.url.hasQuery == true { page = element.homePage }
        resolved += page?.absolute.utf8.count ?? 0
    }

    private static func identity(_ written: String) -> String? {
        let text = String(decoding: written.utf8.filter { !ASCII.isXMLSpace($0) || $0 == ASCII.space }, as: UTF8.self)
        let trimmed = String(ASCII.trimmed(text))
        return trimmed.isEmpty || trimmed.utf8.count > FeedLimits.identity ? nil : trimmed
    }

    /// The number of a season or an episode: `5`, `5.5`, `Episode 5`, `S02E05`, `Episode 5 of 10`.
    /// - Returns: at most 99,999
    private static func number(_ written: String, isLast: Bool = true) -> Int? {
        var runs = written.utf8.prefix(64).split { !ASCII.isDigit($0) }
        let isFirst = !isLast || ASCII.trimmed(written).utf8.first.map(ASCII.isDigit) == true
        if runs.count > 1, isTotal(written.utf8[runs[runs.count - 2].endIndex..<runs[runs.count - 1].startIndex]) {
            runs.removeLast()
        }
        guard !written.contains("-"), let digits = isFirst ? runs.first : runs.last else { return nil }
        return ASCII.decimal(digits, upTo: 99_999).map { Int($0) }
    }

    /// Whether the number after these words is that of all episodes.
    private static func isTotal(_ words: Substring.UTF8View) -> Bool {
        let text = String(decoding: words.filter { ASCII.isLetter($0) || $0 == XMLByte.slash }, as: UTF8.self)
        return ["of", "outof", "/", "von", "de", "sur", "di"].contains(ASCII.lowercased(text))
    }

    // MARK: - Media

    /// Takes media in order of preference: the item's own, then Media RSS, then Podcasting 2.0.
    private mutating func takeMedia(of element: FeedElement, _ isPage: (OriginURL) -> Bool) {
        for offer in element.offers.prefix(FeedLimits.alternatives + 1) { take(offer) }
        // Old feeds link to the file itself.
        if let link = element.linkedMedia { take(link.linkOffer) }
        if media.isEmpty, let link = element.linkedPage(isPage) { take(link.linkOffer) }
    }

    private mutating func take(_ offer: MediaOffer) {
        switch offer.enclosure {
        case .success(let enclosure):
            resolved += enclosure.url.absolute.utf8.count
            take(enclosure)
        case .failure(let failure):
            if fault == .noEnclosure { fault = failure.reason }
        }
    }
}

/// Media that an element offers, before it is known whether it can be fetched.
private struct MediaOffer {
    struct Failure: Error { let reason: SkippedItem.Reason }

    let reference: String?
    let base: FeedElement.Base
    var type: String?
    var length: String?
    var isDefault = false

    var enclosure: Result<Enclosure, Failure> {
        guard let reference = reference.flatMap({ FeedReference($0) }) else {
            return .failure(.init(reason: .noEnclosure))
        }
        guard !reference.text.contains("\\"), let url = reference.url(at: base) else {
            return .failure(.init(reason: reference.fault))
        }
        let type = MediaTypeName.essence(type)
        if let other = Self.other(type, url) { return .failure(.init(reason: .notMedia(other))) }
        let bytes = length.flatMap { ASCII.decimal(ASCII.trimmed($0).utf8, upTo: ByteNumber.greatest) }
        let isKnown = bytes.map { $0 > 0 } ?? false
        return .success(Enclosure(url: url, length: isKnown ? bytes : nil, type: type, isDefault: isDefault))
    }

    /// A player in Flash, which sites of films still name beside their pages, is no media.
    private static let otherTypes: Set<String> = ["text/html", "application/x-shockwave-flash"]
    private static let otherNames: Set<String> = ["jpg", "jpeg", "png", "gif", "webp", "html", "htm"]

    /// The kind of an offer that is not media, by its type, or by its name if the type is missing.
    private static func other(_ type: String?, _ url: OriginURL) -> String? {
        if let type { return type.hasPrefix("image/") || otherTypes.contains(type) ? type : nil }
        return url.fileExtension.flatMap { otherNames.contains($0) ? $0 : nil }
    }
}

extension FeedElement {
    fileprivate var times: [String] {
        texts(.pubDate, .published, .dublinDate, .issued, .created, .date, .updated, .modified)
    }

    /// `enclosure` in RSS, the same with `rdf:resource` in RSS 1.0, and links in Atom.
    fileprivate var enclosures: [MediaOffer] {
        children(.enclosure, .link).filter { $0.name == .enclosure || $0.relations.contains("enclosure") }.map {
            MediaOffer(
                reference: $0["url"] ?? $0["href"] ?? $0["resource"], base: $0.base, type: $0["type"],
                length: $0["length"])
        }
    }

    private var contents: [FeedElement] {
        children(.mediaContent, .mediaGroup).flatMap { $0.name == .mediaGroup ? $0.children(.mediaContent) : [$0] }
    }

    /// The contents of Media RSS, the default first.
    fileprivate var mediaContents: [MediaOffer] {
        let offers = contents.filter { $0["url"] != nil && $0["medium"] != "image" && $0["medium"] != "document" }.map {
            MediaOffer(
                reference: $0["url"], base: $0.base, type: $0["type"], length: $0["filesize"],
                isDefault: $0["isdefault"] == "true")
        }
        return offers.filter(\.isDefault) + offers.filter { !$0.isDefault }
    }

    /// The enclosures of Podcasting 2.0, each with its sources. Sources that are not HTTP are ignored.
    fileprivate var alternateEnclosures: [MediaOffer] {
        let offers = children(.alternateEnclosure).flatMap { element in
            element.children(.source).map { source in
                MediaOffer(
                    reference: source["uri"], base: source.base, type: source["contenttype"] ?? element["type"],
                    length: element["length"], isDefault: element["default"] == "true")
            }
        }
        return offers.filter(\.isDefault) + offers.filter { !$0.isDefault }
    }

    fileprivate var locations: [MediaOffer] {
        children(.location).map { MediaOffer(reference: $0.text, base: $0.base) }
    }

    fileprivate var offers: [MediaOffer] { enclosures + mediaContents + alternateEnclosures + locations }

    fileprivate var linkOffer: MediaOffer { MediaOffer(reference: self["href"] ?? text, base: base) }

    /// The link to a media file, if the item offers no other media.
    var linkedMedia: FeedElement? {
        let link = children(.link).first {
            if case .success(let enclosure) = $0.linkOffer.enclosure { enclosure.url.hasMediaName } else { false }
        }
        return link != nil && offers.isEmpty ? link : nil
    }

    /// The link to the item's page, if that page counts as media.
    func linkedPage(_ isPage: (OriginURL) -> Bool) -> FeedElement? {
        children(.link).first {
            guard $0.relations.isSubset(of: ["alternate"]), case .success(let page) = $0.linkOffer.enclosure else {
                return false
            }
            return isPage(page.url)
        }
    }

    /// The picture of an item or a feed.
    var picture: OriginURL? {
        let thumbnails =
            children(.mediaThumbnail) + (contents + children(.mediaGroup)).flatMap { $0.children(.mediaThumbnail) }
        let elements = children(.itunesImage) + children(.image) + children(.logo) + thumbnails + children(.icon)
        return elements.lazy.compactMap(\.pictureAddress).first
    }

    private var pictureAddress: OriginURL? {
        let written = self["href"] ?? self["url"] ?? child(.url)?.text ?? text
        return FeedReference(written)?.url(at: base)
    }
}
