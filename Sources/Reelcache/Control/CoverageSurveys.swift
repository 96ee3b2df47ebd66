import CachePolicy
@preconcurrency import Dispatch
import EventIO
import HTTPModel
import Synchronization

/// What is cached of presentations, for those who ask again and again. From any thread.
///
/// Finding it out takes a query for each segment, which takes seconds for tens of thousands of them. So one is found out
/// at a time, once for all who ask for it meanwhile, and kept for ten times as long as that took: however many pages show
/// a film, it takes no more than a tenth of one thread's time, and what is quickly found out is always new.
final class CoverageSurveys: Sendable {
    /// What was found out, or why it could not be.
    typealias Outcome = Result<[CachedRendition], any Error>

    private struct Survey {
        let renditions: [CachedRendition]
        /// When it is too old; monotonic, in nanoseconds.
        let end: UInt64
    }

    private struct Order {
        let key: CacheKey
        let find: @Sendable () throws -> [CachedRendition]
    }

    private struct State {
        var known: [CacheKey: Survey] = [:]
        /// Those who wait for each survey that is under way or in the queue.
        var waiting: [CacheKey: [@Sendable (Outcome) -> Void]] = [:]
        var queue: [Order] = []
        var isFinding = false
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> UInt64
    private let later: Later

    /// Does something after so many nanoseconds.
    typealias Later = @Sendable (UInt64, @escaping @Sendable () -> Void) -> Void

    private static let mostKept = 16
    private static let lifetimes: UInt64 = 10

    convenience init() {
        self.init(now: MonotonicClock.nanoseconds) { nanoseconds, act in
            let span = DispatchTimeInterval.nanoseconds(Int(clamping: nanoseconds))
            DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + span, execute: act)
        }
    }

    /// - Parameters:
    ///   - now: a monotonic clock, in nanoseconds.
    ///   - later: called once for each survey, to drop it when it is too old: that of a long film takes memory,
    ///     and nobody may ever ask again.
    init(now: @escaping @Sendable () -> UInt64, later: @escaping Later) { (self.now, self.later) = (now, later) }

    /// How many surveys are kept.
    var keptCount: Int { state.withLock { $0.known.count } }

    private func dropOld() {
        let time = now()
        // Released outside of the lock: a survey of a long film takes a while to free.
        let old = state.withLock { state in
            let all = state.known
            state.known = all.filter { $0.value.end > time }
            return all
        }
        withExtendedLifetime(old) {}
    }

    /// - Parameters:
    ///   - perform: runs blocking work on another thread.
    ///   - find: finds the renditions; blocks.
    ///   - then: called with them, on any thread; at once, if they are known.
    func renditions(
        of key: CacheKey, perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        find: @escaping @Sendable () throws -> [CachedRendition], then: @escaping @Sendable (Outcome) -> Void
    ) {
        let time = now()
        let (known, begins) = state.withLock { state -> (Survey?, Bool) in
            state.known = state.known.filter { $0.value.end > time }
            if let known = state.known[key] { return (known, false) }
            guard state.waiting[key] == nil else {
                state.waiting[key]?.append(then)
                return (nil, false)
            }
            state.waiting[key] = [then]
            state.queue.append(Order(key: key, find: find))
            defer { state.isFinding = true }
            return (nil, !state.isFinding)
        }
        if let known { return then(.success(known.renditions)) }
        if begins { perform { [self] in findNext(perform) } }
    }

    /// Finds out the next one of the queue. Others' work may come before the one after that.
    private func findNext(_ perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        guard let order = state.withLock({ $0.queue.isEmpty ? nil : $0.queue.removeFirst() }) else { return }
        let began = now(), outcome = Outcome { try order.find() }, ended = now()
        let span = (ended -| began) &* Self.lifetimes
        let (waiting, isLast) = state.withLock { state in
            if case .success(let renditions) = outcome {
                state.known[order.key] = Survey(renditions: renditions, end: ended &+ span)
                if state.known.count > Self.mostKept, let oldest = state.known.min(by: { $0.value.end < $1.value.end })
                {
                    state.known[oldest.key] = nil
                }
            }
            state.isFinding = !state.queue.isEmpty
            return (state.waiting.removeValue(forKey: order.key) ?? [], state.queue.isEmpty)
        }
        for then in waiting { then(outcome) }
        later(span) { [weak self] in self?.dropOld() }
        if !isLast { perform { [self] in findNext(perform) } }
    }
}
