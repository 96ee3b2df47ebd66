import Activity
import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport

/// What happens at this moment.
struct LiveRoutes: Sendable {
    let live: LiveState
    let policy: Current<ProxyPolicy>
    let surveys: CoverageSurveys

    private static let (mostBuckets, standardBuckets) = (10_000, 400)
    private static let places = 0...Int(ByteNumber.greatest)

    var routes: [ControlRoute] {
        [
            ControlRoute(\.now) { request in
                look(request) { request, look in request.answer { _ in look.report } }
            },
            ControlRoute(\.nowEvents, follow),
            ControlRoute(\.coverage, reportCoverage),
        ]
    }

    /// Responds with how much of a resource is cached, what is arriving, and where players read.
    private func reportCoverage(_ request: ControlRequest<Void, CoverageReport>) throws(ControlError) {
        let parameters = request.parameters
        let url = try parameters.requiredURL()
        let window = CoverageStrip.Window(
            from: try parameters.number(.from, in: Self.places).map(Int64.init),
            to: try parameters.number(.to, in: Self.places).map(Int64.init),
            count: try parameters.number(.buckets, in: 1...Self.mostBuckets) ?? Self.standardBuckets)
        look(request) { request, look in
            let (policy, mask, bound) = (policy.value, request.mask, LoopBound(request, on: request.exchange.loop))
            request.perform { store in
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
                if let line { exchange.respond(200, json: line) } else { report(survey, to: bound.value) }
            }
        }
    }

    private func report(_ survey: CoverageSurvey, to request: ControlRequest<Void, CoverageReport>) {
        let (bound, store) = (LoopBound(request, on: request.exchange.loop), request.store)
        surveys.renditions(of: survey.key) { work in
            store.perform(work)
        } find: {
            try survey.cachedRenditions(in: store)
        } then: { outcome in
            bound.post { request in request.answer { _ in try survey.report(outcome.get()) } }
        }
    }

    /// Sends the live state as server-sent events, until the client disconnects: all of it, whenever it has changed,
    /// so that nothing is lost if one is missed.
    private func follow(_ request: ControlRequest<Void, Void>) throws(ControlError) {
        let (exchange, showsSecrets) = (request.exchange, request.mask == nil)
        let stream = try live.streams.open(exchange.countedClient)
        let watch: EventBody<UInt64>.Watch = { [live] wake in
            let id = live.watch(showsSecrets: showsSecrets, wake)
            return { live.unwatch(id) }
        }
        exchange.respond(
            EventText.head,
            body: EventBody(exchange, stream, from: UInt64(0), refresh: live.refresh, watch: watch) {
                [live] revision, then in
                let page = live.page(showsSecrets: showsSecrets).flatMap { $0.revision > revision ? $0 : nil }
                then(.init(text: page?.text, cursor: page?.revision ?? revision, isLast: true))
            })
    }

    /// Looks at the live state, and continues on the loop.
    private func look<Answer>(
        _ request: ControlRequest<Void, Answer>,
        _ then: @escaping @Sendable (ControlRequest<Void, Answer>, LiveState.Look) -> Void
    ) {
        let bound = LoopBound(request, on: request.exchange.loop)
        live.look { look in
            bound.post { request in
                guard let look else {
                    return request.exchange.respond(
                        ControlError(503, "the proxy is being stopped: start it again"))
                }
                then(request, look)
            }
        }
    }
}
