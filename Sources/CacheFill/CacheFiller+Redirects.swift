import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// Redirects that are fresh save their request (RFC 9111 §3, §4).
extension CacheFiller {
    /// A fresh redirect of a URL, for a request with these fields.
    func redirect(of url: String, _ fields: HeaderFields, _ demand: Demand) -> KnownRedirect? {
        // With cookies it may lead elsewhere.
        guard let key = key(of: url), demand.cookies(in: cookies, or: key)?.isEmpty != false else { return nil }
        for redirect in shortResponses.redirects(of: url, under: key) {
            let head = redirect.head
            guard head.variant.of(fields, fingerprint: store.fingerprint) == head.variant,
                let freshness = redirect.freshness(demand.resolvedRule, now: now(), instant: instant),
                let location = head.fields["Location"]
            else { continue }
            let directives = head.reading(demand.resolvedRule.terms).directives
            guard directives.permitsUse(of: head.fields, head.variant, isAuthorized: demand.isAuthorized) else {
                continue
            }
            let reuse = Reuse.decide(demand.directives, response: directives.obeyed, freshness, isOffline: false)
            guard reuse == .fresh else { return nil }
            return KnownRedirect(location: location, status: head.status, isPublic: head.isPublic)
        }
        return nil
    }

    /// Stores a redirect, if that is allowed.
    func note(
        _ redirect: ReceivedRedirect, _ demand: Demand, _ resource: OpenResource, requestedAt: Int64, mark: Int
    ) {
        // A session begins there: the client would go on without it.
        guard redirect.fields["Set-Cookie"] == nil, let key = key(of: redirect.url),
            demand.cookies(in: cookies, or: key)?.isEmpty != false
        else { return }
        let receivedAt = now(), terms = demand.resolvedRule.terms
        let answer = UpstreamHead(
            status: redirect.status, fields: redirect.fields, finalURL: redirect.url, contentLength: nil,
            scope: redirect.isPublic ? .public : .private, receivedAt: receivedAt)
        let head = GenerationHead(
            status: redirect.status,
            fields: answer.keptFields(receivedAt: receivedAt).storable(under: terms).worthKeeping,
            variant: Variant(
                ofShort: redirect.fields, status: redirect.status, request: redirect.sent, terms,
                fingerprint: store.fingerprint),
            finalURL: redirect.url, isPublic: redirect.isPublic, storedAt: receivedAt,
            times: ResponseTimes(redirect.fields, requestedAt: requestedAt, receivedAt: receivedAt))
        let freshness = head.freshness(ttl: nil, head.reading(terms), now: receivedAt, instant: instant)
        guard head.fields["Location"] != nil,
            ShortStoring.isStorable(
                status: redirect.status, fields: redirect.fields, length: 0, freshness,
                Storing.Request(
                    demand.directives,
                    isAuthorized: redirect.sent["Authorization"] != nil && demand.isAuthorized),
                demand.resolvedRule)
        else { return }
        shortResponses.store(ShortResponse(to: redirect.url, head, []), .redirect, under: key) {
            resource.changes == mark
        }
    }

    /// Forgets where a URL redirects.
    func forgetRedirect(of url: String) {
        if let key = key(of: url) { shortResponses.removeRedirect(of: url, under: key) }
    }

    private func key(of url: String) -> CacheKey? { (try? OriginURL(url: url)).map { policy.value.resolve($0).key } }
}
