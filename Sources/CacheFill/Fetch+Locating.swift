import Activity
import CachePolicy
import EventIO
import Upstream

/// Media behind pages: before each request, the fetch needs the location.
extension Fetch {
    /// Finds out where media is that is not at its URL.
    /// - Returns: whether that is known; if not, the request is sent when it is.
    func isLocated(before reason: FetchReason) -> Bool {
        guard demand.resolvedRule.mayMove else { return true }
        let bound = LoopBound(self, on: origins.loop)
        switch request.find(for: knownGeneration, waiter: { result in bound.post { $0.located(result, reason) } }) {
        case .located:
            guard let end = endOfAnotherKey else { return true }
            finish(end)
        case nil: return true
        case .failed(let failure): located(.failure(failure), reason)
        case .waiting: phase = .waiting(nil)
        }
        return false
    }

    private func located(_ result: Result<LocatedMedia, ResolverFailure>, _ reason: FetchReason) {
        guard !hasEnded else { return }
        switch result {
        // It may be that of another fetch by now; it is found at once.
        case .success: start(reason)
        // A client without a byte learns it at once; the rest of a response is worth another try.
        case .failure(let failure):
            failOrRetry(.unlocated(failure), isTransient: failure.isTransient && knownGeneration != nil)
        }
    }

    /// How the fetch ends if its page turned out to have media that is cached under another key than the resource's:
    /// what is there now must not be stored, or joined to stored bytes, under a key that other pages share. Nil if it has
    /// not.
    private var endOfAnotherKey: FetchEnd? {
        guard demand.resolvedRule.resolver != nil,
            !resource.key.isOf(filler.policy.value.resolve(demand.url).key)
        else { return nil }
        // The stored bytes stay: they are still those of the other pages.
        guard knownGeneration == nil else { return .failed(.changed) }
        // What goes to one client alone is not stored.
        if case .opening(_, _, isShared: false, _) = purpose { return nil }
        // Those who wait look under the key that is right now.
        return .stopped
    }
}
