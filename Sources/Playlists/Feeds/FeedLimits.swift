/// The limits of feeds and of lists of files. Memory is proportional to the received bytes, whatever they announce.
package enum FeedLimits {
    /// 32 MiB. Feeds with twenty years of episodes and their notes have about 10 MiB.
    package static let bytes = PlaylistLimits.bytes
    /// Items that are read. Feeds begin with the newest item, so the oldest are left out.
    package static let items = 20_000
    /// Bytes of a tag with its attributes.
    static let tag = PlaylistLimits.line
    /// Bytes of one element's text. A longer text is neither a title nor an address.
    static let text = PlaylistLimits.address
    /// Levels of nested elements. Feeds that contain markup have about thirty.
    static let depth = 256
    /// Elements that are kept of one item; further ones are skipped.
    static let elementsOfItem = 1000
    /// Elements that are kept outside of items, such as the entries of an OPML file.
    static let elements = 100_000
    /// Bytes of a resolved `xml:base`. A longer one is ignored.
    static let base = 2048
    /// Addresses that are rewritten.
    static let addresses = 500_000
    /// Bytes of the address of an item's media. The proxy takes no longer one from players.
    static let enclosure = 8 << 10
    /// Other forms of one item's media.
    static let alternatives = 64
    /// Characters of a title.
    package static let title = 500
    /// Bytes of the identity that a feed states for an item. A longer one is ignored.
    static let identity = 1024
    /// Changes that a repair makes. A text that needs more is not a feed with mistakes.
    static let repairs = 500_000
    /// The bounds of the lifetime that a feed states, in seconds: five minutes to a week.
    package static let lifetimes: ClosedRange<Int64> = 300...604_800
    /// Levels of nested folders in an OPML file.
    package static let categories = 16
}
