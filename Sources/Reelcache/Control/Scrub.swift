import ControlAPI
import DiskCache
import EventIO
import HTTPTransport
import Synchronization

/// Permits one scrub at a time, because it occupies the disk and, for a long time, a thread that others need.
/// Shared by all loops of a proxy.
final class ScrubTurn: Sendable {
    private let isTaken = Mutex(false)

    init() {}

    /// - Returns: whether the caller may scrub; it then has to call `end`.
    func begin() -> Bool {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
    }

    func end() { isTaken.withLock { $0 = false } }
}

/// Progress reports from the scrubbing thread to the loop: only the latest of several, and only a few per second.
final class ScrubNews: Sendable {
    private let state = Mutex(State())

    private struct State {
        var isWanted = true
        var progress: ScrubProgress?
        /// When progress was last reported, on the monotonic clock.
        var reportedAt: UInt64?
        /// Whether the loop has been woken to take the news.
        var isDue = false
        var end: [UInt8]?
    }

    enum Step: Equatable {
        case line([UInt8])
        case wait
        case end
    }

    private static let intervalNanoseconds: UInt64 = 200_000_000

    init() {}

    /// - Parameter now: on the monotonic clock, in nanoseconds.
    /// - Returns: whether the client is still there.
    func note(_ progress: ScrubProgress, now: UInt64 = MonotonicClock.nanoseconds(), _ wake: () -> Void) -> Bool {
        let (isWanted, isNews) = state.withLock { state in
            state.progress = progress
            // no trap: a clock that counts from the start of the machine
            guard state.isWanted, !state.isDue, state.reportedAt.map({ now >= $0 + Self.intervalNanoseconds }) ?? true
            else { return (state.isWanted, false) }
            (state.reportedAt, state.isDue) = (now, true)
            return (true, true)
        }
        if isNews { wake() }
        return isWanted
    }

    func end(_ line: [UInt8], _ wake: () -> Void) {
        state.withLock { state in
            state.progress = nil
            state.end = line
        }
        wake()
    }

    func stop() { state.withLock { $0.isWanted = false } }

    /// What to send next. The last line is returned once.
    func take(isOver: inout Bool) -> Step {
        if isOver { return .end }
        let (progress, end) = state.withLock { state in
            defer { if state.isDue { (state.progress, state.isDue) = (nil, false) } }
            return (state.isDue ? state.progress : nil, state.end)
        }
        if let end {
            isOver = true
            return .line(end)
        }
        guard let progress, let line = try? ControlJSON.line(progress) else { return .wait }
        return .line(line)
    }
}

final class ScrubSource: BodySource {
    private let news: ScrubNews
    private var line = BytesSource([])
    private var isOver = false

    private init(_ news: ScrubNews) { self.news = news }

    /// Scrubs the cache, and responds with its progress.
    /// - Parameter turn: taken; ended here.
    static func respond(to exchange: Exchange, repairs: Bool, _ store: CacheStore, _ turn: ScrubTurn) {
        let news = ScrubNews()
        var response = Response(200, length: nil)
        response.describeJSON()
        let bound = LoopBound(exchange, on: exchange.loop)
        store.performLong {
            let wake: @Sendable () -> Void = { bound.post { $0.resume() } }
            let last: [UInt8]
            do {
                last = try ControlJSON.line(store.scrub(repairs: repairs) { news.note($0, wake) })
            } catch {
                last = ControlError(error).line
            }
            // Must come before the last line: the client may send the next request at once.
            turn.end()
            news.end(last, wake)
        }
        exchange.respond(response, body: ScrubSource(news))
    }

    func next(limit: Int) -> BodyStep {
        if case .span(let span) = line.next(limit: limit) { return .span(span) }
        switch news.take(isOver: &isOver) {
        case .line(let bytes):
            line = BytesSource(bytes)
            return line.next(limit: limit)
        case .wait: return .wait
        case .end: return .end
        }
    }

    func finish() { news.stop() }
}
