import Synchronization

/// A number that only grows. Safe to use from any thread.
package final class Counter: Sendable, MetricFamily.Number {
    private let total = Atomic<UInt64>(0)
    let name: MetricFamily.Name?

    package init() { name = nil }

    /// - Parameters: as those of `MetricFamily.Name`.
    init(
        _ place: String?, _ metric: String, in unit: MetricFamily.Unit? = nil,
        label: (name: String, value: String)? = nil, _ help: String
    ) {
        name = MetricFamily.Name(place, metric, unit, label, help)
    }

    var reading: MetricFamily.Value? { .count(value) }

    package func add(_ amount: Int64 = 1) {
        total.wrappingAdd(UInt64(amount), ordering: .relaxed)
        Counter.noteChange()
    }

    package var value: UInt64 { total.load(ordering: .relaxed) }

    #if DEBUG
    /// Called when a counter or a gauge has changed, on the thread that counted, so that a test that waits for a
    /// figure need not look all the time; it must not block. It exists in debug builds only.
    package static let listener = Synchronization.Mutex(Listener(hear: {}))

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
package final class Gauge: Sendable, MetricFamily.Number {
    private let level = Atomic<Int64>(0)
    let name: MetricFamily.Name?

    package init() { name = nil }

    /// - Parameters: as those of `MetricFamily.Name`.
    init(_ place: String, _ metric: String, in unit: MetricFamily.Unit? = nil, _ help: String) {
        name = MetricFamily.Name(place, metric, unit, nil, help)
    }

    /// One that `/metrics` does not have.
    init(_ place: String) { name = MetricFamily.Name(place, nil, nil, nil, "") }

    var reading: MetricFamily.Value? { .level(value) }

    package func add(_ amount: Int64) {
        level.wrappingAdd(amount, ordering: .relaxed)
        Counter.noteChange()
    }
    package func set(_ amount: Int64) {
        if level.exchange(amount, ordering: .relaxed) != amount { Counter.noteChange() }
    }

    package var value: Int64 { level.load(ordering: .relaxed) }
}

/// A number that is measured now and then. Safe to use from any thread.
package final class Measurement: Sendable, MetricFamily.Number {
    private let level = Atomic<Int64>(0)
    private let isKnown = Atomic(false)
    let name: MetricFamily.Name?

    init(_ metric: String, in unit: MetricFamily.Unit?, _ help: String) {
        name = MetricFamily.Name(nil, metric, unit, nil, help)
    }

    var reading: MetricFamily.Value? { value.map { .level($0) } }

    package func set(_ amount: Int64) {
        level.store(amount, ordering: .relaxed)
        isKnown.store(true, ordering: .releasing)
    }

    /// Nil until the first measurement.
    package var value: Int64? { isKnown.load(ordering: .acquiring) ? level.load(ordering: .relaxed) : nil }
}
