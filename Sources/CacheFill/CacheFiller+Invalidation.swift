import CachePolicy
import DiskCache
import Synchronization

extension CacheFiller {
    /// Invalidates a resource because its origin has changed it (RFC 9111 §4.4). Current readers read on, as far as its
    /// bytes are present. What is kept stays, and is validated before it is used again.
    /// - Parameter done: called once the next request can no longer find it; before this method returns, unless the
    ///   index has to be read.
    package func invalidate(_ key: CacheKey, then done: @escaping @Sendable () -> Void) {
        let resource = resource(key)
        resource.outdateOpening()
        shortResponses.remove(key)
        switch look(at: resource, wake: { [self] in invalidate(key, then: done) }) {
        case .generation(let generation) where generation.isKept && !generation.isHidden:
            generation.freshen { $0.doubted }
            done()
        case .generation(let generation):
            let hasFormer = resource.invalidate(generation)
            store.retire(generation)
            if hasFormer { invalidate(key, then: done) } else { done() }
        case .lookingUp: break
        // The index is damaged or locked, so the resource cannot be looked up now and nothing can be done about it
        // here. It may become readable later.
        case .unknown, .unreadable:
            done()
        }
    }

    /// Includes variants that are only just being opened and are not in the index yet.
    private func variantsInUse(of keys: [CacheKey]) -> [CacheKey] {
        let open = openKeys
        return keys.flatMap { key in open.filter { $0.text.hasPrefix(key.text + " ") } }
    }

    /// Invalidates several resources with all their variants.
    package func invalidate(_ keys: [CacheKey], then done: @escaping @Sendable () -> Void) {
        guard !keys.isEmpty else { return done() }
        store.withVariants(keys) { [self] stored in
            shortResponses.removeAll(of: Set(keys))
            let keys = Array(Set(stored + variantsInUse(of: keys)))
            let left = Countdown(keys.count)
            for key in keys { invalidate(key) { if left.isLast() { done() } } }
        }
    }

    private final class Countdown: Sendable {
        private let left: Atomic<Int>

        init(_ count: Int) { left = Atomic(count) }

        func isLast() -> Bool { left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
    }
}
