import CachePolicy
import Upstream

/// What an origin sends to the client whose request is forwarded: only where that client means the origin, and takes
/// its cookies for that origin's.
extension Fetch {
    private var client: FollowerID? {
        guard demand.passesCookies, case .opening(_, let client, _, _) = purpose else { return nil }
        return client
    }

    func noteCookies(of head: UpstreamHead) {
        guard let client, output.writer?.generation == nil else { return }
        let cookies = redirectCookies + head.fields.cookies(from: head.finalURL, for: demand.url)
        guard !cookies.isEmpty else { return }
        status.note {
            $0.ownersShare = $0.ownersShare ?? OwnersShare(of: client)
            $0.ownersShare?.cookies = cookies
        }
    }

    /// Where a redirect of the origin itself begins a session, its client goes on with that.
    func noteCookies(of redirect: ReceivedRedirect) {
        guard client != nil, knownGeneration == nil else { return }
        redirectCookies += redirect.fields.cookies(from: redirect.url, for: demand.url)
    }

    package func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse) {
        guard !hasEnded, knownGeneration == nil, let client, let fields = interim.fields(from: demand.url) else {
            return
        }
        status.ring {
            $0.ownersShare = $0.ownersShare ?? OwnersShare(of: client)
            $0.ownersShare?.take(InterimResponse(status: interim.status, fields: fields, url: interim.url))
        }
    }
}
