import CachePolicy
import HTTPModel

/// An item as it was read, before it has an identity.
struct FeedDraft {
    var guid: String?
    var title: String?
    var published: Duration?
    var duration: Duration?
    var season: Int?
    var episode: Int?
    var image: OriginURL?
    /// The media that can be played, the best first.
    var media: [Enclosure] = []
    /// Why there is no media.
    var fault = SkippedItem.Reason.noEnclosure
    /// Bytes of all addresses that were resolved for this item.
    var resolved = 0
    /// Whether the text ends within the item.
    var isCut = false

    /// The skipped item, named by its position if it has no name.
    func skipped(_ reason: SkippedItem.Reason, at position: Int) -> SkippedItem {
        SkippedItem(
            name: title ?? guid.flatMap(FeedTitle.line) ?? "item \(position)", position: position, reason: reason)
    }
}

/// Gives each item of a feed its identity.
struct FeedIdentities {
    /// GUIDs that several files share. In one real feed, all of them were equal.
    private var shared: Set<String> = []
    private var files: [String: String] = [:]
    /// Addresses without their queries, each with the first URL that has it.
    private var addresses: [String: OriginURL] = [:]
    private var sharedAddresses: Set<String> = []

    init(_ drafts: [FeedDraft]) {
        for draft in drafts {
            guard let url = draft.media.first?.url else { continue }
            let file = url.withoutQuery
            if let first = addresses[file], first != url { sharedAddresses.insert(file) }
            addresses[file] = addresses[file] ?? url
            guard let guid = draft.guid else { continue }
            if let first = files[guid], first != file { shared.insert(guid) }
            files[guid] = file
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
                let identity = identities.identity(of: draft, media.url)
                if seen.insert(identity).inserted {
                    items.append(FeedItem(draft, media, identity: identity))
                } else {
                    skipped.append(draft.skipped(.duplicate, at: place + 1))
                }
            } else {
                skipped.append(draft.skipped(draft.fault, at: place + 1))
            }
        }
        return (items, skipped)
    }

    /// Ignores the queries of media files, which are changing signatures and counters. The query of a script selects
    /// the file.
    private func identity(of draft: FeedDraft, _ url: OriginURL) -> String {
        if let guid = draft.guid, !shared.contains(guid) { return guid }
        let file = url.withoutQuery
        return url.hasMediaName && !sharedAddresses.contains(file) ? file : url.absolute
    }
}

extension FeedItem {
    fileprivate init(_ draft: FeedDraft, _ media: Enclosure, identity: String) {
        self.init(
            identity: identity, title: draft.title, published: draft.published, enclosure: media,
            alternatives: Array(draft.media.dropFirst()), duration: draft.duration, season: draft.season,
            episode: draft.episode, image: draft.image)
    }
}

extension OriginURL {
    private var path: Substring { Substring(pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }) }

    fileprivate var withoutQuery: String { scheme.rawValue + "://" + authority + path }

    /// The text after the last dot of the path, in lower case.
    var pathExtension: String {
        let path = path.utf8
        guard let dot = path.lastIndex(of: UInt8(ascii: ".")), path.distance(from: dot, to: path.endIndex) <= 8 else {
            return ""
        }
        let name = ASCII.lowercased(Substring(path[path.index(after: dot)...]))
        return name.utf8.contains(UInt8(ascii: "/")) ? "" : name
    }

    /// Whether the name ends like those of audio and video files.
    var hasMediaName: Bool { Self.mediaNames.contains(pathExtension) }

    private static let mediaNames: Set<String> = [
        "mp3", "m4a", "m4b", "m4v", "mp4", "aac", "ogg", "oga", "ogv", "opus", "flac", "wav", "wma", "wmv", "webm",
        "mkv", "mka", "mov", "avi", "mpg", "mpeg", "ts", "m3u8", "mpd", "3gp", "aif", "aiff", "mp2", "spx",
    ]
}
