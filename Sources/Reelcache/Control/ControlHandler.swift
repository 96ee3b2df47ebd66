import Activity
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPModel
import HTTPTransport

/// Answers requests that are not for media: statistics and health as pages, and the administration of the cache and
/// its downloads below `/api/v1`. Loop-bound.
final class ControlHandler: RequestHandler {
    let store: CacheStore
    let policy: Current<ProxyPolicy>
    let access: ControlAccess
    let scrubs: ScrubTurn
    let downloads: DownloadManager
    /// Has the next item after a URL downloaded when that was played.
    let wantNext: @Sendable (OriginURL) -> Void
    let feeds: SubscriptionManager
    /// Distinguishes the events of this proxy from those of its predecessors.
    let session: String
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let numbers: ControlNumbers
    let live: LiveState
    let surveys: CoverageSurveys
    let titles: PresentationTitles

    /// - Parameters:
    ///   - readToken: the token for reading, in place of which `token` is accepted too; nil if only this machine can
    ///     send requests.
    ///   - sessions: which dashboards are signed in; shared by the handlers of all loops.
    ///   - scrubs: shared by the handlers of all loops.
    ///   - session: the same for all loops, and different each time that a proxy starts; letters and digits.
    ///   - wantNext: has the next item after a URL downloaded when that was played. Called on a loop: it must not block.
    ///   - live: the live state, the same for all loops.
    ///   - surveys: shared by the handlers of all loops.
    ///   - titles: shared by the handlers of all loops.
    ///   - now: the time, in seconds since 1970.
    init(
        store: CacheStore, policy: Current<ProxyPolicy>, token: ControlToken, readToken: ControlToken?,
        sessions: SharedDashboardSessions, scrubs: ScrubTurn, downloads: DownloadManager, feeds: SubscriptionManager,
        session: String, wantNext: @escaping @Sendable (OriginURL) -> Void, numbers: ControlNumbers, live: LiveState,
        surveys: CoverageSurveys, titles: PresentationTitles,
        now: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }
    ) {
        self.store = store
        self.policy = policy
        access = ControlAccess(token: token, readToken: readToken, sessions: sessions, policy: policy)
        self.scrubs = scrubs
        self.downloads = downloads
        self.feeds = feeds
        self.session = session
        self.wantNext = wantNext
        self.numbers = numbers
        self.live = live
        self.surveys = surveys
        self.titles = titles
        self.now = now
    }

    /// Pages of other sites must not even embed a response, and no browser may take one for a page.
    private static let ownFields = Array(
        "Cross-Origin-Resource-Policy: same-origin\r\nX-Content-Type-Options: nosniff\r\n".utf8)

    func handle(_ exchange: Exchange) {
        exchange.ownFields = Self.ownFields
        let target = exchange.target
        let path = target.prefix { $0 != "?" }
        if respondWithDashboard(exchange, path) { return }
        guard ControlRoute.isBelow(path), !ControlPages.isHome(path) else { return page(exchange, path) }
        do throws(ControlError) { try administer(exchange, target, path) } catch { exchange.respond(error) }
    }

    // MARK: Administration

    private func administer(_ exchange: Exchange, _ target: String, _ path: Substring) throws(ControlError) {
        guard let route = ControlRoute(rawValue: String(path)) else {
            throw ControlError(
                404,
                "there is nothing at \(path.prefix(200)); the paths are \(ControlRoute.allCases.map(\.rawValue).joined(separator: ", "))"
            )
        }
        let method = exchange.request.method.name
        if method == "OPTIONS" { return exchange.respond(204, text: "") { $0.field("Allow", route.allowed) } }
        guard route.methods.contains(method) else { throw .method(method, allowed: route.allowed) }
        if route.needsToken(method) {
            try access.checkChanging(exchange.request)
        } else if !route.isOpen {
            try access.checkReading(exchange.request)
        }
        let parameters = try ControlParameters(target: target, known: route.parameters(method))
        if try parameters.showsSecrets() { try access.checkChanging(exchange.request) }
        switch (route, method) {
        case (.cache, "PATCH"): changeLimits(exchange)
        case (.cache, _): report(exchange)
        case (.resources, "PATCH"): try change(exchange, parameters)
        case (.resources, "DELETE"): try remove(exchange, parameters)
        case (.resources, "PUT"): try importResource(exchange, parameters)
        case (.resources, _): try find(exchange, parameters)
        case (.file, _): try holdFile(exchange, parameters)
        case (.verify, _): try verify(exchange, parameters)
        case (.downloads, "POST"): addDownloads(exchange)
        case (.downloads, "PATCH"): try changeDownloads(exchange, parameters)
        case (.downloads, _): try listDownloads(exchange, parameters)
        case (.downloadSettings, "PATCH"): changeDownloadSettings(exchange)
        case (.downloadSettings, _): reportDownloadSettings(exchange)
        case (.downloadHistory, "DELETE"): clearDownloadHistory(exchange)
        case (.downloadHistory, _): try listDownloadHistory(exchange, parameters)
        case (.downloadEvents, _): try followDownloads(exchange, parameters)
        case (.url, _): try reportURL(exchange, parameters)
        case (.dashboardLink, _): try makeDashboardLink(exchange)
        case (.dashboardSession, "POST"): try beginDashboardSession(exchange)
        case (.dashboardSession, "DELETE"): endDashboardSession(exchange)
        case (.dashboardSession, _): reportDashboardSession(exchange)
        case (.history, _): try reportHistory(exchange, parameters)
        case (.coverage, _): try reportCoverage(exchange, parameters)
        case (.now, _): reportNow(exchange)
        case (.nowEvents, _): try followNow(exchange)
        case (.next, _): prefetchNext(exchange)
        case (.feeds, "POST"): subscribe(exchange)
        case (.feeds, "DELETE"): try removeFeed(exchange, parameters)
        case (.feeds, _): try listFeeds(exchange, parameters)
        case (.feedCheck, _): try checkFeeds(exchange, parameters)
        case (.feedPreview, _): try previewFeed(exchange, parameters)
        case (.feedImport, _): try importFeeds(exchange, parameters)
        case (.feedExport, _): exportFeeds(exchange)
        }
    }

    /// The mask for the URLs of a response; nil if the client requested secrets, and may see them.
    func mask(for exchange: Exchange) -> URLMask? {
        ControlParameters.showsSecrets(exchange.target) ? nil : policy.value.mask
    }

    /// Runs blocking work on a thread of the store, and responds with its result as JSON.
    func answer<Value: Encodable & Sendable>(
        _ exchange: Exchange, _ work: @escaping @Sendable (CacheStore) throws -> Value
    ) {
        let mask = mask(for: exchange)
        perform(exchange) { store in
            try ControlJSON.line(work(store), masked: mask)
        } then: { exchange, line in
            exchange.respond(200, json: line)
        }
    }

    /// As `answer`, with a list. With `urls=true`, which requires the token, the answer also has the URL of each entry,
    /// without a mask: entries may differ in nothing else.
    /// - Parameter isLong: whether the work may read whole files.
    func answerList<List: Encodable & Sendable>(
        _ exchange: Exchange, _ parameters: ControlParameters, isLong: Bool = false,
        urls: @escaping @Sendable (List) -> [String], _ work: @escaping @Sendable (CacheStore) throws -> List
    ) throws(ControlError) {
        let (mask, tellsURLs) = (mask(for: exchange), try parameters.flag("urls"))
        if tellsURLs { try access.checkChanging(exchange.request) }
        perform(exchange, isLong: isLong) { store in
            let list = try work(store)
            guard tellsURLs else { return try ControlJSON.line(list, masked: mask) }
            return try ControlJSON.line(list, masked: mask, urls: urls(list))
        } then: { exchange, line in
            exchange.respond(200, json: line)
        }
    }

    /// Runs blocking work on a thread of the store, and continues with its result on the loop; an error is the
    /// response.
    /// - Parameter isLong: whether it may read whole files.
    func perform<Value: Sendable>(
        _ exchange: Exchange, isLong: Bool = false, _ work: @escaping @Sendable (CacheStore) throws -> Value,
        then: @escaping @Sendable (Exchange, Value) -> Void
    ) {
        let bound = LoopBound(exchange, on: exchange.loop)
        let job = { @Sendable [store] in
            let result = Result {
                try store.checkOpen()
                return try work(store)
            }
            bound.post { exchange in
                switch result {
                case .success(let value): then(exchange, value)
                case .failure(let error): exchange.respond(ControlError(error))
                }
            }
        }
        if isLong { store.performLong(job) } else { store.perform(job) }
    }

    // MARK: Pages

    /// Whether the request is for reading a page; if not, responds.
    func isReading(_ exchange: Exchange) -> Bool {
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
        exchange.isProbe = true
        exchange.isDraining ? exchange.respond(status, text: "draining") : exchange.respond(200, text: "ok")
    }
}
