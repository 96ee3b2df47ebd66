import Activity
import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport

extension ControlHandler {
    /// Responds with what happens at this moment.
    func reportNow(_ exchange: Exchange) {
        look(exchange) { handler, exchange, look in
            handler.answer(exchange) { _ in look.report }
        }
    }

    /// Responds with how much of a resource is cached, what is arriving, and where players read.
    func reportCoverage(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        let window = CoverageStrip.Window(
            from: try parameters.number("from", in: Self.places).map(Int64.init),
            to: try parameters.number("to", in: Self.places).map(Int64.init),
            count: try parameters.number("buckets", in: 1...Self.mostBuckets) ?? Self.standardBuckets)
        look(exchange) { handler, exchange, look in
            let (policy, mask, handler) = (
                handler.policy.value, handler.mask(for: exchange), LoopBound(handler, on: exchange.loop)
            )
            handler.value.perform(exchange) { store in
                let survey = try policy.find(url) { key in
                    try store.coverage(key).map {
                        CoverageSurvey(key: key, coverage: $0, look: look, policy: policy, window: window)
                    }
                }
                guard let survey else { throw ControlError.notCached(url.absolute) }
                // What is cached of a file is in the survey already.
                let line = try survey.isPlaylist ? nil : ControlJSON.line(survey.report([]), masked: mask)
                return (survey, line)
            } then: { exchange, found in
                let (survey, line) = found
                if let line { exchange.respond(200, json: line) } else { handler.value.report(survey, exchange) }
            }
        }
    }

    private func report(_ survey: CoverageSurvey, _ exchange: Exchange) {
        let bound = LoopBound((self, exchange), on: exchange.loop)
        surveys.renditions(of: survey.key) { [store] work in
            store.perform(work)
        } find: { [store] in
            try survey.cachedRenditions(in: store)
        } then: { outcome in
            bound.post { handler, exchange in handler.answer(exchange) { _ in try survey.report(outcome.get()) } }
        }
    }

    private static let (mostBuckets, standardBuckets) = (10_000, 400)
    private static let places = 0...Int(ByteNumber.greatest)

    /// Looks at the live state, and continues on the loop.
    private func look(
        _ exchange: Exchange, _ then: @escaping @Sendable (ControlHandler, Exchange, LiveState.Look) -> Void
    ) {
        let bound = LoopBound((self, exchange), on: exchange.loop)
        live.look { look in
            bound.post { handler, exchange in
                guard let look else {
                    return exchange.respond(ControlError(503, "the proxy is being stopped: start it again"))
                }
                then(handler, exchange, look)
            }
        }
    }
}
