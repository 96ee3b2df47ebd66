import CacheFill
import CachePolicy
import Playlists
import Presentations

/// A request for a download, with its options.
package struct DownloadOrder: Sendable, Equatable {
    /// The most connections of one download.
    package static let maxConnections = 16

    package var url: OriginURL
    /// The number of bytes from the beginning; nil for the whole. With `last`, which of the whole arrive first.
    package var first: Int64?
    /// The number of bytes at the end that arrive after the `first` and before the rest; nil for the usual order. The
    /// whole is then downloaded.
    package var last: Int64?
    package var priority: DownloadPriority
    /// 1 to `maxConnections`.
    package var connections: Int
    /// Bytes per second; nil for no limit of its own.
    package var limitRate: Int64?
    /// A name chosen by the user, for filtering the history.
    package var category: String?
    /// Whether to pin the downloaded resource.
    package var isPinned: Bool
    /// Whether neither the schedule nor a cap delays it. What it fetches is counted all the same.
    package var isAtOnce: Bool
    /// The renditions to download of a playlist.
    package var renditions: RenditionChoice
    /// For how many seconds to record a live stream; nil for no recording.
    package var recordFor: Int64?
    /// When the recording began, in seconds since 1970; part of its name. Nil before the order is carried out.
    package var recordedFrom: Int64?
    /// The episode that it is; nil if no subscription ordered it.
    package var episode: EpisodeName?

    /// A week.
    package static let longestRecording: Int64 = 7 * 86400

    package init(
        url: OriginURL, first: Int64? = nil, last: Int64? = nil, priority: DownloadPriority = .normal,
        connections: Int = 1, limitRate: Int64? = nil, category: String? = nil, isPinned: Bool = true,
        isAtOnce: Bool = false, renditions: RenditionChoice = RenditionChoice(), recordFor: Int64? = nil
    ) {
        self.url = url
        self.first = first
        self.last = last
        self.isAtOnce = isAtOnce
        self.priority = priority
        self.connections = connections
        self.limitRate = limitRate
        self.category = category
        self.isPinned = isPinned
        self.renditions = renditions
        self.recordFor = recordFor
    }
}

/// Names an episode of a subscribed feed.
package struct EpisodeName: Sendable, Hashable {
    /// The URL under which the feed is subscribed.
    package var feed: String
    /// The episode's identity within the feed (`FeedItem.identity`).
    package var identity: String

    package init(feed: String, identity: String) { (self.feed, self.identity) = (feed, identity) }
}

extension OriginURL {
    /// Parses the URL of an order.
    /// - Throws: `.invalid` if it is not an http or https URL.
    package init(ordered text: String) throws(DownloadError) {
        do throws(OriginURLError) { self = try OriginURL(url: text) } catch {
            throw .invalid("cannot download \(URLMask.standard.masked(text).quoted): \(error.reason)")
        }
    }
}

extension DownloadOrder {
    private static let longestCategory = 100

    /// The number of bytes from the beginning if no more than these are wanted; nil for the whole.
    package var wantedFirst: Int64? { last == nil ? first : nil }

    /// What arrives before the rest of the whole; nil for the usual order.
    var ends: HeadAndTail? { last.map { HeadAndTail(head: first ?? 0, tail: $0) } }

    /// The URL under which the download is cached: a recording is a presentation beside the stream.
    package var subject: OriginURL {
        guard recordFor != nil, let recordedFrom else { return url }
        return RecordingName(began: recordedFrom).url(of: url)
    }

    /// - Throws: `.invalid` for options that make no sense.
    func check() throws(DownloadError) {
        let name = url.absolute
        if let first, first <= 0 {
            throw .invalid(
                "cannot download the first \(first) bytes of \(name): ask for 1 at least, or leave it out for the whole"
            )
        }
        if let last, last <= 0 {
            throw .invalid(
                "cannot download the last \(last) bytes of \(name) before the rest: ask for 1 at least, or leave it out"
            )
        }
        guard (1...Self.maxConnections).contains(connections) else {
            throw .invalid(
                "cannot download \(name) through \(connections) connections: choose 1 to \(Self.maxConnections)")
        }
        if let limitRate, limitRate <= 0 {
            throw .invalid(
                "cannot download \(name) at \(limitRate) bytes per second: ask for 1 at least, or leave the limit out")
        }
        if let recordFor { try check(recordFor, of: name) }
        guard first == nil && last == nil || recordFor == nil && renditions == RenditionChoice() else {
            let which = first == nil ? "last" : "first"
            throw .invalid("cannot download the \(which) bytes of \(name) and its renditions: leave one of them out")
        }
        if let category { try Self.check(category, of: name) }
    }

    private func check(_ seconds: Int64, of name: String) throws(DownloadError) {
        guard (1...Self.longestRecording).contains(seconds) else {
            throw .invalid("cannot record \(name) for \(seconds) seconds: choose 1 to \(Self.longestRecording)")
        }
    }

    private static func check(_ category: String, of name: String) throws(DownloadError) {
        guard !category.isEmpty else {
            throw .invalid("the category of \(name) is empty: give it a word, or leave it out")
        }
        let count = category.unicodeScalars.count
        guard count <= longestCategory else {
            throw .invalid(
                "the category of \(name) has \(count) characters: choose one of \(longestCategory) at most")
        }
        guard category.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw .invalid("the category \(category.quoted) of \(name) contains a control character: remove it")
        }
    }
}

extension DownloadError {
    static func invalid(_ description: String) -> DownloadError { DownloadError(.invalid, description) }
}

extension String {
    /// In quotes, on one line and of limited length.
    fileprivate var quoted: String {
        let longest = 200
        let text = unicodeScalars.prefix(longest).reduce(into: "") {
            $0 += $1.properties.generalCategory == .control ? $1.escaped(asASCII: true) : String($1)
        }
        return "'\(text)\(unicodeScalars.count > longest ? "..." : "")'"
    }
}
