import Activity
import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import Foundation
import HTTPTransport

/// The cache as a whole, its history, and what players find in it.
struct CacheRoutes: Sendable {
    let policy: Current<ProxyPolicy>
    let scrubs: ScrubTurn
    /// The counters over a span of time.
    let history: @Sendable (HistorySpan) -> HistoryReport
    /// Has the next item after a URL downloaded when that was played. Called on a loop: it must not block.
    let wantNext: @Sendable (OriginURL) -> Void

    var routes: [ControlRoute] {
        [
            ControlRoute(\.cache) { request in request.answer { try $0.report() } },
            ControlRoute(\.changeLimits, changeLimits),
            ControlRoute(\.verify, verify),
            ControlRoute(\.url, reportURL),
            ControlRoute(\.next, prefetchNext),
            ControlRoute(\.history, reportHistory),
        ]
    }

    /// The new limits are in force before the response is sent.
    private func changeLimits(_ request: ControlRequest<LimitChange, CacheReport>) {
        request.receive { change in
            request.answer { store in
                try store.setLimits(maxSize: change.maxSize, minFree: change.minFree)
                return try store.report()
            }
        }
    }

    /// Scrubs the cache and reports progress line by line; the last line is the result. Stops when the client
    /// disconnects.
    private func verify(_ request: ControlRequest<Void, CacheValidation>) throws(ControlError) {
        let repairs = try request.parameters.flag(.repair)
        guard scrubs.begin() else {
            throw ControlError(409, "a verification is running already: wait until it has finished")
        }
        ScrubSource.respond(to: request.exchange, repairs: repairs, request.store, scrubs)
    }

    /// Responds with the path at which a player opens a media URL.
    private func reportURL(_ request: ControlRequest<Void, PlayerPath>) throws(ControlError) {
        let url = try request.parameters.requiredURL()
        guard let path = policy.value.target(of: url) else {
            throw ControlError(422, "\(url.absolute) is not served: \(ProxyPolicy.mountsAloneReason)")
        }
        // Not masked: it tells nothing but what the request tells.
        let line: [UInt8]
        do { line = try ControlJSON.line(PlayerPath(path: path)) } catch { throw ControlError(error) }
        request.exchange.respond(200, json: line)
    }

    /// Has the next item downloaded when the named one was played. The proxy remembers a few until it ends.
    private func prefetchNext(_ request: ControlRequest<WantedItem, WantedItem>) {
        request.receive { item in
            request.answer { [wantNext, parameters = request.parameters] _ in
                let item = WantedItem(url: try parameters.origin(of: item.url))
                wantNext(item.url)
                return item
            }
        }
    }

    /// Answers with the counters over a span of time.
    private func reportHistory(_ request: ControlRequest<Void, HistoryReport>) throws(ControlError) {
        let text = request.parameters[.span] ?? HistorySpan.hour.rawValue
        guard let span = HistorySpan(rawValue: text) else {
            let spans = HistorySpan.allCases.map(\.rawValue).joined(separator: ", ")
            throw ControlError(400, "span is one of \(spans), not \(text.prefix(100))")
        }
        request.answer { [history] _ in history(span) }
    }
}
