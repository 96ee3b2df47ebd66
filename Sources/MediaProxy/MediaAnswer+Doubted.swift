import CacheFill
import CachePolicy
import DiskCache
import HTTPModel

extension MediaAnswer {
    /// A stored generation that needs validation: it serves the answer if its origin cannot be reached, and nobody
    /// forbids that.
    struct Doubted {
        let generation: Generation
        let freshness: Freshness

        /// Whether it serves in spite of an error.
        func verdict(on request: MediaRequest, isDisconnected: Bool) -> Reuse.OnError {
            let view = generation.snapshot, rule = request.resolvedRule
            return Reuse.onError(
                request.directives, response: view.head.reading(rule.terms).directives.obeyed, freshness,
                isDisconnected: isDisconnected, rule.stalePlay, isKept: view.isKept)
        }

        /// How long the client waits, in seconds: for a live playlist, until players that get the same version again
        /// would wait in vain.
        func wait(for request: MediaRequest) -> Double {
            guard let live = generation.head.live else { return request.usualWait }
            let rest = live.answeredAt +| live.silentAfter -| request.filler.filler.instant
            return min(request.usualWait, Double(rest) / 1e9)
        }

        /// What lets the user play it anyway.
        func advice(_ rule: ResolvedRule) -> String {
            let directives = generation.head.reading(rule.terms).directives
            let obstacle = directives.ruleAgainstStale ?? "\(directives.source): stale-if-error"
            let pin = rule.stalePlay == .kept ? "pin it, " : ""
            return "it is cached, but its origin requires validation first (\(obstacle)). "
                + "To play it anyway, \(pin)set play_stale: true in a rule, or start the proxy with --offline"
        }
    }
}
