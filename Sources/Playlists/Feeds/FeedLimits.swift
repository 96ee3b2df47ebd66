/// The limits of feeds and of lists of files. Memory follows the bytes that have arrived, whatever they announce.
package enum FeedLimits {
    /// 32 MiB. Feeds with twenty years of episodes and their notes have some ten.
    package static let bytes = PlaylistLimits.bytes
    /// Items that are read. Feeds begin with the newest, so that the oldest are left out.
    package static let items = 20_000
    /// Bytes of a tag with its attributes.
    static let tag = PlaylistLimits.line
    /// Bytes of one element's text. What is longer is neither a title nor an address.
    static let text = PlaylistLimits.address
    /// Elements within elements. Texts with markup of their own have some thirty.
    static let depth = 256
    /// Elements that are kept of one item; further ones are passed over.
    static let elementsOfItem = 1000
    /// Elements that are kept outside of items: entries of an OPML file, above all.
    static let elements = 100_000
    /// Bytes of all addresses of items, resolved: a long base would else be in each of a million short references.
    static let resolved = 16 << 20
    /// Bytes of an `xml:base`, resolved. A longer one is not used.
    static let base = 2048
    /// Addresses that rewriting looks at.
    static let addresses = 500_000
    /// Other forms of one item's media.
    static let alternatives = 64
    /// Characters of a title.
    package static let title = 500
    /// Bytes of an identity that a feed gives an item. A longer one is not used.
    static let identity = 1024
    /// Places that a repair changes. A text that needs more is not a feed with mistakes in it.
    static let repairs = 500_000
    /// Open elements that a repair compares with tags that have no partner.
    static let comparisons = 5_000_000
    /// Seconds for which a feed may state that it does not change: five minutes to a week.
    package static let lifetimes: ClosedRange<Int64> = 300...604_800
    /// Folders within folders of an OPML file.
    package static let categories = 16
}
