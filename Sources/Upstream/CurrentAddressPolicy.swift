import CachePolicy
import Synchronization

/// The address policy of all loops, which may become another while they run. What is already being transferred goes on.
package final class CurrentAddressPolicy: Sendable {
    private let stored: Mutex<AddressPolicy>

    package init(_ policy: AddressPolicy) {
        stored = Mutex(policy)
    }

    package var value: AddressPolicy {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}
