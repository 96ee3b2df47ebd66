import CacheFill
import HTTPModel
import Playlists

/// The options of a download.
public struct DownloadOptions: Sendable, Equatable {
    /// The number of bytes to download from the beginning; nil for the whole resource. With `last`, the number of those
    /// that arrive first.
    public var first: Int64?
    /// The number of bytes at the end that arrive right after the `first`, before the rest: a file whose index is at its
    /// end then plays at once. Nil for the usual order. With it, the whole resource is downloaded.
    public var last: Int64?
    /// Which waiting downloads go first.
    public var priority = Download.Priority.normal
    /// The most connections to its origin, 1 to 16.
    public var connections = 1
    /// The rate limit in bytes per second; nil for none.
    public var bytesPerSecond: Int64?
    /// A label of the user's, by which the history can be filtered.
    public var category: String?
    /// Whether to pin the downloaded resource.
    public var isPinned = true
    /// Whether to download now, whatever the schedule and the caps say. The bytes are counted all the same.
    public var isAtOnce = false
    /// For a playlist (HLS, DASH), the renditions to download.
    public var renditions = RenditionChoice()
    /// How long to record a live stream, up to a week; nil not to record. At the end `Download.message` tells where
    /// the recording plays.
    public var recordingTime: Duration?

    /// The whole resource, in normal priority, over one connection, pinned.
    public init() {}

    /// The defaults with the changes that `change` makes.
    public init(_ change: (inout DownloadOptions) -> Void) { change(&self) }
}

extension DownloadOptions {
    /// The most connections of one download.
    package static let maxConnections = 16
    /// A week, in seconds.
    package static let longestRecording: Int64 = 7 * 86400
    private static let longestCategory = 100

    /// `recordingTime` in whole seconds.
    package var recordFor: Int64? {
        get { recordingTime.map { Int64(saturating: $0.inSeconds.rounded(.up)) } }
        set { recordingTime = newValue.map { .seconds($0) } }
    }

    /// The number of bytes from the beginning if no more than these are wanted; nil for the whole.
    package var wantedFirst: Int64? { last == nil ? first : nil }

    /// What arrives before the rest of the whole; nil for the usual order.
    var ends: HeadAndTail? { last.map { HeadAndTail(head: first ?? 0, tail: $0) } }

    /// - Throws: `.invalid` for options that make no sense.
    /// - Parameter name: the URL that they are for.
    func check(for name: String) throws(DownloadError) {
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
        if let bytesPerSecond, bytesPerSecond <= 0 {
            throw .invalid(
                "cannot download \(name) at \(bytesPerSecond) bytes per second: ask for 1 at least, or leave the limit out"
            )
        }
        for number in [first, last, bytesPerSecond].compactMap({ $0 }) where number > ByteNumber.greatest {
            throw .invalid(
                "cannot download \(name) with the number \(number): leave it out, or choose a smaller one"
            )
        }
        try checkRenditions(of: name)
        if let recordFor { try check(recordFor, of: name) }
        guard first == nil && last == nil || recordFor == nil && renditions == RenditionChoice() else {
            let which = first == nil ? "last" : "first"
            throw .invalid("cannot download the \(which) bytes of \(name) and its renditions: leave one of them out")
        }
        if let category { try Self.check(category, of: name) }
    }

    /// They are saved as texts, from which they have to come back.
    private func checkRenditions(of name: String) throws(DownloadError) {
        let quality = renditions.quality
        guard RenditionChoice.Quality(quality.text) == quality else {
            throw .invalid("\(quality.text.quoted) is no quality for \(name): choose \(RenditionChoice.Quality.forms)")
        }
        for languages in [renditions.audio, renditions.subtitles]
        where RenditionChoice.Languages(languages.text) != languages {
            throw .invalid(
                "\(languages.text.quoted) names no languages for \(name): choose \(RenditionChoice.Languages.forms)")
        }
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
