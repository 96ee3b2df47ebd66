import Synchronization

/// A number that only grows. Safe to use from any thread.
package final class Counter: Sendable {
    private let total = Atomic<UInt64>(0)

    package init() {}

    package func add(_ amount: Int64 = 1) {
        total.wrappingAdd(UInt64(amount), ordering: .relaxed)
        Counter.noteChange()
    }

    package var value: UInt64 { total.load(ordering: .relaxed) }

    #if DEBUG
    /// Called when a counter or a gauge has changed, on the thread that counted, so that a test that waits for a
    /// figure need not look all the time; it must not block. It exists in debug builds only.
    package static let listener = Mutex(Listener(hear: {}))

    /// A closure alone would be wrapped once more by each access through the lock.
    package struct Listener: Sendable {
        let hear: @Sendable () -> Void

        package init(hear: @escaping @Sendable () -> Void) { self.hear = hear }
    }
    #endif

    @inline(__always)
    static func noteChange() {
        #if DEBUG
        listener.withLock { $0 }.hear()
        #endif
    }
}

/// A number that goes up and down. Safe to use from any thread.
package final class Gauge: Sendable {
    private let level = Atomic<Int64>(0)

    package init() {}

    package func add(_ amount: Int64) {
        level.wrappingAdd(amount, ordering: .relaxed)
        Counter.noteChange()
    }
    package func set(_ amount: Int64) {
        level.store(amount, ordering: .relaxed)
        Counter.noteChange()
    }

    package var value: Int64 { level.load(ordering: .relaxed) }
}

/// A number that is measured now and then. Safe to use from any thread.
package final class Measurement: Sendable {
    private let level = Atomic<Int64>(0)
    private let isKnown = Atomic(false)

    package init() {}

    package func set(_ amount: Int64) {
        level.store(amount, ordering: .relaxed)
        isKnown.store(true, ordering: .releasing)
    }

    /// Nil until the first measurement.
    package var value: Int64? { isKnown.load(ordering: .acquiring) ? level.load(ordering: .relaxed) : nil }
}
