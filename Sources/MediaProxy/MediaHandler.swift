import Activity
import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import HTTPTransport
import Presentations

/// Answers players' requests. One per loop, loop-bound.
package final class MediaHandler: RequestHandler {
    let proxy: ProxyLoop
    private let plays: LoopPlays
    private let control: any RequestHandler

    /// - Parameters:
    ///   - plays: those of the loop.
    ///   - control: answers requests that are not for media.
    package init(_ proxy: ProxyLoop, plays: LoopPlays, control: any RequestHandler) {
        (self.proxy, self.plays, self.control) = (proxy, plays, control)
    }

    package func handle(_ exchange: Exchange) {
        let reading = proxy.reading(of: exchange)
        if reading.isLooping { return refuse(exchange, .loop) }
        if case .other("CONNECT") = exchange.request.method { return connect(exchange) }
        let target = exchange.target
        guard target.utf8.first != UInt8(ascii: "/") else { return handleOriginForm(exchange, target, reading) }
        guard target != "*" else { return handleAsterisk(exchange, reading) }
        handleAbsoluteForm(exchange, target, reading)
    }

    // MARK: Forms of targets (RFC 9112 §3.2)

    private func handleOriginForm(_ exchange: Exchange, _ target: String, _ reading: FieldReading) {
        guard isForProxy(exchange, reading) else { return refuse(exchange, .misdirected) }
        handle(exchange, target, exchange.line, reading)
    }

    /// The target identifies the resource; `Host` is ignored (§3.2.2).
    private func handleAbsoluteForm(_ exchange: Exchange, _ target: String, _ reading: FieldReading) {
        guard let url = try? OriginURL(url: target), proxy.isOwn(url, exchange) else {
            return handle(exchange, target, exchange.line, reading)
        }
        exchange.retarget(url.pathAndQuery)
        handle(exchange, url.pathAndQuery, nil, reading)
    }

    /// §3.2.4
    private func handleAsterisk(_ exchange: Exchange, _ reading: FieldReading) {
        guard isForProxy(exchange, reading) else { return refuse(exchange, .misdirected) }
        guard exchange.request.method == .options else { return refuse(exchange, .asterisk) }
        exchange.respond(Self.options)
    }

    /// Both names have to be the proxy's own: a balancer may pass on a `X-Forwarded-Host` that a page invented.
    private func isForProxy(_ exchange: Exchange, _ reading: FieldReading) -> Bool {
        reading.namesProxy && exchange.forwarded?.host.map { proxy.hosts.accepts($0) } != false
    }

    // MARK: Methods

    /// - Parameter line: that of the target; nil if it is not remembered, or has another.
    private func handle(
        _ exchange: Exchange, _ target: String, _ line: RequestLines.Line?, _ reading: FieldReading
    ) {
        let route: Route
        do throws(MediaRoutes.Refusal) {
            guard let found = try proxy.routes.route(target, line) else { return control.handle(exchange) }
            route = found
        } catch {
            proxy.metrics.errors.add(error.status == 400 ? "bad-request" : "refused")
            return refuse(exchange, error)
        }
        if exchange.isRecorded { exchange.record(url: route.text) }
        if let refusal = refusal(of: exchange.request, route, reading) {
            proxy.metrics.errors.add("refused")
            return refuse(exchange, refusal)
        }
        switch (exchange.request.method, route.form) {
        case (.get, _), (.head, _):
            proxy.metrics.requests.add()
            MediaAnswer(MediaRequest(exchange, route, reading, proxy)).start(in: plays)
        case (.options, .path): exchange.respond(answer(toOptions: exchange.request, route))
        case (.options, _): pass(exchange, route)
        case (.other(let name), .mount) where name != "TRACE": pass(exchange, route)
        case (.other(let name), let form):
            guard form != .mount else {
                return refuse(exchange, .trace, allowing: "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE")
            }
            refuse(
                exchange, .init(status: 405, reason: "\(name) is not supported here; use GET or HEAD"),
                allowing: "GET, HEAD, OPTIONS")
        }
    }

    private func pass(_ exchange: Exchange, _ route: Route) {
        proxy.metrics.requests.add()
        proxy.metrics.bypasses.add()
        // RFC 9110 §7.6.2
        if exchange.request.method == .options, exchange.request.value(of: "Max-Forwards") == "0" {
            return exchange.respond(Self.options)
        }
        PassThrough(exchange, route, proxy).start()
    }

    private static let options: Response = {
        var response = Response(204, length: 0)
        response.field("Allow", "GET, HEAD, OPTIONS")
        return response
    }()

    private func answer(toOptions request: RequestHead, _ route: Route) -> Response {
        var response = Self.options
        let fields = CrossOrigin.preflight(
            request, host: route.url.host, isOpen: route.isOpen, policy: proxy.addresses.value, proxy.routes.webOrigins)
        if let fields { response.fields(fields) }
        return response
    }

    // MARK: Refusals

    /// Why a page may not send this request, whatever its origin would answer; nil if it may.
    private func refusal(of request: RequestHead, _ route: Route, _ reading: FieldReading) -> MediaRoutes.Refusal? {
        switch (request.method, route.form) {
        // Service Workers §4.3: it would intercept all pages below its path, of whatever origin.
        case (.get, .path), (.head, .path): reading.isServiceWorker ? .serviceWorker : nil
        case (.other, .mount) where !route.isOpen: Requester(request) == .own ? nil : .foreign
        default: nil
        }
    }

    /// - Parameter allowed: the methods that are answered here; the request may have a body, which is not read.
    func refuse(_ exchange: Exchange, _ refusal: MediaRoutes.Refusal, allowing allowed: String? = nil) {
        exchange.respond(refusal.status, text: refusal.reason, closes: allowed != nil) { response in
            if let allowed { response.field("Allow", allowed) }
        }
    }
}

extension MediaRoutes.Refusal {
    fileprivate static let loop = Self(
        status: 508, reason: "this request came from this proxy itself: the URL, or a proxy behind it, leads back here")
    /// RFC 9110 §7.4, §15.5.20: a page of another site may let its own name resolve to this address.
    fileprivate static let misdirected = Self(
        status: 421,
        reason:
            "this proxy answers for its addresses, localhost and the hosts in names: use one of them as the host of the URL"
    )
    fileprivate static let serviceWorker = Self(
        status: 403, reason: "service workers are not served under the proxy's own name: register it at its origin")
    /// The origin would take it for the operator's own request.
    fileprivate static let foreign = Self(
        status: 403,
        reason:
            "a page of another site may not change anything here, because a rule adds fields to the request: send it from a page of this host"
    )
    /// RFC 9110 §9.3.8: the answer would show the client's credentials to scripts that must not see them.
    fileprivate static let trace = Self(status: 405, reason: "TRACE is not forwarded: use another method")
    fileprivate static let asterisk = Self(
        status: 400, reason: "the target * is only for OPTIONS: send a path or a URL")
}
