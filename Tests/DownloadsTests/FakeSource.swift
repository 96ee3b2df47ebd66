import CachePolicy
import Downloads
import Synchronization

/// Begins transfers that do what a test says.
final class FakeSource: DownloadSource {
    private struct State {
        var isOffline = false
        var transfers: [FakeTransfer] = []
        var limits: [Int64?] = []
        var scheduledLimits: [Int64?] = []
        var begins: (@Sendable (FakeTransfer) -> Void)?
    }

    private let state = Mutex(State())
    /// How many transfers have told the manager that they have ended.
    let ends = FakeTransfer.Counter()

    var isOffline: Bool {
        get { state.withLock { $0.isOffline } }
        set { state.withLock { $0.isOffline = newValue } }
    }

    func begin(_ order: DownloadOrder, onEnd end: @escaping @Sendable (DownloadEnd) -> Void) -> any RunningDownload {
        let transfer = FakeTransfer(order, ends, end)
        let begins = state.withLock { state in
            state.transfers.append(transfer)
            return state.begins
        }
        begins?(transfer)
        return transfer
    }

    func limitAll(to rate: Int64?) { state.withLock { $0.limits.append(rate) } }

    func limitScheduled(to rate: Int64?) { state.withLock { $0.scheduledLimits.append(rate) } }

    /// What is done at each beginning, before it returns.
    func onBegin(_ body: @escaping @Sendable (FakeTransfer) -> Void) { state.withLock { $0.begins = body } }

    /// All that were ever begun, in order.
    var transfers: [FakeTransfer] { state.withLock { $0.transfers } }
    /// Those that neither ended nor were stopped.
    var running: [FakeTransfer] { transfers.filter(\.isRunning) }
    var limits: [Int64?] { state.withLock { $0.limits } }
    var scheduledLimits: [Int64?] { state.withLock { $0.scheduledLimits } }
}

/// A transfer of which a test says how far it is and how it ends.
final class FakeTransfer: RunningDownload {
    private struct State {
        var progress = DownloadProgress()
        var isRunning = true
        var isStopped = false
        var fetched: Int64 = 0
        /// What arrives just before it stops.
        var fetchedAtStop: Int64 = 0
        var limit: Int64??
    }

    let order: DownloadOrder
    private let onEnd: @Sendable (DownloadEnd) -> Void
    private let ends: Counter
    private let state = Mutex(State())

    /// Counts what was told the manager.
    final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func increment() { count.withLock { $0 += 1 } }
    }

    init(_ order: DownloadOrder, _ ends: Counter, _ end: @escaping @Sendable (DownloadEnd) -> Void) {
        (self.order, self.ends, onEnd) = (order, ends, end)
    }

    /// The last part of its URL.
    var name: String { String(order.url.pathAndQuery.dropFirst()) }

    var progress: DownloadProgress { state.withLock { $0.progress } }
    var fetched: Int64 { state.withLock { $0.fetched } }
    var isRunning: Bool { state.withLock { $0.isRunning } }
    var isStopped: Bool { state.withLock { $0.isStopped } }
    /// What its limit was changed to; the outer nil where it was not.
    var limit: Int64?? { state.withLock { $0.limit } }

    func limit(to rate: Int64?) { state.withLock { $0.limit = .some(rate) } }
    func stop() {
        state.withLock { state in
            (state.isRunning, state.isStopped) = (false, true)
            state.fetched += state.fetchedAtStop
        }
    }

    /// - Parameter late: further bytes that arrive just before it stops.
    func fetches(_ bytes: Int64, late: Int64 = 0) {
        state.withLock { state in
            state.fetched += bytes
            state.fetchedAtStop = late
        }
    }

    func has(_ bytes: Int64, of total: Int64? = nil, fileName: String? = nil) {
        state.withLock { ($0.progress.bytes, $0.progress.total, $0.progress.fileName) = (bytes, total, fileName) }
    }

    func has(_ progress: DownloadProgress) { state.withLock { $0.progress = progress } }

    func complete(_ bytes: Int64 = 100) {
        has(bytes, of: bytes)
        end(.completed(progress))
    }

    func fail(_ kind: DownloadFault.Kind, _ message: String = "it broke", lacksRoom: Bool = false) {
        let unreachable = kind == .network ? order.url.host : nil
        end(.failed(DownloadFault(kind, message, unreachable: unreachable, lacksRoom: lacksRoom), progress))
    }

    /// Also after it was stopped, as an end may be on its way just then.
    func end(_ end: DownloadEnd) {
        state.withLock { $0.isRunning = false }
        onEnd(end)
        ends.increment()
    }
}
