import CachePolicy
import HTTPModel

/// An item of a feed that has media: an episode, a track.
package struct FeedItem: Sendable, Equatable {
    /// The identity that the feed states (`guid`, Atom's `id`), which stays when an address changes; nil if there is
    /// none, or if several items of this text share it.
    package var guid: String?
    /// Distinguishes the items without a GUID: the address of the media. A query may be a signature that changes, or
    /// select the file: an address with one counts without it, but with the date; or else it is the link to a page.
    package var file: String
    package var title: String?
    /// The time since 1970-01-01T00:00:00Z; nil if the feed states no date, or an impossible one.
    package var published: Duration?
    /// The form that players play by default.
    package var enclosure: Enclosure
    /// Other forms of the same media, in document order.
    package var alternatives: [Enclosure] = []
    package var season: Int?
    package var episode: Int?
    package var image: OriginURL?
}

extension FeedItem {
    /// Distinguishes the items of a text: the GUID, or else the file.
    package var identity: String { guid ?? file }
}

/// One form of an item's media.
package struct Enclosure: Sendable, Hashable {
    package var url: OriginURL
    /// The length in bytes that the feed states. It is often wrong, and good only for an estimate.
    package var length: Int64?
    /// The media type in lower case, without parameters.
    package var type: String?
    /// Whether the feed marks it as the one to play (Media RSS `isDefault`, Podcasting 2.0 `default`).
    package var isDefault = false
}

/// An item without media that can be played. The other items of the feed are read nevertheless.
package struct SkippedItem: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
        case noEnclosure
        /// Of an entry of a list.
        case noAddress
        /// A scheme other than `http` and `https`.
        case scheme(String)
        /// An address that is not a URL, or that contains credentials.
        case address(String)
        /// A path on the author's disk.
        case localFile
        /// An image or a page: its media type, or the end of its name.
        case notMedia(String)
        /// Another item has the same identity and the same address.
        case duplicate
        /// The text ends within the item.
        case endsEarly
    }

    /// The title, else the GUID, else the position in the feed.
    package let name: String
    /// Counted from 1.
    package let position: Int
    package let reason: Reason
}

extension SkippedItem.Reason: CustomStringConvertible {
    /// The reason in one sentence.
    package var description: String {
        switch self {
        case .noEnclosure: "it has no media file"
        case .noAddress: "it has no URL"
        case .scheme(let scheme): "its address is one of \(scheme.printable): only http and https can be fetched"
        case .address(let text): "its address cannot be used: \(text.printable)"
        case .localFile: "its address is a path on a disk"
        case .notMedia(let what): "it has no media file but \(what.printable)"
        case .duplicate: "an earlier item is the same"
        case .endsEarly: "the feed ends within it"
        }
    }
}
