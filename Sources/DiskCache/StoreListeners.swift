import CachePolicy
import Synchronization

/// Who is told what others have to know of a store.
final class StoreListeners: Sendable {
    private let listeners = Mutex(Listeners())

    private struct Listeners {
        var onChange: (@Sendable (CacheKey, Generation?) -> Void)?
        var onShortage: (@Sendable () -> Void)?
    }

    func whenChanged(_ tell: @escaping @Sendable (CacheKey, Generation?) -> Void) {
        listeners.withLock { $0.onChange = tell }
    }

    func whenShortOfFiles(_ close: @escaping @Sendable () -> Void) { listeners.withLock { $0.onShortage = close } }

    /// What was known of a resource is so no longer.
    func tellChanged(_ key: CacheKey, _ generation: Generation?) { listeners.withLock(\.onChange)?(key, generation) }

    /// No more files can be opened: what is open in case is let go of.
    func tellShortage() { listeners.withLock(\.onShortage)?() }
}
