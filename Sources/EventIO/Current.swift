import HTTPModel
import Synchronization

#if DEBUG
/// Counts what its thread holds.
@usableFromInline typealias Mutex = CountedMutex
#endif

/// A value shared by all loops, which may change while they run.
@usableFromInline
package final class Current<Value: Sendable>: Sendable {
    @usableFromInline let stored: Mutex<Value>
    private let changes = Atomic<Int>(0)

    package init(_ value: Value) { stored = Mutex(value) }

    package var value: Value {
        @inlinable get { stored.withLock { $0 } }
        set {
            stored.withLock { $0 = newValue }
            changes.wrappingAdd(1, ordering: .releasing)
        }
    }

    /// Changes the value, excluding all other changes meanwhile.
    package func change(_ body: (inout sending Value) -> Void) {
        stored.withLock { body(&$0) }
        changes.wrappingAdd(1, ordering: .releasing)
    }

    /// A number that differs after each change: results derived from the value must then be computed again.
    package var version: Int { changes.load(ordering: .acquiring) }
}
