import CachePolicy

/// A podcast or another list of media, as its text states it.
///
///     feed         items in the order of the text, and those that were skipped
///     item         one episode: an identity that stays when its address changes, and where its media is
///     enclosure    one form of the media: address, media type, announced length
///
/// RSS 0.9 to 2.0, RSS 1.0, Atom, and lists of files (M3U, PLS, XSPF) become the same values. `Feed(reading:at:type:)`
/// reads one; `edits(for:at:)` rewrites its addresses.
package struct Feed: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case rss, atom, m3u, pls, xspf
    }

    /// Why the feed has fewer items than its author wrote.
    package enum Cut: String, Sendable {
        /// The text ends before the feed does. The item that it ends in is skipped.
        case endsEarly
        /// The XML cannot be read beyond some position. The items before it count.
        case malformed
        /// Items beyond `FeedLimits` are left out.
        case tooManyItems
    }

    package let kind: Kind
    /// The URL that answered, after any redirects.
    package let url: OriginURL
    package var title: String?
    /// The web site that belongs to the feed.
    package var homePage: OriginURL?
    package var image: OriginURL?
    /// In document order.
    package var items: [FeedItem] = []
    /// In document order.
    package var skipped: [SkippedItem] = []
    /// RFC 5005 §3: a page with older items of the same feed. Items move between pages as new ones appear.
    package var nextPage: OriginURL?
    /// RFC 5005 §4: the items that precede these, in a document that does not change.
    package var previousArchive: OriginURL?
    /// RFC 5005 §4: this document does not change.
    package var isArchive = false
    /// RFC 5005 §2: these are all items of the feed, so a missing one was withdrawn.
    package var isComplete = false
    /// The URL to which the feed has moved (`itunes:new-feed-url`); nil if it has not.
    package var newAddress: OriginURL?
    /// The lifetime that the feed states, within `FeedLimits.lifetimes`.
    package var lifetime: Duration?
    package var cut: Cut?
    /// Whether mistakes in the text were repaired.
    package var isRepaired = false

    var addresses = FeedAddresses()

    /// The memory that its addresses take, in bytes.
    package var weight: Int { addresses.size }
}
