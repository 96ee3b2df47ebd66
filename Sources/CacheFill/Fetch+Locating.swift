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
            guard let end = request.endOfAnotherKey(for: knownGeneration) else { return true }
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
}
