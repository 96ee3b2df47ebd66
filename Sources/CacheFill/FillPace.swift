import HTTPModel
import Synchronization

/// Bytes that may come in by now: so many each second, and what was not taken of the last quarter of a second.
struct TokenBucket: Sendable {
    /// Bytes per second; nil for no limit.
    private(set) var rate: Int64?
    private var tokens: Double = 0
    private var filledAt: UInt64 = 0

    /// Unused time counts for so long, in seconds.
    static let memory = 0.25

    init(rate: Int64? = nil) { self.rate = rate }

    mutating func setRate(_ rate: Int64?, at now: UInt64) {
        fill(at: now)
        self.rate = rate
        if let rate { tokens = min(tokens, Self.most(at: rate)) }
    }

    /// How many of so many bytes may come.
    /// - Parameter now: nanoseconds of a clock that never goes back.
    mutating func available(_ wanted: Int64, at now: UInt64) -> Int64 {
        guard rate != nil else { return wanted }
        fill(at: now)
        return min(wanted, max(0, Int64(tokens)))
    }

    /// Whether what has come is more than should have.
    mutating func isInDebt(at now: UInt64) -> Bool {
        guard rate != nil else { return false }
        fill(at: now)
        return tokens < 0
    }

    /// They have come: also those that came too early, for which later ones wait.
    mutating func take(_ bytes: Int64) {
        if rate != nil { tokens -= Double(bytes) }
    }

    private mutating func fill(at now: UInt64) {
        defer { filledAt = max(filledAt, now) }
        guard let rate, filledAt > 0, now > filledAt else { return }
        tokens = min(Self.most(at: rate), tokens + Double(now - filledAt) / 1e9 * Double(rate))
    }

    /// At the lowest rates, one byte.
    private static func most(at rate: Int64) -> Double { max(1, Double(rate) * memory) }
}

/// What all downloads share: the rate of all together, and whose turn it is. From any thread.
///
/// Playing goes first: while bytes come in for a reader, all downloads together get no more than a trickle, which keeps
/// an origin that gives readers their bytes slowly from stopping them altogether.
package final class DownloadLine: Sendable {
    /// Bytes per second that all downloads get while bytes come in for readers.
    package static let trickle: Int64 = 64 << 10

    fileprivate let shared = Mutex(SharedBuckets())
    fileprivate let nanoseconds: @Sendable () -> UInt64
    private let isPlaying: @Sendable () -> Bool

    /// - Parameters:
    ///   - nanoseconds: a clock that never goes back.
    ///   - isPlaying: whether bytes come in for readers now. Called with no lock held.
    package init(nanoseconds: @escaping @Sendable () -> UInt64, isPlaying: @escaping @Sendable () -> Bool) {
        (self.nanoseconds, self.isPlaying) = (nanoseconds, isPlaying)
    }

    package convenience init(of filler: CacheFiller) {
        self.init(nanoseconds: filler.settings.clock) { [filler] in filler.isBeingRead }
    }

    /// - Parameter rate: bytes per second; nil for no limit.
    package func limit(to rate: Int64?) {
        let now = nanoseconds()
        shared.withLock { $0.all.setRate(rate, at: now) }
    }

    fileprivate func lookWhetherPlaying(at now: UInt64) {
        guard shared.withLock({ $0.mustLook(at: now) }) else { return }
        let isPlaying = isPlaying()
        shared.withLock { $0.isPlaying = isPlaying }
    }
}

/// The buckets of all downloads together. A value.
private struct SharedBuckets {
    var all = TokenBucket()
    /// Counts while bytes come in for readers.
    private var beside = TokenBucket(rate: DownloadLine.trickle)
    var isPlaying = false
    private var lookedAt: UInt64?

    /// Whether bytes come in for readers is looked at so often.
    private static let lookNanoseconds: UInt64 = 50_000_000

    /// - Returns: whether to look once more whether bytes come in for readers.
    mutating func mustLook(at now: UInt64) -> Bool {
        if let lookedAt, now < lookedAt +| Self.lookNanoseconds { return false }
        lookedAt = now
        return true
    }

    mutating func owe(_ bytes: Int64, _ own: inout TokenBucket) {
        own.take(bytes)
        all.take(bytes)
        if isPlaying { beside.take(bytes) }
    }

    /// - Returns: whether nothing is owed; then the bytes are taken.
    mutating func reserve(_ bytes: Int64, _ own: inout TokenBucket, at now: UInt64) -> Bool {
        guard !own.isInDebt(at: now), !all.isInDebt(at: now), !isPlaying || !beside.isInDebt(at: now) else {
            return false
        }
        owe(bytes, &own)
        return true
    }

    /// - Returns: how many of so many bytes may come: they are taken.
    mutating func take(_ wanted: Int64, _ own: inout TokenBucket, at now: UInt64) -> Int64 {
        var granted = all.available(own.available(wanted, at: now), at: now)
        if isPlaying { granted = beside.available(granted, at: now) }
        owe(granted, &own)
        return granted
    }
}

/// How quickly one download goes. From any thread. Lock order: its own bucket before those of its line; nothing is
/// called under either.
package final class FillPace: Sendable {
    private let line: DownloadLine
    private let bucket: Mutex<TokenBucket>

    /// - Parameter rate: bytes per second; nil for no limit of its own.
    package init(_ line: DownloadLine, rate: Int64?) {
        self.line = line
        bucket = Mutex(TokenBucket(rate: rate))
    }

    package func limit(to rate: Int64?) {
        let now = line.nanoseconds()
        bucket.withLock { $0.setRate(rate, at: now) }
    }

    /// Bytes per second by both limits; nil for none.
    var rate: Int64? { [bucket.withLock { $0.rate }, line.shared.withLock { $0.all.rate }].compactMap { $0 }.min() }

    /// How far past what is in time a transfer goes at most, in bytes: what comes over and above is a small part of a
    /// second's worth.
    var window: Int64 {
        rate.map { min(max($0 / 16, ReadAheadWindow.first), Self.longestWindow) } ?? Self.longestWindow
    }

    private static let longestWindow: Int64 = 1 << 20

    /// How many of so many connections are of use: where a rate is to be kept, each brings its window over and above.
    package func connections(of count: Int) -> Int {
        rate.map { Int(max(1, min(Int64(count), $0 / Self.leastEach))) } ?? count
    }

    /// Bytes per second.
    private static let leastEach: Int64 = 1 << 20

    /// A transfer begins, which brings so many bytes at once.
    /// - Returns: whether it may; then they are counted. Not where too many have come already.
    package func reserve(_ bytes: Int64) -> Bool {
        let now = line.nanoseconds()
        return withBuckets { $0.reserve(bytes, &$1, at: now) }
    }

    /// So many bytes have come in, though they were too early; fewer than were reserved, where negative.
    package func owe(_ bytes: Int64) { withBuckets { $0.owe(bytes, &$1) } }

    /// - Returns: how many of so many bytes that have come in are in time.
    package func take(_ wanted: Int64) -> Int64 {
        let now = line.nanoseconds()
        line.lookWhetherPlaying(at: now)
        return withBuckets { $0.take(wanted, &$1, at: now) }
    }

    private func withBuckets<Value>(_ body: (inout SharedBuckets, inout TokenBucket) -> Value) -> Value {
        bucket.withLock { own in line.shared.withLock { shared in body(&shared, &own) } }
    }
}
