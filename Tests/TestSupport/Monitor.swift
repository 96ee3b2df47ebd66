import Foundation

/// What a test waited for did not happen in time: the test has failed.
package struct DeadlinePassed: Error, CustomStringConvertible {
    /// What was waited for.
    package let what: String
    /// What was there instead, where the waiter knows.
    package var instead = ""

    package init(what: String, instead: String = "") {
        (self.what, self.instead) = (what, instead)
    }

    package var description: String { "waited in vain for \(what)" + (instead.isEmpty ? "" : "; instead:\n\(instead)") }
}

extension Duration {
    /// How long a test waits for what must happen: so long that only a fault lets it pass, also on a loaded machine.
    package static let patience = Duration.seconds(180)
}

/// State that threads share and wait upon: a mutex, a condition variable and what they guard.
///
/// Every `update` wakes the waiters, and each looks again for itself, so no wake-up is lost and nothing polls.
package final class Monitor<State: Sendable>: @unchecked Sendable {
    // @unchecked because `state` is touched only while `mutex` is locked.
    private var state: State
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>

    package init(_ state: State) {
        self.state = state
        mutex = .allocate(capacity: 1)
        changed = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Looks at the state without waking anybody. `body` runs under the lock.
    package func read<T>(_ body: (State) throws -> T) rethrows -> T {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(state)
    }

    /// Changes the state and wakes all waiters. `body` runs under the lock.
    @discardableResult
    package func update<T>(_ body: (inout State) throws -> T) rethrows -> T {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        defer { pthread_cond_broadcast(changed) }
        return try body(&state)
    }

    /// Waits until `ready` returns a value, and returns it. `ready` runs under the lock, now and after each update.
    /// - Throws: `DeadlinePassed`, naming `what`, when `patience` is over.
    package func wait<T>(
        for what: @autoclosure () -> String, within patience: Duration = .patience, _ ready: (State) throws -> T?
    ) throws -> T {
        var deadline = timespec(monotonicIn: patience)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let value = try ready(state) { return value }
            if pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT {
                // The last change and the deadline may meet: what has happened counts.
                if let value = try ready(state) { return value }
                throw DeadlinePassed(what: what())
            }
        }
    }
}

extension timespec {
    /// The time on `CLOCK_MONOTONIC` that is `duration` from now.
    init(monotonicIn duration: Duration) {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let nanoseconds = Int(now.tv_nsec) + Int(duration.components.attoseconds / 1_000_000_000)
        self.init(
            tv_sec: now.tv_sec + Int(duration.components.seconds) + nanoseconds / 1_000_000_000,
            tv_nsec: nanoseconds % 1_000_000_000)
    }
}
