import HTTPModel
import Synchronization

/// A token bucket: this many bytes per second, plus what was left unused in the last quarter of a second.
struct TokenBucket: Sendable {
    /// Bytes per second; nil for no limit.
    private(set) var rate: Int64?
    private var tokens: Double = 0
    private var filledAt: UInt64 = 0

    /// How much unused time accumulates, in seconds.
    static let memory = 0.25

    init(rate: Int64? = nil) { self.rate = rate }

    mutating func setRate(_ rate: Int64?, at now: UInt64) {
        fill(at: now)
        self.rate = rate
        if let rate { tokens = min(tokens, Self.most(at: rate)) }
    }

    /// How many of the wanted bytes may be taken now.
    /// - Parameter now: nanoseconds of a monotonic clock.
    mutating func available(_ wanted: Int64, at now: UInt64) -> Int64 {
        guard rate != nil else { return wanted }
        fill(at: now)
        return min(wanted, max(0, Int64(tokens)))
    }

    /// Whether more bytes have arrived than the rate allows so far.
    mutating func isInDebt(at now: UInt64) -> Bool {
        guard rate != nil else { return false }
        fill(at: now)
        return tokens < 0
    }

    /// Takes bytes that have arrived, even if they came too early: later ones wait for that.
    mutating func take(_ bytes: Int64) {
        if rate != nil { tokens -= Double(bytes) }
    }

    private mutating func fill(at now: UInt64) {
        defer { filledAt = max(filledAt, now) }
        guard let rate, filledAt > 0, now > filledAt else { return }
        tokens = min(Self.most(at: rate), tokens + Double(now - filledAt) / 1e9 * Double(rate))
    }

    /// At the lowest rates, still one byte.
    private static func most(at rate: Int64) -> Double { max(1, Double(rate) * memory) }
}

/// The rate that all downloads share. Can be used from any thread.
///
/// Playback goes first: while readers receive bytes, all downloads together get only a trickle. Without it, an origin
/// that sends bytes to readers slowly would stop downloads altogether.
package final class DownloadLine: Sendable {
    /// The rate of all downloads together while readers receive bytes, in bytes per second.
    package static let trickle: Int64 = 64 << 10

    fileprivate let shared = Mutex(Buckets())
    fileprivate let nanoseconds: @Sendable () -> UInt64
    private let isPlaying: @Sendable () -> Bool

    /// - Parameters:
    ///   - nanoseconds: a monotonic clock.
    ///   - isPlaying: whether readers receive bytes now. Called with no lock held.
    package init(nanoseconds: @escaping @Sendable () -> UInt64, isPlaying: @escaping @Sendable () -> Bool) {
        (self.nanoseconds, self.isPlaying) = (nanoseconds, isPlaying)
    }

    /// - Parameter rate: bytes per second; nil for no limit.
    package func limit(to rate: Int64?) {
        let now = nanoseconds()
        shared.withLock { $0.all.setRate(rate, at: now) }
    }

    /// Limits the downloads that obey the schedule.
    /// - Parameter rate: bytes per second; nil for no limit.
    package func limitScheduled(to rate: Int64?) {
        let now = nanoseconds()
        shared.withLock { $0.scheduled.setRate(rate, at: now) }
    }

    fileprivate func lookWhetherPlaying(at now: UInt64) {
        guard shared.withLock({ $0.mustLook(at: now) }) else { return }
        let isPlaying = isPlaying()
        shared.withLock { $0.isPlaying = isPlaying }
    }
}

