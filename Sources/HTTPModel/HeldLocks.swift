import Glibc
import Synchronization

/// The locks that a thread holds, counted in debug builds: its holder neither calls out (logs, wakes, notifies, calls
/// curl) nor works on what somebody else sent. Each of these asserts `areNone`, at its one entry.
package enum HeldLocks {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    fileprivate static var count: Int {
        get { Int(bitPattern: pthread_getspecific(key)) }
        set { pthread_setspecific(key, UnsafeRawPointer(bitPattern: newValue)) }
    }

    /// Whether this thread holds none; true in release builds, which count none.
    package static var areNone: Bool { count == 0 }
}

/// Stands for `Synchronization.Mutex` in debug builds: each module that has locks names it `Mutex`.
package struct CountedMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // @unchecked because the mutex guards the value.
    private let mutex: Mutex<Value>

    package init(_ value: consuming sending Value) { mutex = Mutex(value) }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        HeldLocks.count += 1 // no trap: one at a time
        defer { HeldLocks.count -= 1 } // no trap: one at a time
        return try mutex.withLock(body)
    }
}
