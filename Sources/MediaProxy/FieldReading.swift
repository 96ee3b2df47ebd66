import Activity
import CachePolicy
import HTTPModel
import HTTPTransport

/// What a request's fields and client say, whatever it requests. The next request on the connection often has the same
/// fields, and shares it.
final class FieldReading {
    let directives: RequestDirectives
    let requester: Requester
    let player: PlayerID
    /// Whether `Host` is a name of this proxy.
    let namesProxy: Bool
    /// That of the policy whose `web_origins` were read: they hold for the whole answer.
    let version: Int

    init(_ exchange: Exchange, _ routes: MediaRoutes, accepts: (String?) -> Bool) {
        let head = exchange.request
        directives = RequestDirectives(
            cacheControl: head.combined("Cache-Control"), pragma: head.combined("Pragma"))
        (requester, version) = (Requester(head, routes.webOrigins), routes.version)
        player = PlayerID(address: exchange.clientHost, agent: head.value(of: "User-Agent"))
        namesProxy = accepts(head.value(of: "Host"))
    }
}
