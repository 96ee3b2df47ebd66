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
        defer { filledAt = now }
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

    private let state: Mutex<State>
    private let nanoseconds: @Sendable () -> UInt64
    private let isPlaying: @Sendable () -> Bool

    private struct State {
        var all = TokenBucket()
        var beside = TokenBucket(rate: DownloadLine.trickle)
        var isPlaying = false
        var lookedAt: UInt64?
    }

    /// Whether bytes come in for readers is looked at so often.
    private static let lookNanoseconds: UInt64 = 50_000_000

    /// - Parameters:
    ///   - nanoseconds: a clock that never goes back.
    ///   - isPlaying: whether bytes come in for readers now.
    package init(nanoseconds: @escaping @Sendable () -> UInt64, isPlaying: @escaping @Sendable () -> Bool) {
        (self.nanoseconds, self.isPlaying) = (nanoseconds, isPlaying)
        state = Mutex(State())
    }

    package convenience init(of filler: CacheFiller) {
        self.init(nanoseconds: filler.settings.clock) { [filler] in filler.isBeingRead }
    }

    /// - Parameter rate: bytes per second; nil for no limit.
    package func limit(to rate: Int64?) {
        let now = nanoseconds()
        state.withLock { $0.all.setRate(rate, at: now) }
    }

    fileprivate func owe(_ bytes: Int64, _ own: inout TokenBucket) {
        state.withLock { state in
            own.take(bytes)
            state.all.take(bytes)
            if state.isPlaying { state.beside.take(bytes) }
        }
    }

    fileprivate func reserve(_ bytes: Int64, _ own: inout TokenBucket) -> Bool {
        let now = nanoseconds()
        return state.withLock { state in
            guard !own.isInDebt(at: now), !state.all.isInDebt(at: now),
                !state.isPlaying || !state.beside.isInDebt(at: now)
            else { return false }
            own.take(bytes)
            state.all.take(bytes)
            if state.isPlaying { state.beside.take(bytes) }
            return true
        }
    }

    fileprivate func take(_ wanted: Int64, _ own: inout TokenBucket) -> Int64 {
        let now = nanoseconds()
        let mustLook = state.withLock { state in
            if let lookedAt = state.lookedAt, now < lookedAt + Self.lookNanoseconds { return false }
            state.lookedAt = now
            return true
        }
        let isPlaying = mustLook ? self.isPlaying() : nil
        return state.withLock { state in
            if let isPlaying { state.isPlaying = isPlaying }
            var granted = state.all.available(own.available(wanted, at: now), at: now)
            if state.isPlaying { granted = state.beside.available(granted, at: now) }
            own.take(granted)
            state.all.take(granted)
            if state.isPlaying { state.beside.take(granted) }
            return granted
        }
    }
}

/// How quickly one download goes. From any thread.
package final class FillPace: Sendable {
    private let line: DownloadLine
    private let bucket: Mutex<TokenBucket>

    /// - Parameter rate: bytes per second; nil for no limit of its own.
    package init(_ line: DownloadLine, rate: Int64?) {
        self.line = line
        bucket = Mutex(TokenBucket(rate: rate))
    }

    package func limit(to rate: Int64?) { bucket.withLock { $0.setRate(rate, at: line.now) } }

    /// Bytes per second by both limits; nil for none.
    var rate: Int64? { [bucket.withLock { $0.rate }, line.rate].compactMap { $0 }.min() }

    /// How far past what is in time a transfer goes at most, in bytes: what comes over and above is a small part of a
    /// second's worth.
    var window: Int64 {
        rate.map { min(max($0 / 16, ReadAheadWindow.first), Self.longestWindow) } ?? Self.longestWindow
    }

    private static let longestWindow: Int64 = 1 << 20

    /// How many of so many connections are of use: where a rate is to be kept, each brings its window over and above.
    func connections(of count: Int) -> Int { rate.map { Int(max(1, min(Int64(count), $0 / Self.leastEach))) } ?? count }

    /// Bytes per second.
    private static let leastEach: Int64 = 1 << 20

    /// A transfer begins, which brings so many bytes at once.
    /// - Returns: whether it may; then they are counted. Not where too many have come already.
    package func reserve(_ bytes: Int64) -> Bool { bucket.withLock { line.reserve(bytes, &$0) } }

    /// So many bytes have come in, though they were too early; fewer than were reserved, where negative.
    package func owe(_ bytes: Int64) { bucket.withLock { line.owe(bytes, &$0) } }

    /// - Returns: how many of so many bytes that have come in are in time.
    package func take(_ wanted: Int64) -> Int64 { bucket.withLock { line.take(wanted, &$0) } }
}

extension DownloadLine {
    fileprivate var rate: Int64? { state.withLock { $0.all.rate } }
    fileprivate var now: UInt64 { nanoseconds() }
}
