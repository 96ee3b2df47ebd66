import Activity
import DiskCache
@preconcurrency import Dispatch
import EventIO
import HTTPModel
import Logging
import Synchronization

/// Keeps the history of the counters: takes a sample where each period of ten seconds ends, and stores the history
/// once a minute. Safe to use from any thread.
///
/// If the history cannot be stored, it is kept in memory, and stored when that works again. What cannot be read at the
/// start is set aside.
final class HistoryRecorder: Sendable {
    private struct State {
        var history: History
        /// Counts the samples.
        var turn: UInt64 = 0
        /// The times of the last sample and of the last save, by `MonotonicClock`.
        var lastSample = MonotonicClock.nanoseconds()
        var lastSave = MonotonicClock.nanoseconds()
    }

    private let state: Mutex<State>
    private let file: HistoryFile
    private let isKept: Bool
    private let store: CacheStore
    private let metrics: ProxyMetrics
    private let logger: Logger
    private let now: @Sendable () -> Int64
    private let queue = DispatchQueue(label: "reelcache.history", qos: .utility)
    private let timer: any DispatchSourceTimer
    /// Whether the history is being stored. Changed on `queue` only.
    private let isStored = Atomic(true)

    /// The time between two samples: the shortest period.
    private static let interval = HistorySpan.hour.periodSeconds
    /// The time between two saves, in nanoseconds: at most a minute, with the tick that notices it.
    private static let saveInterval: UInt64 = 49_000_000_000

    /// Reads the stored history. Blocks.
    /// - Parameters:
    ///   - directory: the cache directory.
    ///   - isKept: false for an engine of a command: its counters are no part of the history.
    ///   - now: the time in seconds since 1970.
    init(
        in directory: String, isKept: Bool, store: CacheStore, metrics: ProxyMetrics, logger: Logger,
        now: @escaping @Sendable () -> Int64
    ) {
        file = HistoryFile(in: directory)
        (self.store, self.metrics, self.logger, self.now) = (store, metrics, logger, now)
        self.isKept = isKept
        state = Mutex(State(history: History(isKept ? Self.read(file, logger) : [:])))
        timer = DispatchSource.makeTimerSource(queue: queue)
        // A source that was never resumed must not be released.
        timer.schedule(deadline: .distantFuture)
        timer.resume()
    }

    private static func read(_ file: HistoryFile, _ logger: Logger) -> [Int: HistoryPeriod] {
        do throws(HistoryFile.Fault) {
            let (periods, damaged) = try file.read()
            if damaged > 0 {
                logger.warning("the history in \(file.path) has \(damaged) damaged periods, which are left out")
            }
            return periods
        } catch {
            var outcome = "it is now \(file.path).damaged, and a new history begins"
            do throws(HistoryFile.Fault) { try file.setAside() } catch {
                outcome = "remove it, so that a new history can be stored"
            }
            logger.error("the history in \(file.path) cannot be read (\(error.reason)): \(outcome)")
            return [:]
        }
    }

    /// Starts taking samples.
    func start() {
        guard isKept else { return }
        measure()
        timer.setEventHandler { [weak self] in self?.tick() }
        scheduleTick()
    }

    /// Takes a last sample and stores the history. Blocks.
    func stop() {
        queue.sync {
            timer.cancel()
            guard isKept else { return }
            sample()
            save()
        }
    }

    /// What was counted over a span of time until this moment.
    func report(_ span: HistorySpan) -> HistoryReport {
        sample()
        let history = state.withLock { $0.history }
        return HistoryReport(history, span, now: now())
    }

    // MARK: On the queue

    private func tick() {
        sample()
        let isSaveDue = state.withLock { state in
            let instant = MonotonicClock.nanoseconds()
            guard instant -| state.lastSave >= Self.saveInterval else { return false }
            state.lastSave = instant
            return true
        }
        if isSaveDue {
            save()
            measure()
        }
        scheduleTick()
    }

    /// Waits until the next period begins.
    private func scheduleTick() {
        // no trap: the remainder is less than the interval
        let seconds = Self.interval - max(0, now()) % Self.interval
        timer.schedule(deadline: .now() + .seconds(Int(seconds)), leeway: .milliseconds(500))
    }

    private func save() {
        let (changed, all) = state.withLock { ($0.history.takeChanged(), $0.history.slots) }
        guard !changed.isEmpty else { return }
        do throws(HistoryFile.Fault) {
            try file.write(changed) { all }
            isStored.store(true, ordering: .relaxed)
        } catch {
            state.withLock { $0.history.unsaved(changed.keys) }
            metrics.errors.add("history")
            guard isStored.exchange(false, ordering: .relaxed) else { return }
            logger.error(
                "the history cannot be stored in \(file.path) (\(error.reason)): it is kept in memory, and stored when that works again"
            )
        }
    }

    /// Measures what takes too long to measure for each reader of the numbers.
    private func measure() {
        do throws(StoreError) { try store.measure() } catch { logger.debug("cannot measure the cache: \(error)") }
    }

    // MARK: On any thread

    private func sample() {
        let turn = state.withLock { $0.turn }
        let totals = HistoryCounts(metrics), time = now()
        state.withLock { state in
            // Another was taken meanwhile, and perhaps of greater totals: what they count must not be counted twice.
            guard state.turn == turn else { return }
            state.turn &+= 1
            let instant = MonotonicClock.nanoseconds()
            let elapsed = Int64(clamping: (instant -| state.lastSample) / 1_000_000)
            // The rest of a millisecond belongs to the next sample.
            state.lastSample = instant -| (instant -| state.lastSample) % 1_000_000
            state.history.add(
                HistorySample(
                    time: time, elapsed: elapsed, totals: totals, size: store.ledger.size, limit: store.ledger.limit))
        }
    }
}
