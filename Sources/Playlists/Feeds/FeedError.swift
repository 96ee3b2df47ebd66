import HTTPModel

/// Why a text cannot be used as a feed, a list of files or an OPML file, in one sentence.
package struct FeedError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable, Equatable {
        /// No bytes, or only white space.
        case empty
        /// An HTML page in place of a feed: a login, an error, the podcast's web site.
        case page
        /// Anything else: JSON, an image, XML of another vocabulary.
        case notAFeed
        /// XML that cannot be read even with repairs.
        case malformed
        /// A feed whose document type defines entities that expand, or attributes.
        case entities
        /// A feed that exceeds one of `FeedLimits`, or whose addresses are not all known.
        case tooLarge
        /// Too many elements nested in each other.
        case tooDeep
        /// An HLS playlist: one stream in segments, not a list of files.
        case stream
    }

    package let kind: Kind
    /// The error in one sentence.
    package let reason: String

    package init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    package var description: String { reason.printable }

    /// What a spent budget means for a feed.
    init(_ error: PlaylistError) { self.init(.tooLarge, error.reason.replacing("playlist", with: "feed")) }

    static let empty = FeedError(.empty, "the feed is empty")
    static let page = FeedError(.page, "this is an HTML page, not a feed")
    static let entities = FeedError(.entities, "the feed defines entities that expand: it is not read")
    static let attributes = FeedError(
        .entities, "the feed declares attributes in its document type (ATTLIST): it is not read")
    static let tooDeep = FeedError(.tooDeep, "the feed has more than \(FeedLimits.depth) elements within each other")
    static let stream = FeedError(.stream, "this is an HLS playlist: one stream in segments, not a list of files")

    static let incomplete = FeedError(
        .tooLarge, "the feed cannot be rewritten: some of its addresses are beyond the limits or its mistakes")

    static func notAFeed(_ what: String) -> FeedError { FeedError(.notAFeed, "this is not a feed: \(what)") }

    static func tooLarge(_ what: String) -> FeedError { FeedError(.tooLarge, "the feed is too large: \(what)") }

    /// - Throws: if the text is empty or has more bytes than `FeedLimits.bytes`.
    static func check(_ bytes: [UInt8]) throws(FeedError) {
        guard bytes.count <= FeedLimits.bytes else {
            throw tooLarge("\(bytes.count) bytes, more than \(FeedLimits.bytes)")
        }
        guard !bytes.allSatisfy({ ASCII.isXMLSpace($0) || $0 == 0 }) else { throw empty }
    }
}
