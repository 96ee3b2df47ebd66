import CachePolicy
import HTTPModel

/// An item of a feed that has media: an episode, a track.
package struct FeedItem: Sendable, Equatable {
    /// What tells items of one feed apart, and stays when an address changes: the GUID (`guid`, Atom's `id`); where
    /// there is none, or several items share it, the address of the media.
    package var identity: String
    package var title: String?
    /// Since 1970-01-01T00:00:00Z; nil where the feed gives no date, or an impossible one.
    package var published: Duration?
    /// What a player plays unless it is told otherwise.
    package var enclosure: Enclosure
    /// Other forms of the same media, in document order.
    package var alternatives: [Enclosure] = []
    /// Of playback; more than zero.
    package var duration: Duration?
    package var season: Int?
    package var episode: Int?
    package var image: OriginURL?
}

/// One form of an item's media.
package struct Enclosure: Sendable, Hashable {
    package var url: OriginURL
    /// Bytes, as the feed announces them. Often wrong: good for an estimate alone.
    package var length: Int64?
    /// The media type in lower case, without parameters.
    package var type: String?
    /// The feed names it as the one to play (Media RSS `isDefault`, Podcasting 2.0 `default`).
    package var isDefault = false
}

/// An item that has no media to play. It costs the feed no other item.
package struct SkippedItem: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
        case noEnclosure
        /// A scheme other than `http` and `https`.
        case scheme(String)
        /// An address that is not a URL, or has credentials in it.
        case address(String)
        /// A path on somebody's disk.
        case localFile
        /// An image, a page: the media type or the end of the name.
        case notMedia(String)
        /// Another item has the same identity and the same address.
        case duplicate
        /// The text ends within the item.
        case endsEarly
    }

    /// The title, else the GUID, else the place in the feed.
    package let name: String
    /// Counted from 1.
    package let position: Int
    package let reason: Reason
}

extension SkippedItem.Reason: CustomStringConvertible {
    /// In one sentence.
    package var description: String {
        switch self {
        case .noEnclosure: "it has no media file"
        case .scheme(let scheme): "its address is one of \(scheme.printable): only http and https can be fetched"
        case .address(let text): "its address cannot be used: \(text.printable)"
        case .localFile: "its address is a path on a disk"
        case .notMedia(let what): "it has no media file but \(what.printable)"
        case .duplicate: "an earlier item is the same"
        case .endsEarly: "the feed ends within it"
        }
    }
}
