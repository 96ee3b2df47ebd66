import CachePolicy
import Playlists

/// Fetches feeds for subscriptions.
package protocol FeedSource: Sendable {
    /// Whether origins must not be contacted: then nothing is checked.
    var isOffline: Bool { get }

    /// Requests a document.
    /// - Parameter end: called once, on any thread, perhaps before this returns.
    /// - Returns: ends the request, after which `end` need not be called.
    func fetch(_ request: FeedRequest, onEnd end: @escaping @Sendable (FeedAnswer) -> Void) -> @Sendable () -> Void
}

/// A request for a feed, or for a page of it.
package struct FeedRequest: Sendable, Equatable {
    package let url: OriginURL
    /// Empty for an unconditional request.
    package let validators: FeedValidators
}

/// The outcome of a request.
package enum FeedAnswer: Sendable {
    /// 304: the text is the one that was read last.
    /// - Parameter movedTo: where permanent redirects alone led; nil if there were none.
    case notModified(movedTo: OriginURL?)
    case document(FeedDocument)
    case failed(FeedFailure)
}

/// A text that may be a feed.
package struct FeedDocument: Sendable {
    /// What it says; an error if it is no feed.
    let feed: Result<Feed, FeedError>
    /// The URL that answered, after any redirects.
    package let url: OriginURL
    /// Whether permanent redirects alone led there.
    package var hasMoved = false
    package var validators = FeedValidators()

    /// Reads the text, which may take some 100 ms.
    /// - Parameters:
    ///   - bytes: without a content coding; at most `FeedLimits.bytes`.
    ///   - type: the `Content-Type`.
    ///   - isPage: whether a resolver finds media behind the page at a URL.
    package init(
        bytes: [UInt8], type: String? = nil, url: OriginURL, isPage: @escaping (OriginURL) -> Bool = { _ in false }
    ) {
        self.url = url
        let budget = WorkBudget(bytes: bytes.count)
        feed = Result { () throws(FeedError) in
            try Feed(reading: bytes, at: url, type: type, isPage: isPage, within: budget)
        }
    }
}

/// Why a feed cannot be read.
package struct FeedFailure: Error, Sendable, Equatable {
    /// One line.
    package let message: String
    /// Seconds for which the origin asks to be left alone; nil if it does not.
    package let retryAfter: Double?

    package init(_ message: String, retryAfter: Double? = nil) {
        (self.message, self.retryAfter) = (message, retryAfter)
    }
}

/// The cached files of episodes. Blocks.
package protocol EpisodeStore: Sendable {
    /// How much of an episode is cached; nil for nothing.
    func cached(_ url: OriginURL) throws -> CachedEpisode?
    /// Removes an episode from the cache, unless it is being played.
    /// - Returns: false if it is.
    func remove(_ url: OriginURL) throws -> Bool
    /// When some episodes were played, in seconds since 1970; those that were not are left out.
    func played(among urls: [OriginURL]) throws -> [OriginURL: Int64]
    /// Unpins an episode, so that it may go when room is needed, unless it is being played.
    /// - Returns: false if it is.
    func unpin(_ url: OriginURL) throws -> Bool
}

/// How much of an episode is cached.
package struct CachedEpisode: Sendable, Equatable {
    package var bytes: Int64
    package var isComplete: Bool
    /// Whether a person pinned it, or ordered it to stay.
    package var isByHand = false
    /// When it had been played, in seconds since 1970; nil before.
    package var played: Int64?
}
