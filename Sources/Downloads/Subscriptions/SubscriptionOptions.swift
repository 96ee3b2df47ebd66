import CachePolicy
import HTTPModel

/// What a subscriber wants of a feed.
package struct SubscriptionOptions: Sendable, Equatable {
    package static let latestRange = 0...1000
    /// Seconds: from five minutes to thirty days.
    package static let everyRange: ClosedRange<Int64> = 300...2_592_000

    /// How many of the newest episodes to download after subscribing. Later, each new episode is downloaded.
    package var latest = 3
    /// The category of its downloads; nil for none.
    package var category: String?
    /// Seconds between two checks.
    package var every: Int64 = 3600
    /// How much of the feed stays cached, and for how long; nil for all.
    package var keep: EpisodeLimit? = .untilPlayed
    /// Only episodes whose title matches are downloaded; nil for all.
    package var title: TitlePattern?
    /// The most bytes that its downloads may fetch from origins, besides the caps of all downloads; none for any number.
    package var caps: [DownloadCap] = []

    package init() {}
}

/// How much of a feed stays cached.
public enum EpisodeLimit: Sendable, Equatable {
    /// This many of the newest episodes.
    case episodes(Int)
    /// The newest episodes, up to this many bytes.
    case bytes(Int64)
    /// Each episode, pinned until it was played. After that, it goes when its room is needed.
    case untilPlayed

    private static let longestCount = 100_000

    private static let untilPlayedText = "until-played"

    /// Parses a number of episodes, `5`, a size with a unit, `2GB`, or `until-played`; nil for anything else, and for
    /// zero.
    package init?(_ text: String) {
        if text == Self.untilPlayedText {
            self = .untilPlayed
        } else if let count = Int(text) {
            self = .episodes(count)
        } else {
            // Without a unit it is a mistyped number of episodes: `5.0`, `1_000`.
            guard text.last?.isLetter == true, let size = ByteSize(text) else { return nil }
            self = .bytes(size.bytes)
        }
        guard isValid else { return nil }
    }

    /// The limit as `init(_:)` parses it.
    package var text: String {
        switch self {
        case .episodes(let count): "\(count)"
        case .bytes(let bytes): ByteSize.exactText(bytes) + (bytes % 1000 == 0 || bytes % 1024 == 0 ? "" : "B")
        case .untilPlayed: Self.untilPlayedText
        }
    }

    var isValid: Bool {
        switch self {
        case .episodes(let count): (1...Self.longestCount).contains(count)
        case .bytes(let bytes): bytes > 0
        case .untilPlayed: true
        }
    }

    /// The greatest number of episodes; nil if their sizes count.
    var count: Int? { if case .episodes(let count) = self { count } else { nil } }
}

/// Options of a new subscription, or changes to an existing one: nil leaves an option as it is.
package struct SubscriptionChange: Sendable, Equatable {
    package var latest: Int?
    /// An empty text removes the category.
    package var category: String?
    package var every: Int64?
    package var keep: Keep?
    /// An empty text removes the pattern.
    package var title: String?
    /// None removes the caps.
    package var caps: [DownloadCap]?

    package enum Keep: Sendable, Equatable {
        case all
        case limit(EpisodeLimit)

        /// Parses a limit, or `all`.
        package init?(_ text: String) {
            if text == "all" {
                self = .all
            } else if let limit = EpisodeLimit(text) {
                self = .limit(limit)
            } else {
                return nil
            }
        }

        /// The text as `init(_:)` parses it.
        package var text: String {
            switch self {
            case .all: "all"
            case .limit(let limit): limit.text
            }
        }
    }

    package init() {}

    private static let longestCategory = 100

    /// Applies the change.
    /// - Throws: `.invalid` for a value that is out of range.
    func applied(to options: SubscriptionOptions) throws(DownloadError) -> SubscriptionOptions {
        var options = options
        if let latest {
            let range = SubscriptionOptions.latestRange
            guard range.contains(latest) else {
                throw .invalid("latest of \(latest) cannot work: choose \(range.lowerBound) to \(range.upperBound)")
            }
            options.latest = latest
        }
        if let every {
            let range = SubscriptionOptions.everyRange
            guard range.contains(every) else {
                throw .invalid("a check every \(every) seconds cannot work: choose 5m to 30d")
            }
            options.every = every
        }
        if let category {
            guard category.unicodeScalars.count <= Self.longestCategory,
                category.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
            else {
                throw .invalid(
                    "the category is not valid: choose up to \(Self.longestCategory) characters on one line")
            }
            options.category = category.allSatisfy(\.isWhitespace) ? nil : category
        }
        switch keep {
        case .all: options.keep = nil
        case .limit(let limit):
            guard limit.isValid else {
                throw .invalid("\(limit.text) of a feed cannot be kept: choose 1 at least, or keep everything")
            }
            options.keep = limit
        case nil: break
        }
        if let caps { options.caps = caps }
        if let title {
            guard title.isEmpty || TitlePattern(title) != nil else {
                throw .invalid("the title pattern is not valid: choose up to \(TitlePattern.longest) characters")
            }
            options.title = TitlePattern(title)
        }
        return options
    }
}
