import Synchronization

/// A value that all loops use, and that may become another while they run.
package final class Current<Value: Sendable>: Sendable {
    private let stored: Mutex<Value>
    private let changes = Atomic<Int>(0)

    package init(_ value: Value) { stored = Mutex(value) }

    package var value: Value {
        get { stored.withLock { $0 } }
        set {
            stored.withLock { $0 = newValue }
            changes.wrappingAdd(1, ordering: .releasing)
        }
    }

    /// Makes it another, with nobody else changing it meanwhile.
    package func change(_ body: (inout sending Value) -> Void) {
        stored.withLock { body(&$0) }
        changes.wrappingAdd(1, ordering: .releasing)
    }

    /// Another number after each change: what was worked out from the value is to be worked out anew.
    package var version: Int { changes.load(ordering: .acquiring) }
}
