import CachePolicy
import EventIO
import Locating
import Metrics

/// Media behind pages: before each request, the fetch needs the location.
extension Fetch {
    /// Finds out where media is that is not at its URL.
    /// - Returns: whether that is known; if not, the request is sent when it is.
    func isLocated(before reason: FetchReason) -> Bool {
        guard demand.resolvedRule.mayMove else { return true }
        let bound = LoopBound(self, on: owner.loop)
        switch request.find(for: knownGeneration, waiter: { result in bound.post { $0.located(result, reason) } }) {
        case nil, .located: return true
        case .failed(let failure): located(.failure(failure), reason)
        case .waiting: phase = .waiting(nil)
        }
        return false
    }

    private func located(_ result: Result<LocatedMedia, ResolverFailure>, _ reason: FetchReason) {
        guard !hasEnded else { return }
        switch result {
        // It is that of another page: what waits for this one looks there.
        case .success where isOfAnotherKey: finish(.stopped)
        // It may be that of another fetch by now; it is found at once.
        case .success: start(reason)
        // A client without a byte learns it at once; the rest of a response is worth another try.
        case .failure(let failure):
            failOrRetry(.unlocated(failure), isTransient: failure.isTransient && knownGeneration != nil)
        }
    }

    /// Whether the resource turned out to be cached under the key of another page that has the same media.
    private var isOfAnotherKey: Bool {
        guard case .opening(_, _, isShared: true, validating: nil) = purpose, output.generation == nil else {
            return false
        }
        return !resource.key.isOf(filler.policy.value.resolve(demand.url).key)
    }
}
