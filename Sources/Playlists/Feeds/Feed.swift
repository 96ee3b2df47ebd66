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

    /// Why a feed has fewer items than its author wrote.
    package enum Cut: String, Sendable {
        /// The text ends before the feed does. The item that it ends in is skipped.
        case endsEarly
        /// The XML cannot be read from some place on. Items before that place count.
        case malformed
        /// Items beyond `FeedLimits` are left out.
        case tooManyItems
    }

    package let kind: Kind
    /// The URL that answered, behind any redirects.
    package let url: OriginURL
    package var title: String?
    /// The web site that belongs to the feed.
    package var homePage: OriginURL?
    package var image: OriginURL?
    /// In document order.
    package var items: [FeedItem] = []
    /// In document order.
    package var skipped: [SkippedItem] = []
    /// RFC 5005 §3: older items of the same feed, which change places from page to page.
    package var nextPage: OriginURL?
    /// RFC 5005 §4: the items that precede these, in a document that does not change.
    package var previousArchive: OriginURL?
    /// RFC 5005 §4: this document does not change.
    package var isArchive = false
    /// RFC 5005 §2: the feed has no items but these, so that a missing one was withdrawn.
    package var isComplete = false
    /// Where the feed has moved (`itunes:new-feed-url`); nil if that is where it is.
    package var newAddress: OriginURL?
    /// How long it can be used without a request, by its own words, within `FeedLimits.lifetimes`.
    package var lifetime: Duration?
    package var cut: Cut?
    /// The XML is not well-formed, and was read all the same.
    package var isRepaired = false

    var addresses = FeedAddresses()
}
