import CacheFill
import CachePolicy
import Playlists
import Presentations

/// A request for a download, with its options.
@dynamicMemberLookup package struct DownloadOrder: Sendable, Equatable {
    package var url: OriginURL
    package var options: DownloadOptions
    /// When the recording began, in seconds since 1970; part of its name. Nil before the order is carried out.
    package var recordedFrom: Int64?
    /// The cache key under which it is to be, as what was cached under that is known; nil before the order is carried
    /// out.
    package var key: CacheKey?
    /// The episode that it is; nil if no subscription ordered it.
    package var episode: EpisodeName?
    /// What its feed or whoever ordered it calls it; nil if that is not known.
    package var title: String?

    package init(url: OriginURL, options: DownloadOptions = DownloadOptions()) {
        (self.url, self.options) = (url, options)
    }

    package subscript<Value>(dynamicMember option: KeyPath<DownloadOptions, Value>) -> Value {
        options[keyPath: option]
    }

    package subscript<Value>(dynamicMember option: WritableKeyPath<DownloadOptions, Value>) -> Value {
        get { options[keyPath: option] }
        set { options[keyPath: option] = newValue }
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
    /// The URL under which the download is cached: a recording is a presentation beside the stream.
    package var subject: OriginURL {
        guard options.recordFor != nil, let recordedFrom else { return url }
        return RecordingName(began: recordedFrom).url(of: url)
    }
}

extension String {
    /// In quotes, on one line and of limited length.
    var quoted: String {
        let longest = 200
        let text = unicodeScalars.prefix(longest).reduce(into: "") {
            $0 += $1.properties.generalCategory == .control ? $1.escaped(asASCII: true) : String($1)
        }
        return "'\(text)\(unicodeScalars.count > longest ? "..." : "")'"
    }
}
