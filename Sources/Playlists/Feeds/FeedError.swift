import HTTPModel

/// Why a text cannot be used as a feed, a list of files or an OPML file, in one sentence.
package struct FeedError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable, Equatable {
        /// No bytes, or white space alone.
        case empty
        /// An HTML page, as servers send it in a feed's place: a login, an error, the podcast's web site.
        case page
        /// Anything else: JSON, an image, XML of another vocabulary.
        case notAFeed
        /// XML that cannot be read even with repairs.
        case malformed
        /// It defines entities that expand.
        case entities
        /// Beyond one of `FeedLimits`.
        case tooLarge
        /// Elements within elements within elements.
        case tooDeep
        /// An HLS playlist: one stream in segments, not a list of files.
        case stream
    }

    package let kind: Kind
    /// What is wrong.
    package let reason: String

    package init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    package var description: String { reason.printable }

    static let empty = FeedError(.empty, "the feed is empty")
    static let page = FeedError(.page, "this is an HTML page, not a feed")
    static let entities = FeedError(.entities, "the feed defines entities that expand: it is not read")
    static let tooDeep = FeedError(.tooDeep, "the feed has more than \(FeedLimits.depth) elements within each other")
    static let stream = FeedError(.stream, "this is an HLS playlist: one stream in segments, not a list of files")

    static func notAFeed(_ what: String) -> FeedError { FeedError(.notAFeed, "this is not a feed: \(what)") }

    static func tooLarge(_ what: String) -> FeedError { FeedError(.tooLarge, "the feed is too large: \(what)") }

    /// - Throws: for a text with more bytes than `FeedLimits.bytes`, or without any.
    static func check(_ bytes: [UInt8]) throws(FeedError) {
        guard bytes.count <= FeedLimits.bytes else {
            throw tooLarge("\(bytes.count) bytes, more than \(FeedLimits.bytes)")
        }
        guard !bytes.allSatisfy({ ASCII.isXMLSpace($0) || $0 == 0 }) else { throw empty }
    }
}
