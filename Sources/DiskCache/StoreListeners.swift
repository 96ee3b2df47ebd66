import CachePolicy
import Synchronization

/// Passes notifications of a store to its users.
package final class StoreListeners: Sendable {
    private let listeners = Mutex(Listeners())

    private struct Listeners {
        var onChange: (@Sendable (CacheKey, Generation?) -> Void)?
        var onChangeByHand: (@Sendable (Set<CacheKey>?) -> Void)?
        var onShortage: (@Sendable () -> Void)?
        var onFullness: (@Sendable () -> Void)?
    }

    /// - Parameter report: called on a thread of the store when the given resource, or the given generation of it, has
    ///   changed.
    package func whenChanged(_ report: @escaping @Sendable (CacheKey, Generation?) -> Void) {
        listeners.withLock { $0.onChange = report }
    }

    /// - Parameter report: called on any thread when a person has stored or removed resources, whether or not anything
    ///   of them was cached; with nil for all resources.
    package func whenChangedByHand(_ report: @escaping @Sendable (Set<CacheKey>?) -> Void) {
        listeners.withLock { $0.onChangeByHand = report }
    }

    /// - Parameter close: called from any thread when no more files can be opened; should release files kept open for
    ///   later.
    package func whenShortOfFiles(_ close: @escaping @Sendable () -> Void) {
        listeners.withLock { $0.onShortage = close }
    }

    /// - Parameter leave: called on the store's queue when nothing can be evicted; should release what is hidden and no
    ///   longer used.
    package func whenShortOfRoom(_ leave: @escaping @Sendable () -> Void) {
        listeners.withLock { $0.onFullness = leave }
    }

    func notifyChanged(_ key: CacheKey, _ generation: Generation?) { listeners.withLock(\.onChange)?(key, generation) }

    func notifyChangedByHand(_ keys: Set<CacheKey>?) { listeners.withLock(\.onChangeByHand)?(keys) }

    func notifyFullness() { listeners.withLock(\.onFullness)?() }

    func notifyShortage() { listeners.withLock(\.onShortage)?() }
}
