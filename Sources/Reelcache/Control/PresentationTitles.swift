import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Presentations
import Synchronization

/// The titles of presentations, for lists that are asked for again and again. From any thread.
///
/// A title takes reading the first playlist, which may be long, and nothing of what it lists. The titles of a list are
/// kept for ten times as long as it took to read them: lists that are shown for hours take no more than a tenth of one
/// thread's time, and what is quickly read is always new.
final class PresentationTitles: Sendable {
    private struct Entry {
        let title: String?
        /// When it is too old; monotonic, in nanoseconds.
        let end: UInt64
    }

    private struct State {
        var known: [CacheKey: Entry] = [:]
        /// Those that are being read.
        var wanted: Set<CacheKey> = []
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> UInt64

    /// The most presentations of a list that get a title.
    private static let mostOfAList = 100
    /// The most that are kept when a list has been read: old ones go then.
    private static let mostKept = 1000
    private static let lifetimes: UInt64 = 10
    /// A title is for a line of a list.
    private static let longest = 500

    convenience init() { self.init(now: MonotonicClock.nanoseconds) }

    /// - Parameter now: a monotonic clock, in nanoseconds.
    init(now: @escaping @Sendable () -> UInt64) { self.now = now }

    /// Adds titles to the first hundred presentations of a list. Blocks.
    func add(to reports: inout [CachedResource], in store: CacheStore) {
        let places = reports.indices.filter { reports[$0].parts != nil && reports[$0].title == nil }.prefix(
            Self.mostOfAList)
        let titles = titles(of: places.map { CacheKey(text: reports[$0].urlText) }) { key in
            (try? PlaylistDocument.stored(key, in: store))?.title
        }
        for place in places { reports[place].title = titles[CacheKey(text: reports[place].urlText)] }
    }

    /// - Parameter read: reads a title; blocks.
    /// - Returns: those that are known by then. One that somebody else is reading just now may be missing.
    func titles(of keys: [CacheKey], read: (CacheKey) -> String?) -> [CacheKey: String] {
        let began = now()
        let unread = state.withLock { state in
            let unread = keys.filter { key in
                state.known[key].map { $0.end <= began } ?? true && !state.wanted.contains(key)
            }
            state.wanted.formUnion(unread)
            return unread
        }
        let titles = unread.map { key in read(key)?.beginning(Self.longest) }
        let ended = now(), end = ended &+ (ended -| began) &* Self.lifetimes
        return state.withLock { state in
            state.wanted.subtract(unread)
            if state.known.count > Self.mostKept { state.known = state.known.filter { $0.value.end > ended } }
            if state.known.count > Self.mostKept { state.known = [:] }
            for (key, title) in zip(unread, titles) { state.known[key] = Entry(title: title, end: end) }
            return keys.reduce(into: [:]) { $0[$1] = state.known[$1]?.title }
        }
    }
}
