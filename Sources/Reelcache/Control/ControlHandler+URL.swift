import CachePolicy
import ControlAPI
import HTTPTransport

extension ControlHandler {
    /// Tells the path at which a player opens a media URL.
    func reportURL(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        guard let path = policy.value.target(of: url) else {
            throw ControlError(422, "\(url.absolute) is not served: \(ProxyPolicy.mountsAloneReason)")
        }
        // Not masked: it tells nothing but what the request tells.
        let line: [UInt8]
        do { line = try ControlJSON.line(PlayerPath(path: path)) } catch { throw ControlError(error) }
        exchange.respond(200, json: line)
    }
}
