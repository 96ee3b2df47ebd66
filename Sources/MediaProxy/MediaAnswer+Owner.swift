import CacheFill
import HTTPModel
import HTTPTransport
import Upstream

/// What an origin sends to this client alone, besides the response.
extension MediaAnswer {
    /// Passes on what has come so far.
    func noteOwn(_ status: SharedFetch) {
        guard route.passesCookies else { return }
        let share = status.share(of: follower)
        for interim in share.interims.dropFirst(interimsSent) {
            exchange.sendInterim(interim.status, interim.fields)
            interimsSent += 1
        }
        if !share.cookies.isEmpty { cookies = share.cookies }
    }

    func addCookies(to response: inout Response) {
        for cookie in cookies { response.field("Set-Cookie", cookie) }
    }

    /// Passes on an interim response to a HEAD.
    func passOn(_ interim: InterimResponse) {
        guard route.passesCookies, let fields = interim.fields(from: route.url) else { return }
        exchange.sendInterim(interim.status, fields)
    }
}
