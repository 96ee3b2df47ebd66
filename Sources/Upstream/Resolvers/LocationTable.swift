import CachePolicy
import HTTPModel

/// Which locations are known, which are being found, and which URLs wait for that. A value without lock and clock; times
/// are seconds since 1970.
///
///              find                  take                 finished
///     unknown ──────▶ in the queue ──────▶ being found ──────────────▶ known until it expires
///        ▲                                      │ failed                   │ refused: it has expired
///        │                                      ▼                          ▼
///        └──────────────────── failed for a few seconds ◀── at once ── found again
struct LocationTable {
    /// A URL, and the command that finds its media: with another command, it is found again.
    struct Name: Hashable, Sendable {
        let url: OriginURL
        let command: [String]
    }

    typealias Waiter = @Sendable (Result<LocatedMedia, ResolverFailure>) -> Void

    /// A URL whose media is to be found.
    struct Search: Sendable {
        let name: Name
        let resolver: Resolver
    }

    private struct Entry {
        var media: LocatedMedia?
        var failure: ResolverFailure?
        /// Until when the location or the failure counts.
        var until: Int64
        /// When the location was obtained, or the failure noted.
        var since: Int64
        /// Whether an origin has answered at this location.
        var hasWorked = false
        /// How many locations in a row were refused before they had worked.
        var refusals = 0

        /// Not if the clock was set back since: then nothing says for how long it would.
        func counts(at now: Int64) -> Bool { since <= now && now < until }
    }

    private var entries: [Name: Entry] = [:]
    private var waiters: [Name: [Waiter]] = [:]
    private var queue: [Search] = []
    private var running = 0
    private var lastNumber: UInt64 = 0
    private var isClosed = false

    /// The most commands at the same time.
    static let mostRunning = 4
    /// The most URLs that wait for one of these commands to end.
    static let longestQueue = 64
    /// The most requests that wait for one command, those included whose client has left meanwhile.
    static let mostWaiters = 4096
    /// The number of locations and failures to remember. Beyond it, those that expire first are forgotten.
    static let capacity = 512
    /// How long a location counts whose expiry is unknown, and the bounds of the others, in seconds.
    static let standardLifetime: Int64 = 600
    static let lifetimes: ClosedRange<Int64> = 5...86_400
    /// How long a failure counts, in seconds: players request the same URL several times.
    static let failureLifetime: Int64 = 5
    /// A location that is refused although it is younger than this, in seconds, and has never worked does not become
    /// better by asking for it again at once.
    static let youth: Int64 = 10
    /// The longest back-off in seconds.
    static let longestBackoff: Int64 = 60

    // MARK: Finding

    /// - Returns: `waiting` if the waiter was taken; `startsThread` tells whether a thread has to be started for the
    ///   search.
    mutating func find(_ name: Name, by resolver: Resolver, at now: Int64, waiter: @escaping Waiter)
        -> (known: KnownLocation, startsThread: Bool)
    {
        guard !isClosed else { return (.failed(.closing), false) }
        if let entry = entries[name], entry.counts(at: now) {
            if let media = entry.media { return (.located(media), false) }
            if let failure = entry.failure { return (.failed(failure), false) }
        }
        if let others = waiters[name] {
            guard others.count < Self.mostWaiters else { return (.failed(.busy), false) }
            waiters[name]?.append(waiter)
            return (.waiting, false)
        }
        guard queue.count < Self.longestQueue else { return (.failed(.busy), false) }
        waiters[name] = [waiter]
        queue.append(Search(name: name, resolver: resolver))
        guard running < Self.mostRunning else { return (.waiting, false) }
        running += 1
        return (.waiting, true)
    }

    /// The next search for a thread; nil if there is none, and the thread ends.
    mutating func take() -> Search? {
        guard !queue.isEmpty else {
            running -= 1
            return nil
        }
        return queue.removeFirst()
    }

    /// Records the result of a search.
    /// - Returns: who waits for it, and what they get.
    mutating func finished(_ name: Name, _ result: Result<MediaLocation, ResolverFailure>, at now: Int64)
        -> (waiters: [Waiter], result: Result<LocatedMedia, ResolverFailure>)
    {
        var entry = entries[name] ?? Entry(until: now, since: now)
        entry.hasWorked = false
        let outcome = result.map { LocatedMedia(location: $0, number: newNumber()) }
        switch outcome {
        case .success(let media):
            (entry.media, entry.failure) = (media, nil)
            (entry.since, entry.until) = (now, now +| Self.lifetime(of: media.location, at: now))
        case .failure(let failure):
            (entry.media, entry.failure) = (nil, failure)
            (entry.since, entry.until) = (now, now +| Self.failureLifetime)
        }
        enter(entry, name, at: now)
        return (waiters.removeValue(forKey: name) ?? [], outcome)
    }

    /// Uses a location that needs no search.
    mutating func substitute(_ location: MediaLocation, for name: Name, at now: Int64) -> LocatedMedia {
        let media = LocatedMedia(location: location, number: newNumber())
        enter(Entry(media: media, until: now +| Self.standardLifetime, since: now), name, at: now)
        return media
    }

    /// The location that stands for the URL; nil if there is none.
    func known(_ name: Name, at now: Int64) -> LocatedMedia? {
        entries[name].flatMap { $0.counts(at: now) ? $0.media : nil }
    }

    private mutating func newNumber() -> UInt64 {
        lastNumber += 1 // no trap: one for each location, of 64 bits
        return lastNumber
    }

    private static func lifetime(of location: MediaLocation, at now: Int64) -> Int64 {
        let lifetime = location.expires.map { $0 -| now } ?? standardLifetime
        return min(max(lifetime, lifetimes.lowerBound), lifetimes.upperBound)
    }

    private mutating func enter(_ entry: Entry, _ name: Name, at now: Int64) {
        entries[name] = entry
        guard entries.count > Self.capacity else { return }
        entries = entries.filter { now < $0.value.until }
        // Never the new one: who waits for it looks it up next, and would have it found again, without end.
        guard entries.count > Self.capacity,
            let first = entries.lazy.filter({ $0.key != name }).min(by: { $0.value.until < $1.value.until })
        else {
            return
        }
        entries[first.key] = nil
    }

    // MARK: Refusals

    /// An origin has answered at this location.
    mutating func worked(_ media: LocatedMedia, _ name: Name) {
        guard entries[name]?.media?.number == media.number else { return }
        entries[name]?.hasWorked = true
        entries[name]?.refusals = 0
    }

    /// An origin has refused a location with a status that may mean that it has expired. It is forgotten.
    /// - Returns: whether it is worthwhile to find the media again now. If not, that fails for a while.
    mutating func refused(_ media: LocatedMedia, _ name: Name, status: Int, by resolver: String, at now: Int64) -> Bool
    {
        // Its successor may be known already.
        guard var entry = entries[name], entry.media?.number == media.number else { return true }
        entry.media = nil
        entry.until = now
        let isWorthwhile = entry.hasWorked || now -| entry.since >= Self.youth
        if !isWorthwhile {
            entry.refusals = min(entry.refusals +| 1, 16)
            let wait = min(Int64(1) << entry.refusals, Self.longestBackoff)
            entry.failure = .refused(resolver, status: status, retryAfter: wait)
            entry.until = now +| wait
        } else {
            entry.failure = nil
        }
        entries[name] = entry
        return isWorthwhile
    }

    /// Ends all searches that have not begun.
    /// - Returns: who waits.
    mutating func close() -> [Waiter] {
        isClosed = true
        queue = []
        defer { waiters = [:] }
        return waiters.values.flatMap(\.self)
    }
}
