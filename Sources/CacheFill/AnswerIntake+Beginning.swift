import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// What an origin sends before its answer: redirects, and responses for the client alone whose request is forwarded.
extension AnswerIntake {
    /// The client to which cookies and interim responses go: only where it means the origin, and takes its cookies for
    /// that origin's.
    private var client: FollowerID? {
        guard demand.passesCookies, case .opening(_, let client, _, _) = purpose else { return nil }
        return client
    }

    /// The first answer about a resource alone comes through stored redirects: what follows is requested where that
    /// came from.
    private func usesRedirects(_ request: FetchRequest, for known: Generation?) -> Bool {
        guard case .opening(_, _, true, _) = purpose else { return false }
        return known == nil && demand.resolvedRule.resolver == nil && !request.ignoresRedirects
    }

    /// A fresh redirect of a URL, which the request goes past. Where its target is in back-off, the origin is asked: it
    /// may have another by now.
    func redirect(
        of url: String, _ fields: HeaderFields, _ request: inout FetchRequest, for known: Generation?
    ) -> KnownRedirect? {
        guard usesRedirects(request, for: known), filler.shortResponses.hasRedirects,
            let redirect = filler.redirect(of: url, fields, demand),
            filler.backoff.wait(behind: url, leadingTo: redirect.location) == 0
        else { return nil }
        request.wentThrough(redirectOf: url)
        return redirect
    }

    /// Takes a redirect that the transfer follows. Where one of the origin itself begins a session, its client
    /// continues with that.
    mutating func take(_ redirect: ReceivedRedirect, _ request: FetchRequest, for known: Generation?) {
        if client != nil, known == nil {
            redirectCookies += redirect.fields.cookies(from: redirect.url, for: demand.url)
        }
        guard usesRedirects(request, for: known) else { return }
        filler.note(redirect, demand, status.resource, requestedAt: request.call.time, mark: request.mark)
    }

    func take(_ interim: InterimResponse, for known: Generation?) {
        guard known == nil, let client, let fields = interim.fields(from: demand.url) else { return }
        status.ring {
            $0.ownersShare = $0.ownersShare ?? FetchState.OwnersShare(of: client)
            $0.ownersShare?.take(InterimResponse(status: interim.status, fields: fields, url: interim.url))
        }
    }

    private func noteCookies(of head: UpstreamHead) {
        guard let client else { return }
        let cookies = redirectCookies + head.fields.cookies(from: head.finalURL, for: demand.url)
        guard !cookies.isEmpty else { return }
        status.note {
            $0.ownersShare = $0.ownersShare ?? FetchState.OwnersShare(of: client)
            $0.ownersShare?.cookies = cookies
        }
    }

    // MARK: The first bytes

    /// A new request goes out.
    mutating func beginAnswer() { (redirectCookies, examined, isMedia) = ([], nil, nil) }

    /// Takes the head of an answer.
    /// - Returns: whether it can be accepted now. If not, its first bytes have to be examined.
    mutating func begin(_ head: UpstreamHead, isFromParent: Bool, _ output: borrowing FetchOutput) -> Bool {
        self.isFromParent = isFromParent
        status.note { $0.answer = head.status }
        if output.writer?.generation == nil { noteCookies(of: head) }
        guard mustExamine(head, output) else { return true }
        examined = (head, [])
        return false
    }

    /// Whether only the first bytes can tell if an answer is media: its origin calls it a web page, although media is
    /// expected.
    private func mustExamine(_ head: UpstreamHead, _ output: borrowing FetchOutput) -> Bool {
        guard StrayPage.isPage(head.fields), !demand.resolvedRule.storesPages,
            ContentEncoding.isUncoded(head.fields)
        else { return false }
        let known = known(output)
        guard demand.expectsMedia || known?.whole != nil else { return false }
        // A part of known media is checked by its version.
        return head.status == 200 || head.status == 206 && (known == nil || known === purpose.validated)
    }

    /// Collects the first bytes of an answer until they decide what it is.
    /// - Parameter isLast: whether no more will come.
    /// - Returns: the answer, which can be accepted now, and its bytes; nil if nothing is examined, or too few came.
    mutating func examine(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> (head: UpstreamHead, bytes: [UInt8])? {
        examined?.bytes += bytes
        guard let (head, first) = examined else { return nil }
        let count = Int64(first.count)
        let length = head.status == 206 ? head.contentRange?.total : head.contentLength ?? (isLast ? count : nil)
        let isAll = isLast || count == head.contentLength
        guard let isMedia = StrayPage.isMedia(beginning: first, isAll: isAll, length: length) else { return nil }
        (examined, self.isMedia) = (nil, isMedia)
        return (head, first)
    }
}
