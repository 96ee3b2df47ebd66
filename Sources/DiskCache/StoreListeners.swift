import CachePolicy
import Synchronization

/// Passes notifications of a store to its users.
final class StoreListeners: Sendable {
    private let listeners = Mutex(Listeners())

    private struct Listeners {
        var onChange: (@Sendable (CacheKey, Generation?) -> Void)?
        var onChangeByHand: (@Sendable (CacheKey?) -> Void)?
        var onShortage: (@Sendable () -> Void)?
    }

    func whenChanged(_ tell: @escaping @Sendable (CacheKey, Generation?) -> Void) {
        listeners.withLock { $0.onChange = tell }
    }

    func whenChangedByHand(_ tell: @escaping @Sendable (CacheKey?) -> Void) {
        listeners.withLock { $0.onChangeByHand = tell }
    }

    func whenShortOfFiles(_ close: @escaping @Sendable () -> Void) { listeners.withLock { $0.onShortage = close } }

    /// A resource, or a generation of it, has changed.
    func tellChanged(_ key: CacheKey, _ generation: Generation?) { listeners.withLock(\.onChange)?(key, generation) }

    /// A person has stored or removed a resource, whether or not anything of it was cached.
    /// - Parameter key: nil for all.
    func tellChangedByHand(_ key: CacheKey?) { listeners.withLock(\.onChangeByHand)?(key) }

    /// No more files can be opened: release those kept open for later.
    func tellShortage() { listeners.withLock(\.onShortage)?() }
}
