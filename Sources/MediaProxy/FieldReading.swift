import Activity
import CachePolicy
import HTTPModel
import HTTPTransport

/// What a request's client and fields but `Range` say, whatever it requests. The next request often has the same, and
/// shares it.
final class FieldReading {
    let directives: RequestDirectives
    let requester: Requester
    let player: PlayerID
    /// Whether `Host` is a name of this proxy.
    let namesProxy: Bool
    /// Whether it has come from this proxy itself.
    let isLooping: Bool
    /// Whether it fetches the script of a service worker.
    let isServiceWorker: Bool
    /// Whether it has `Authorization`.
    let hasCredentials: Bool
    /// That of the policy whose `web_origins` were read: they hold for the whole answer.
    let version: Int

    init(_ exchange: Exchange, _ routes: MediaRoutes, _ via: Via, accepts: (String?) -> Bool) {
        let head = exchange.request
        directives = RequestDirectives(
            cacheControl: head.combined("Cache-Control"), pragma: head.combined("Pragma"))
        (requester, version) = (Requester(head, routes.webOrigins), routes.version)
        player = PlayerID(address: exchange.clientHost, agent: head.value(of: "User-Agent"))
        namesProxy = accepts(head.value(of: "Host"))
        isLooping = head.combined("Via").map { via.isNamed(in: $0) } ?? false
        isServiceWorker = head.value(of: "Service-Worker") != nil
        hasCredentials = head.value(of: "Authorization") != nil
    }
}
