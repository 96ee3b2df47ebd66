import CLinux
import DequeModule
@preconcurrency import Dispatch
import Glibc
import HTTPModel
import Synchronization

/// Threads for work that waits for the disk: large writes, look-ups, cold reads, verification. They keep running,
/// because starting a thread takes longer than most of this work, and may fail.
final class BlockingPool: Sendable {
    private let state = Mutex(State())
    /// Counts the queued items, and once more for each thread that has to end.
    private let work = DispatchSemaphore(value: 0)
    private let name: String
    private let threads: Int
    private let isJoined: Bool
    /// Takes the place of the threads in a simulation.
    private let driver: (any StoreDriver)?

    private struct Item {
        let work: @Sendable () -> Void
        let party: String?
    }

    private struct State {
        var queue: Deque<Item> = []
        /// What waits of each party of which an item is queued or runs.
        var later: [String: Deque<Item>] = [:]
        var isStopped = false
        var threads: [pthread_t] = []
    }

    /// - Parameters:
    ///   - name: the name of the threads in the system's lists.
    ///   - isJoined: whether `stop` finishes the work. If not, it drops what is queued, and what runs is left alone.
    init(_ name: String, threads: Int, isJoined: Bool = true, _ driver: (any StoreDriver)? = nil) {
        (self.name, self.threads, self.isJoined, self.driver) = (name, threads, isJoined, driver)
    }

    /// Runs `item` on one of the threads, once they are started.
    /// - Parameter party: for whom, if a party is to have one thread at most; parties take turns.
    /// - Returns: whether it will run; false after `stop`.
    @discardableResult
    func run(for party: String? = nil, _ item: @escaping @Sendable () -> Void) -> Bool {
        if let driver {
            guard state.withLock({ !$0.isStopped }) else { return false }
            driver.run(item, on: .pool(name))
            return true
        }
        let (runs, isNext) = state.withLock { state in
            guard !state.isStopped else { return (false, false) }
            let item = Item(work: item, party: party)
            if let party, state.later[party]?.append(item) != nil { return (true, false) }
            if let party { state.later[party] = [] }
            state.queue.append(item)
            return (true, true)
        }
        if isNext { work.signal() }
        return runs
    }

    private func ended(_ item: Item) {
        guard let party = item.party else { return }
        let isNext = state.withLock { state in
            let next = state.later[party]?.popFirst()
            if let next { state.queue.append(next) } else { state.later[party] = nil }
            return next != nil
        }
        if isNext { work.signal() }
    }

    /// Starts the threads, once.
    /// - Throws: if the system refuses one; `stop` ends the others.
    func start() throws(StoreError) {
        guard driver == nil else { return }
        for _ in 0..<threads {
            let thread = try startThread()
            state.withLock { $0.threads.append(thread) }
        }
    }

    /// Finishes all queued items and ends the threads, unless the pool is not joined. Not to be called on one of them.
    /// Further calls do nothing.
    func stop() {
        let (threads, dropped) = state.withLock { state in
            defer { state.threads = [] }
            state.isStopped = true
            guard !isJoined else { return (state.threads, State?.none) }
            defer { (state.queue, state.later) = ([], [:]) }
            return (state.threads, state)
        }
        if isJoined { driver?.finish(.pool(name)) }
        for _ in threads { work.signal() }
        for thread in threads { if isJoined { pthread_join(thread, nil) } else { pthread_detach(thread) } }
        // Released here, outside the lock.
        _ = dropped
    }

    private func startThread() throws(StoreError) -> pthread_t {
        var thread = pthread_t()
        let pool = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { context in
                let pool = Unmanaged<BlockingPool>.fromOpaque(context!).takeRetainedValue()
                reel_name_thread(pool.name)
                while let item = pool.take() {
                    item.work()
                    pool.ended(item)
                }
                return nil
            }, pool.toOpaque())
        guard status == 0 else {
            pool.release()
            throw .system(operation: "start a thread for", path: name, code: status)
        }
        return thread
    }

    /// - Returns: nil once the pool is stopped and the queue is empty.
    private func take() -> Item? {
        work.wait()
        return state.withLock { $0.queue.popFirst() }
    }
}