extension DownloadLine {
    /// The buckets that all downloads share. A value.
    fileprivate struct Buckets {
        var all = TokenBucket()
        /// Of the downloads that obey the schedule.
        var scheduled = TokenBucket()
        /// In use while readers receive bytes.
        private var beside = TokenBucket(rate: trickle)
        var isPlaying = false
        private var lookedAt: UInt64?

        /// How long an answer of `isPlaying` is used.
        private static let lookNanoseconds: UInt64 = 50_000_000

        /// - Returns: whether to ask `isPlaying` again.
        mutating func mustLook(at now: UInt64) -> Bool {
            if let lookedAt, now < lookedAt +| Self.lookNanoseconds { return false }
            lookedAt = now
            return true
        }

        mutating func owe(_ bytes: Int64, _ own: inout FillPace.Bucket) {
            own.bucket.take(bytes)
            all.take(bytes)
            if own.isScheduled { scheduled.take(bytes) }
            if isPlaying { beside.take(bytes) }
        }

        /// - Returns: whether the buckets have no debt; if so, the bytes are taken.
        mutating func reserve(_ bytes: Int64, _ own: inout FillPace.Bucket, at now: UInt64) -> Bool {
            guard !own.bucket.isInDebt(at: now), !all.isInDebt(at: now),
                !own.isScheduled || !scheduled.isInDebt(at: now), !isPlaying || !beside.isInDebt(at: now)
            else { return false }
            owe(bytes, &own)
            return true
        }

        /// - Returns: how many of the wanted bytes are granted; they are taken.
        mutating func take(_ wanted: Int64, _ own: inout FillPace.Bucket, at now: UInt64) -> Int64 {
            var granted = all.available(own.bucket.available(wanted, at: now), at: now)
            if own.isScheduled { granted = scheduled.available(granted, at: now) }
            if isPlaying { granted = beside.available(granted, at: now) }
            owe(granted, &own)
            return granted
        }
    }
}

/// The pace of one download, and the count of the bytes that were fetched for it. Can be used from any thread. Lock
/// order: its own bucket before the shared ones; no calls are made under either lock.
package final class FillPace: Sendable {
    private let line: DownloadLine
    private let bucket: Mutex<Bucket>
    private let count = Atomic<Int64>(0)

    fileprivate struct Bucket {
        var bucket: TokenBucket
        /// Whether the schedule's rate applies too.
        let isScheduled: Bool
    }

    /// - Parameters:
    ///   - rate: bytes per second; nil for no limit of its own.
    ///   - isScheduled: whether the schedule's rate applies.
    package init(_ line: DownloadLine, rate: Int64?, isScheduled: Bool = true) {
        self.line = line
        bucket = Mutex(Bucket(bucket: TokenBucket(rate: rate), isScheduled: isScheduled))
    }

    package func limit(to rate: Int64?) {
        let now = line.nanoseconds()
        bucket.withLock { $0.bucket.setRate(rate, at: now) }
    }

    /// The lowest of all its limits in bytes per second; nil for none.
    var rate: Int64? {
        let (own, isScheduled) = bucket.withLock { ($0.bucket.rate, $0.isScheduled) }
        let (all, scheduled) = line.shared.withLock { ($0.all.rate, $0.scheduled.rate) }
        return [own, all, isScheduled ? scheduled : nil].compactMap { $0 }.min()
    }

    /// The bytes that transfers delivered for this download: not those that were cached before, nor those that a
    /// player's transfer delivered.
    package var fetched: Int64 { count.load(ordering: .relaxed) }

    /// Counts bytes that a transfer delivered for this download.
    func deliver(_ bytes: Int64) { count.wrappingAdd(bytes, ordering: .relaxed) }

    /// How far a transfer may run ahead of the pace, in bytes: a small part of what comes in a second.
    var window: Int64 {
        rate.map { min(max($0 / 16, ReadAheadWindow.first), Self.longestWindow) } ?? Self.longestWindow
    }

    private static let longestWindow: Int64 = 1 << 20

    /// How many of the wanted connections are useful: with a limit on the rate, each one exceeds it by its window.
    package func connections(of count: Int) -> Int {
        rate.map { Int(max(1, min(Int64(count), $0 / Self.leastEach))) } ?? count
    }

    /// In bytes per second.
    private static let leastEach: Int64 = 1 << 20

    /// Asks whether a transfer may begin, which delivers this many bytes at once.
    /// - Returns: true if it may; then the bytes are counted. False while too many have arrived already.
    package func reserve(_ bytes: Int64) -> Bool {
        let now = line.nanoseconds()
        return withBuckets { $0.reserve(bytes, &$1, at: now) }
    }

    /// Counts bytes that have arrived too early; a negative count gives back reserved ones.
    package func owe(_ bytes: Int64) { withBuckets { $0.owe(bytes, &$1) } }

    /// - Returns: how many of the bytes that have arrived are within the pace.
    package func take(_ wanted: Int64) -> Int64 {
        let now = line.nanoseconds()
        line.lookWhetherPlaying(at: now)
        return withBuckets { $0.take(wanted, &$1, at: now) }
    }

    private func withBuckets<Value>(_ body: (inout DownloadLine.Buckets, inout Bucket) -> Value) -> Value {
        bucket.withLock { own in line.shared.withLock { shared in body(&shared, &own) } }
    }
}
