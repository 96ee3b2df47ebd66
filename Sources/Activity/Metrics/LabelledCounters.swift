import HTTPModel
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// Counters that are created when their label is first counted. For rare events.
package final class LabelledCounters: Sendable {
    private let counts = Mutex<[String: UInt64]>([:])

    package init() {}

    package func add(_ label: String) {
        counts.withLock { $0[label, default: 0] += 1 }
    }

    package var values: [String: UInt64] { counts.withLock { $0 } }
}
