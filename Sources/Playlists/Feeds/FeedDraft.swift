import CachePolicy
import HTTPModel

/// An item as it was read, before it has an identity.
struct FeedDraft {
    var guid: String?
    var title: String?
    var published: Duration?
    var season: Int?
    var episode: Int?
    var image: OriginURL?
    /// The page about the item, if it may be needed for its identity.
    var page: OriginURL?
    /// The media that can be played, the best first.
    var media: [Enclosure] = []
    /// Why there is no media.
    var fault = SkippedItem.Reason.noEnclosure
    /// Bytes of all addresses that were resolved for this item.
    var resolved = 0
    /// Whether the text ends within the item.
    var isCut = false

    /// Takes media that is not there yet, unless its address is too long.
    mutating func take(_ enclosure: Enclosure) {
        guard enclosure.url.absolute.utf8.count <= FeedLimits.enclosure else {
            if fault == .noEnclosure { fault = .address("it is longer than \(FeedLimits.enclosure >> 10) KiB") }
            return
        }
        if !media.contains(where: { $0.url == enclosure.url }) { media.append(enclosure) }
    }

    /// The skipped item, named by its position if it has no name.
    func skipped(_ reason: SkippedItem.Reason, at position: Int) -> SkippedItem {
        SkippedItem(
            name: title ?? guid.flatMap(FeedTitle.line) ?? "item \(position)", position: position, reason: reason)
    }
}

/// Gives each item of a feed its identity.
struct FeedIdentities {
    private var guids = SharedNames(), keys = SharedNames()

    /// Items in which the text ends do not count: they would change the identities of others.
    init(_ drafts: [FeedDraft]) {
        for draft in drafts where !draft.isCut {
            guard let url = draft.media.first?.url else { continue }
            if let guid = draft.guid { guids.note(guid, of: url.hasMediaName ? url.withoutQuery : url.absolute) }
            for key in draft.keys(url) { keys.note(key, of: url.absolute) }
        }
    }

    /// The items, and the skipped ones.
    static func sorted(_ drafts: [FeedDraft]) -> (items: [FeedItem], skipped: [SkippedItem]) {
        let identities = FeedIdentities(drafts)
        var items: [FeedItem] = [], skipped: [SkippedItem] = [], seen: Set<String> = []
        for (place, draft) in drafts.enumerated() {
            if draft.isCut {
                skipped.append(draft.skipped(.endsEarly, at: place + 1))
            } else if let media = draft.media.first {
                let item = identities.item(draft, media)
                if seen.insert(item.identity).inserted {
                    items.append(item)
                } else {
                    skipped.append(draft.skipped(.duplicate, at: place + 1))
                }
            } else {
                skipped.append(draft.skipped(draft.fault, at: place + 1))
            }
        }
        return (items, skipped)
    }

    private func item(_ draft: FeedDraft, _ media: Enclosure) -> FeedItem {
        let guid = draft.guid.flatMap { guids.shared.contains($0) ? nil : $0 }
        let file = draft.keys(media.url).first { !keys.shared.contains($0) } ?? media.url.absolute
        return FeedItem(draft, media, guid: guid, file: file)
    }
}

extension FeedIdentities {
    /// Finds the names that several media have. In one real feed, all GUIDs were equal.
    private struct SharedNames {
        private var media: [String: String] = [:]
        private(set) var shared: Set<String> = []

        mutating func note(_ name: String, of medium: String) {
            if let first = media[name] {
                if first != medium { shared.insert(name) }
            } else {
                media[name] = medium
            }
        }
    }
}

extension FeedDraft {
    /// The texts that may identify its medium, the best first. One that several media of the text share is not used.
    fileprivate func keys(_ url: OriginURL) -> [String] {
        let file = url.withoutQuery
        guard url.hasQuery else { return [file] }
        // No URL contains a space.
        let dated = published.map { file + " \($0.components.seconds)" }
        return [dated, page?.absolute, url.hasMediaName ? file : nil].compactMap { $0 }
    }
}

extension FeedItem {
    fileprivate init(_ draft: FeedDraft, _ media: Enclosure, guid: String?, file: String) {
        self.init(
            guid: guid, file: file, title: draft.title, published: draft.published, enclosure: media,
            alternatives: Array(draft.media.dropFirst()), season: draft.season, episode: draft.episode,
            image: draft.image)
    }
}

extension OriginURL {
    private var path: Substring { Substring(pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }) }

    fileprivate var withoutQuery: String { scheme.rawValue + "://" + authority + path }

    var hasQuery: Bool { pathAndQuery.utf8.contains(UInt8(ascii: "?")) }

    /// Whether the name ends like those of audio and video files.
    var hasMediaName: Bool { fileExtension.map(Self.mediaNames.contains) ?? false }

    private static let mediaNames: Set<String> = [
        "mp3", "m4a", "m4b", "m4v", "mp4", "aac", "ogg", "oga", "ogv", "opus", "flac", "wav", "wma", "wmv", "webm",
        "mkv", "mka", "mov", "avi", "mpg", "mpeg", "ts", "m3u8", "mpd", "3gp", "aif", "aiff", "mp2", "spx",
    ]
}
