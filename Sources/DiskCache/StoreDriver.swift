/// What stands in for the threads, the time and the dice of a store in a simulation: it runs all work in one thread, in
/// an order and at times of its own (docs/dev/robustness.md).
package protocol StoreDriver: AnyObject, Sendable {
    /// Keeps work of the store's queue, in the order of the calls, or of a pool, in any order.
    func run(_ work: @escaping @Sendable () -> Void, on thread: StoreThread)

    /// Runs all that is kept for it, at once.
    func finish(_ thread: StoreThread)

    /// Runs work of the store's queue every second, as long as the store is open.
    func everySecond(_ work: @escaping @Sendable () -> Void)

    func random() -> UInt64

    /// Wall-clock time in microseconds since 1970; no two calls return the same.
    func microseconds() -> Int64

    /// Time that is never set back, in microseconds.
    func monotonicMicroseconds() -> Int64
}

extension StoreDriver {
    package func monotonicMicroseconds() -> Int64 { microseconds() }

    /// Runs `body` with this driver's time on this thread.
    package func owningTime<Value>(_ body: () throws -> Value) rethrows -> Value {
        AccessClock.driver = self
        defer { AccessClock.driver = nil }
        return try body()
    }
}

/// The store's queue, or one of its pools, by the name of its threads.
package enum StoreThread: Hashable, Sendable {
    case queue
    case pool(String)
}
