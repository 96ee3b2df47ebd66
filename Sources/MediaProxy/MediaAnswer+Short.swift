import CacheFill
import CachePolicy
import HTTPModel
import HTTPTransport

/// Answers that are not media, from memory (RFC 9111 §4).
extension MediaAnswer {
    /// Answers with a short response, if no media is stored and one may be used.
    /// - Returns: whether it did.
    func answersShortly(_ resolution: Resolution) -> Bool {
        switch resolution {
        case .open, .refuse: break
        case .wait, .use, .validate, .turn, .replace, .bypass: return false
        }
        guard !route.isRecording else { return false }
        for short in filler.filler.shortResponses.responses(to: route.url.absolute, under: resource.key) {
            guard selection(of: short.head.variant) == short.head.variant,
                let freshness = short.freshness(
                    resolvedRule, now: filler.filler.now(), instant: filler.filler.instant)
            else { continue }
            let directives = short.head.reading(resolvedRule.terms).directives
            // It may have been stored while the cache was private.
            guard directives.permitsUse(of: short.head.fields, short.head.variant, isAuthorized: isAuthorized)
            else { continue }
            return answer(with: short, directives, freshness)
        }
        return false
    }

    private func answer(
        with short: ShortResponse, _ response: ResponseDirectives, _ freshness: Freshness
    ) -> Bool {
        let reuse = Reuse.decide(directives, response: response.obeyed, freshness, isOffline: filler.isOffline)
        switch reuse {
        case .fresh: break
        case .stale(revalidates: false): handler.metrics.stale.add()
        case .validate(let need):
            noteForward(need == .stale ? .stale : .request)
            return false
        // It costs little to fetch it again.
        case .stale(revalidates: true):
            noteForward(.stale)
            return false
        case .gatewayTimeout: return false
        }
        trace("stored: \(short.head.status), fresh for \(freshness.remaining) s")
        outcome = .hit(ttl: freshness.remaining, detail: filler.isOffline && !freshness.isFresh ? "offline" : nil)
        respond(with: short)
        return true
    }

    private func respond(with short: ShortResponse) {
        endWaiting()
        isAnswered = true
        if !isCounted { handler.metrics.hits.add() }
        isCounted = true
        let status = status(of: short), hasBody = status == short.head.status
        var response = Response(status, length: hasBody ? Int64(short.body.count) : status == 304 ? nil : 0)
        addFields(of: short.head, key: resource.key, acceptsRanges: false, isOld: true, to: &response)
        let isSent = hasBody && request.method == .get && !short.body.isEmpty
        let count = isSent ? Int64(short.body.count) : 0
        handler.metrics.bytesFromCache.add(count)
        filler.origin(route.url.host).sentFromCache.add(count)
        exchange.bytesFromCache +|= count
        exchange.firstByteTimes = handler.metrics.firstByteOfHits
        exchange.respond(response, body: isSent ? BytesSource(short.body) : nil)
    }

    /// RFC 9110 §13.2.1: conditions are for successful responses alone.
    private func status(of short: ShortResponse) -> Int {
        guard (200..<300).contains(short.head.status) else { return short.head.status }
        return switch Conditional.evaluate(request, against: short.head.validators) {
        case .notModified: 304
        case .failed: 412
        case .proceed: short.head.status
        }
    }
}
