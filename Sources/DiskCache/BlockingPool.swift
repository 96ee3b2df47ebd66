import CLinux
import DequeModule
import Glibc
import Synchronization

/// A few threads for work that waits for the disk: large writes, look-ups, cold reads, verification. They stay, as
/// starting a thread takes longer than most of this work.
///
/// `@unchecked Sendable` because the queue is touched under the mutex only, and mutex and condition are made for
/// several threads.
final class BlockingPool: @unchecked Sendable {
    private var queue: Deque<@Sendable () -> Void> = []
    private var isStopped = false
    private var threads: [pthread_t] = []
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let hasWork = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    private var threadsToStart: Int
    private let name: String

    /// - Parameter name: what the threads are called in the system's lists.
    init(_ name: String, threads: Int) {
        self.name = name
        threadsToStart = threads
        pthread_mutex_init(lock, nil)
        pthread_cond_init(hasWork, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(hasWork)
        lock.deallocate()
        hasWork.deallocate()
    }

    /// Runs `work` on one of the threads.
    /// - Returns: whether it will run; after `stop` it does not.
    @discardableResult
    func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        pthread_mutex_lock(lock)
        let runs = !isStopped
        if runs {
            queue.append(work)
            startThreads()
        }
        pthread_mutex_unlock(lock)
        pthread_cond_signal(hasWork)
        return runs
    }

    /// Starts the threads before there is work, so that the first does not wait for them.
    func start() {
        pthread_mutex_lock(lock)
        if !isStopped { startThreads() }
        pthread_mutex_unlock(lock)
    }

    /// Waits until all is done that was asked for before, and ends the threads. Not to be called on one of them; later
    /// calls do nothing.
    func stop() {
        pthread_mutex_lock(lock)
        isStopped = true
        let threads = threads
        self.threads = []
        pthread_mutex_unlock(lock)
        pthread_cond_broadcast(hasWork)
        for thread in threads { pthread_join(thread, nil) }
    }

    private func startThreads() {
        for _ in 0..<threadsToStart { startThread() }
        threadsToStart = 0
    }

    private func startThread() {
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                let pool = Unmanaged<BlockingPool>.fromOpaque(context!).takeRetainedValue()
                reel_name_thread(pool.name)
                pool.work()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
        threads.append(thread)
    }

    private func work() {
        while let item = take() { item() }
    }

    private func take() -> (@Sendable () -> Void)? {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while queue.isEmpty {
            if isStopped { return nil }
            pthread_cond_wait(hasWork, lock)
        }
        return queue.removeFirst()
    }
}
