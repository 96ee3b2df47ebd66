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

    /// Those held in the lowest eight bits, all that were taken above.
    private static var counts: Int {
        get { Int(bitPattern: pthread_getspecific(key)) }
        set { pthread_setspecific(key, UnsafeRawPointer(bitPattern: newValue)) }
    }

    fileprivate static func take() { counts &+= 0x101 }
    fileprivate static func release() { counts &-= 1 }

    /// Whether this thread holds none; true in release builds, which count none.
    package static var areNone: Bool { counts & 0xFF == 0 }

    /// How many this thread has taken.
    package static var taken: Int { counts >> 8 }
}

/// Stands for `Synchronization.Mutex` in debug builds: each module that has locks names it `Mutex`.
@usableFromInline
package struct CountedMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // @unchecked because the mutex guards the value.
    private let mutex: Mutex<Value>

    package init(_ value: consuming sending Value) { mutex = Mutex(value) }

    @usableFromInline package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        HeldLocks.take()
        defer { HeldLocks.release() }
        return try mutex.withLock(body)
    }
}
