import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import HTTPTransport
import Metrics

/// Answers players' requests. One for each loop, loop-bound.
package final class MediaHandler: RequestHandler {
    let filler: LoopFiller
    let metrics: ProxyMetrics
    private let hosts: HostPolicy
    private let control: any RequestHandler
    private let routes: MediaRoutes
    private var acceptedHost: String?

    /// - Parameter control: answers requests that are not for media.
    package init(_ filler: LoopFiller, hosts: HostPolicy, metrics: ProxyMetrics, control: any RequestHandler) {
        self.filler = filler
        self.hosts = hosts
        self.metrics = metrics
        self.control = control
        routes = MediaRoutes(filler.filler.policy)
    }

    package func handle(_ exchange: Exchange) {
        let request = exchange.request
        guard accepts(request.value(of: "Host")) else {
            // RFC 9110 §7.4, §15.5.20
            return exchange.respond(421, text: "this proxy answers for its addresses and localhost; use one of them as the host of the URL")
        }
        let target = request.target
        guard MediaRoutes.isMedia(target) else { return control.handle(exchange) }
        switch request.method {
        case .get, .head: respond(to: exchange, target)
        case .options: exchange.respond(Self.options)
        case .other(let name): exchange.respond(405, text: "\(name) is not supported here; use GET or HEAD", closes: true) { $0.field("Allow", "GET, HEAD, OPTIONS") }
        }
    }

    /// Clients of one proxy nearly always name it alike.
    private func accepts(_ host: String?) -> Bool {
        if let host, host == acceptedHost { return true }
        guard hosts.accepts(host) else { return false }
        acceptedHost = host
        return true
    }

    private static let options: Response = {
        var response = Response(204, length: 0)
        response.field("Allow", "GET, HEAD, OPTIONS")
        return response
    }()

    private func respond(to exchange: Exchange, _ target: String) {
        do throws(OriginURLError) {
            let route = try routes.route(target)
            metrics.requests.add()
            MediaAnswer(exchange, route, self).start()
        } catch {
            metrics.errors.add("bad-request")
            exchange.respond(400, text: error.reason)
        }
    }
}
