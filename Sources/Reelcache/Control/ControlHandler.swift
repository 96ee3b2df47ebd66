import Activity
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import HTTPModel
import HTTPTransport

/// Answers requests that are not for media: statistics and health as pages, the dashboard, and the endpoints below
/// `/api/v1`, each of which has a route. Loop-bound.
final class ControlHandler: RequestHandler {
    private let store: CacheStore
    let policy: Current<ProxyPolicy>
    let access: ControlAccess
    let downloads: DownloadSnapshots
    let numbers: ControlNumbers
    private let routes: [ControlRoute]
    private let byPath: [String: [ControlRoute]]

    /// - Parameter routes: of all endpoints; the same for the handlers of all loops.
    init(
        store: CacheStore, access: ControlAccess, downloads: DownloadSnapshots, numbers: ControlNumbers,
        routes: [ControlRoute]
    ) {
        (self.store, policy, self.access, self.downloads) = (store, access.policy, access, downloads)
        (self.numbers, self.routes) = (numbers, routes)
        byPath = Dictionary(grouping: routes, by: \.traits.path)
    }

    /// Pages of other sites must not even embed a response, and no browser may take one for a page.
    private static let ownFields = Array(
        "Cross-Origin-Resource-Policy: same-origin\r\nX-Content-Type-Options: nosniff\r\n".utf8)

    func handle(_ exchange: Exchange) {
        exchange.carry(Self.ownFields)
        exchange.count(as: .control)
        let target = exchange.target
        let path = target.prefix { $0 != "?" }
        if respondWithDashboard(exchange, path) { return }
        guard ControlPages.isBelowAPI(path), !ControlPages.isHome(path) else { return page(exchange, path) }
        do throws(ControlError) { try handle(exchange, target, path) } catch { exchange.respond(error) }
    }

    // MARK: Endpoints

    private func handle(_ exchange: Exchange, _ target: String, _ path: Substring) throws(ControlError) {
        guard let routes = byPath[String(path)] else {
            var seen = Set<String>()
            let paths = self.routes.map(\.traits.path).filter { seen.insert($0).inserted }
            throw ControlError(
                404, "there is nothing at \(path.prefix(200)); the paths are \(paths.joined(separator: ", "))")
        }
        let method = exchange.request.method.name
        if method == "OPTIONS" { return exchange.respond(204, text: "") { $0.field("Allow", routes.allowed) } }
        let accepting = routes.accepting(method)
        guard !accepting.isEmpty else { throw .method(method, allowed: routes.allowed) }
        for route in accepting { try check(exchange.request, may: route.traits.access) }
        // Of what anybody may request, nobody keeps lines out of the access log.
        if exchange.request.method == .get, exchange.request.value(of: "Reelcache-Page") != nil,
            accepting.allSatisfy({ $0.traits.access != .open })
        {
            exchange.count(as: .page)
        }
        let parameters = try ControlParameters(
            target: target, host: exchange.request.value(of: "Host"), mounts: policy.value.mounts,
            known: accepting.flatMap(\.traits.query))
        let showsSecrets = try parameters.showsSecrets()
        if showsSecrets { try access.checkChanging(exchange.request) }
        try accepting.chosen(by: parameters).handle(
            ControlRequest(
                exchange: exchange, parameters: parameters, mask: showsSecrets ? nil : policy.value.mask, store: store,
                access: access))
    }

    private func check(_ request: RequestHead, may access: EndpointTraits.Access) throws(ControlError) {
        switch access {
        case .open: break
        case .reading: try self.access.checkReading(request)
        case .token: try self.access.checkChanging(request)
        }
    }

    // MARK: Pages

    /// Whether the request is for reading a page; if not, responds.
    private func isReading(_ exchange: Exchange) -> Bool {
        switch exchange.request.method {
        case .get, .head: return true
        case .options: exchange.respond(204, text: "") { $0.field("Allow", "GET, HEAD, OPTIONS") }
        case .other(let name):
            exchange.respond(405, text: "\(name) is not supported here; use GET or HEAD", closes: true) {
                $0.field("Allow", "GET, HEAD, OPTIONS")
            }
        }
        return false
    }

    /// Answers a request for the dashboard: its page, to browsers, or one of its files.
    /// - Returns: false if the request is for something else.
    private func respondWithDashboard(_ exchange: Exchange, _ path: Substring) -> Bool {
        guard access.hasDashboard else { return false }
        let name: Substring
        if ControlPages.isHome(path) {
            // Others get the text.
            guard ControlPages.acceptsHTML(exchange.request.combined("Accept")) else { return false }
            name = Substring(DashboardFile.pageName)
        } else if path.hasPrefix(DashboardFile.prefix) {
            name = path.dropFirst(DashboardFile.prefix.count)
        } else {
            return false
        }
        guard let file = DashboardFile.named(name) else { return false }
        if isReading(exchange) { file.respond(to: exchange) }
        return true
    }

    private func page(_ exchange: Exchange, _ path: Substring) {
        guard isReading(exchange) else { return }
        switch path {
        case "/stats", "/metrics":
            do throws(ControlError) { try access.checkReading(exchange.request) } catch {
                return exchange.respond(error)
            }
            path == "/stats" ? exchange.respond(200, json: StatsJSON.page(numbers.stats())) : metrics(exchange)
        case "/healthz": health(exchange, whileDraining: 503)
        case "/healthz/balancer": health(exchange, whileDraining: 404)
        case _ where ControlPages.isHome(path):
            exchange.respond(200, text: ControlPages.home(policy.value)) { $0.field("Vary", "Accept") }
        default:
            exchange.respond(404, text: ControlPages.nothing(at: path, policy.value))
        }
    }

    /// Whether to send requests here. A balancer stops doing so when it sees that the proxy is draining.
    /// - Parameter status: what it hears then; by 404 HAProxy tells a server that drains from one that is down
    ///   (`http-check disable-on-404`).
    private func health(_ exchange: Exchange, whileDraining status: Int) {
        exchange.count(as: .probe)
        guard !exchange.isDraining else { return exchange.respond(status, text: "draining") }
        // Responses pass through: to a balancer, it is in order.
        exchange.respond(
            200, text: "ok\(store.hasDirectory ? "" : ", but the cache directory is gone: restart the proxy")")
    }
}
