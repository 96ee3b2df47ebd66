import Activity
import Synchronization

/// Waits until `ready` returns a value, and returns it.
///
/// It looks again whenever one of the product's counters has changed. What no counter tells of, such as a file that
/// another process writes, is looked at every five milliseconds.
/// - Throws: `DeadlinePassed`, naming `what` and what there is `instead`, when `patience` is over; what `ready` throws.
@discardableResult
package func eventually<T>(
    _ what: @autoclosure () -> String, within patience: Duration = .patience,
    instead: @autoclosure () throws -> String = "", _ ready: () throws -> T?
) throws -> T {
    if let value = try ready() { return value }
    let end = ContinuousClock.now + patience
    return try changes.whileWatched { () throws -> T in
        while true {
            // Before the look: what changes during it must not be missed.
            let seen = changes.count
            if let value = try ready() { return value }
            guard ContinuousClock.now < end else { throw DeadlinePassed(what: what(), instead: try instead()) }
            changes.wait(beyond: seen)
        }
    }
}

/// The same for a condition.
package func eventually(
    _ what: @autoclosure () -> String, within patience: Duration = .patience,
    instead: @autoclosure () throws -> String = "", isSo: () throws -> Bool
) throws {
    try eventually(what(), within: patience, instead: try instead()) { try isSo() ? () : nil }
}

private let changes: CounterChanges = {
    let changes = CounterChanges()
    Counter.listener.withLock { $0 = Counter.Listener(hear: changes.note) }
    return changes
}()

/// How often counters have changed while somebody waited for that.
private final class CounterChanges: Sendable {
    private let watchers = Atomic(0)
    private let changed = Monitor(0)

    var count: Int { changed.read { $0 } }

    func note() {
        if watchers.load(ordering: .relaxed) > 0 { changed.update { $0 += 1 } }
    }

    func whileWatched<T>(_ body: () throws -> T) rethrows -> T {
        watchers.add(1, ordering: .sequentiallyConsistent)
        defer { watchers.subtract(1, ordering: .relaxed) }
        return try body()
    }

    /// Returns when the count is another, or after five milliseconds.
    func wait(beyond seen: Int) {
        _ = try? changed.wait(for: "a change", within: .milliseconds(5)) { $0 == seen ? nil : () }
    }
}
