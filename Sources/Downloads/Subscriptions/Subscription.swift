import CachePolicy

/// A feed that is looked after: its new episodes become downloads.
///
///     url        under which it was subscribed; its name for people and for downloads
///     address    where it is fetched by now
///     check      a conditional request, and what follows from the answer
///     broken     since the first of the checks in a row that failed
package struct Subscription: Sendable, Equatable {
    /// 0 before it is saved.
    var id: Int64 = 0
    package internal(set) var url: OriginURL
    /// Where it is fetched: another URL if it has moved.
    package internal(set) var address: OriginURL
    package internal(set) var options: SubscriptionOptions
    /// The title of the feed; nil before the first reading, or if it has none.
    package internal(set) var title: String?
    /// Of the response at `address` that was read last.
    var validators = FeedValidators()
    /// Seconds that the feed itself wants between two checks; nil if it does not say.
    var lifetime: Int64?
    /// Whether the newest `latest` episodes are still to be downloaded, although they are not new.
    var wantsLatest = true
    /// When it was subscribed, in seconds since 1970, like all times here.
    package internal(set) var added: Double
    /// The time of the last check; nil before.
    package internal(set) var checked: Double?
    /// The time of the last check that read the feed, or found it unchanged; nil before.
    package internal(set) var read: Double?
    /// When the next check is due.
    package internal(set) var due: Double
    /// Checks in a row that failed.
    package internal(set) var failures = 0
    /// The time of the first of these.
    package internal(set) var brokenSince: Double?
    /// What is wrong, in one line.
    package internal(set) var message: String?
    /// Until when the origin asks to be left alone. Not saved.
    var restsUntil: Double?
    /// Readings in a row that were not complete; 1000 at most.
    var gaps = 0
    /// How often in a row a feed is read again because a part of it could not be read. After that, the part counts as
    /// gone.
    static let mostGaps = 3
    /// The first items of the last reading that have no media, each with the reason in one line.
    var skipped: [String] = []

    init(_ url: OriginURL, options: SubscriptionOptions, added: Double, due: Double) {
        (self.url, address, self.options, self.added, self.due) = (url, url, options, added, due)
    }

    /// Whether nothing of it was ever read. That its episodes were lost is something else.
    var isUnread: Bool { read == nil && wantsLatest && gaps == 0 }

    /// The URL that the next check requests. A feed that cannot be read where it moved may be back where it was.
    var request: FeedRequest {
        guard failures >= 2, failures.isMultiple(of: 2), address != url else {
            return FeedRequest(url: address, validators: wantsLatest ? FeedValidators() : validators)
        }
        return FeedRequest(url: url, validators: FeedValidators())
    }

    /// Spreads the first check after a start.
    /// - Parameter count: how many feeds there are.
    mutating func delayStart(now: Double, count: Int, random: Double) {
        due = FeedSchedule.start(due: due, every: options.every, count: count, now: now, random: random)
    }

    /// The clock was set back since the last check: the next one is due as long after it as before. No download is
    /// older than the subscription.
    mutating func follow(clockAt now: Double) {
        added = min(added, now)
        guard let last = checked, last > now else { return }
        (due, checked) = (due - (last - now), now)
    }

    mutating func succeeded(now: Double, random: Double) {
        (checked, read) = (now, now)
        (failures, brokenSince, message) = (0, nil, nil)
        due = now + FeedSchedule.delay(every: options.every, lifetime: lifetime, random: random)
    }

    /// Whether the next check is to read the whole feed again, because episodes may be missing. If that is of no avail,
    /// not for ever.
    mutating func readsAgain(after gap: FeedReading.Gap?) -> Bool {
        gaps = gap == nil ? 0 : min(gaps + 1, 1000)
        return gap?.hidesEpisodes == true && gaps <= Self.mostGaps
    }

    /// The next check passes over what the feed has then, as its known episodes are lost.
    mutating func forgetEpisodes() { (read, wantsLatest, validators) = (nil, false, FeedValidators()) }

    mutating func failed(_ failure: FeedFailure, now: Double, random: Double) {
        (checked, message) = (now, failure.message)
        restsUntil = failure.retryAfter.map { now + min($0, FeedSchedule.longest) }
        // However often a person repeats a check that fails, the next one by itself is no later.
        if brokenSince == nil || now >= due {
            failures = min(failures + 1, 1000)
            due = now + FeedSchedule.delay(afterFailures: failures, every: options.every, random: random)
        }
        due = max(due, restsUntil ?? due)
        brokenSince = brokenSince ?? now
    }

    /// Checks a feed soon that could not be read, as the cause may be gone.
    /// - Parameter count: how many such feeds there are.
    mutating func retrySoon(now: Double, count: Int, random: Double) {
        let soon = FeedSchedule.start(due: now, every: options.every, count: count, now: now, random: random)
        due = min(due, max(soon, restsUntil ?? soon))
    }
}

/// What a conditional request needs of the last response (RFC 9110 §13.1).
package struct FeedValidators: Sendable, Equatable {
    package var etag: String?
    package var lastModified: String?

    /// Bytes of one of them. A longer one is not kept.
    private static let longest = 4096

    package init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag.flatMap { $0.utf8.count <= Self.longest ? $0 : nil }
        self.lastModified = lastModified.flatMap { $0.utf8.count <= Self.longest ? $0 : nil }
    }
}
