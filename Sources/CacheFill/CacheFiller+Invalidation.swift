import CachePolicy
import DiskCache
import Synchronization

extension CacheFiller {
    /// What is cached of a resource is not to be used any more: its origin has changed it (RFC 9111 §4.4). Who is
    /// reading it reads on, as far as it is there.
    /// - Parameter done: called once the next request will not find it; before this returns, where the index need not
    ///   be asked.
    package func invalidate(_ key: CacheKey, then done: @escaping @Sendable () -> Void) {
        let resource = resource(key)
        resource.outdateOpening()
        switch look(at: resource, wake: { [self] in invalidate(key, then: done) }) {
        case .generation(let generation):
            resource.invalidate(generation)
            store.retire(generation)
            done()
        case .lookingUp: break
        // Who cannot read it now may later: the index is damaged or locked, and there is nothing that could be done
        // about it.
        case .unknown, .unreadable:
            done()
        }
    }

    /// Some are just being opened, and nowhere stored.
    private func variantsInUse(of keys: [CacheKey]) -> [CacheKey] {
        let open = openKeys
        return keys.flatMap { key in open.filter { $0.text.hasPrefix(key.text + " ") } }
    }

    /// The same for several resources at once, with what their origin chose by other request fields.
    package func invalidate(_ keys: [CacheKey], then done: @escaping @Sendable () -> Void) {
        guard !keys.isEmpty else { return done() }
        store.withVariants(keys) { [self] stored in
            let keys = Array(Set(stored + variantsInUse(of: keys)))
            let left = Countdown(keys.count)
            for key in keys { invalidate(key) { if left.isLast() { done() } } }
        }
    }
}

private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func isLast() -> Bool { left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
}
