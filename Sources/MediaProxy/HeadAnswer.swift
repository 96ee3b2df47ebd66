import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Playlists
import Upstream

/// Passes a HEAD to the origin, and its answer on; or validates what is stored by it. Loop-bound.
final class HeadAnswer {
    private let answer: MediaAnswer
    private let request: MediaRequest
    /// The stored generation to validate; nil if there is none.
    private let validated: Generation?
    private let requestedAt: Int64
    private var fetch: ResponseFetch?

    init(_ answer: MediaAnswer, validating validated: Generation?) {
        (self.answer, request, self.validated) = (answer, answer.request, validated)
        requestedAt = answer.request.filler.filler.now()
    }

    func start() {
        request.exchange.onAbort { [answer] in answer.abandon() }
        if validated == nil {
            answer.noteForward(request.resolvedRule.bypasses ? .bypass : .uriMiss)
            request.count(as: \.misses)
        }
        fetch = request.filler.head(request.demand, validating: validated, report: { [request] in request.passOn($0) })
        {
            [self] result in
            fetch = nil
            switch result {
            case .success(let response): received(response.head)
            case .failure(let error):
                if case .offline = error { request.proxy.metrics.errors.add(error.kind.rawValue) }
                answer.answerInDoubt(after: error)
            }
        }
    }

    func cancel() {
        fetch?.cancel()
        fetch = nil
    }

    private func received(_ head: UpstreamHead) {
        request.outcome.forwardStatus = head.status
        if request.route.passesCookies {
            request.cookies = head.fields.cookies(from: head.finalURL, for: request.route.url)
        }
        if let validated, answers(with: validated, after: head) { return }
        // A GET would get the rewritten text of this playlist or feed, so it has to be fetched.
        mayBeRewritten(head) ? answer.fetchListing(validating: validated) : pass(head)
    }

    /// - Returns: whether the stored generation answers, or an error.
    private func answers(with validated: Generation, after head: UpstreamHead) -> Bool {
        let filler = request.filler.filler, isKept = request.resolvedRule.playsKept && validated.isKept
        switch head.status {
        case 200 where head.replacesMedia(validated.head.fields, isKept: isKept, request.demand):
            request.outcome.forwardStatus = nil
            answer.answerInDoubt(after: .strayPage(StrayPage.name(of: head.fields)))
        case 200, 304:
            if filler.judge(validated, byHead: head, request.demand, requestedAt: requestedAt) {
                answer.accept(validated)
            } else if head.status == 304 {
                // It is about a version that is not cached.
                answer.passHead()
            } else {
                return false
            }
        case let status
        where Reuse.isError(
            status: status, isKept: isKept,
            isRefusable: request.cacheTerms.kind != .private || !validated.isComplete):
            answer.answerInDoubt(after: .originStatus(status))
        case let status where Reuse.isGone(status: status):
            filler.discard(validated, of: answer.opening.resource)
            return false
        default: return false
        }
        return true
    }

    /// Whether a GET may get a rewritten text, by the head that its origin sends for HEAD.
    private func mayBeRewritten(_ head: UpstreamHead) -> Bool {
        guard head.status == 200, let type = head.fields["Content-Type"] else { return false }
        guard head.contentLength.map({ $0 <= PlaylistLimits.bytes }) ?? true else { return false }
        return Listing.isCertain(type: type) || FeedRecognition.mayBe(type: type)
    }

    private func pass(_ head: UpstreamHead) {
        var fields = head.fields
        fields.removeUnfitForClients()
        fields.remove("Content-Range")
        var response = Response(head.status, length: head.contentLength)
        let site = fields.takeSiteFields()
        response.fields(fields)
        request.addCookies(to: &response)
        request.proxy.addFormFields(
            site, ContentSafety(head.fields), isPublic: head.isFromPublicAddress, for: request, to: &response)
        response.hasDate = fields["Date"] != nil
        let times = ResponseTimes(
            head.fields, requestedAt: requestedAt, receivedAt: request.filler.filler.now())
        if times.initialAge > 0 { response.field("Age", min(times.initialAge, 1 << 31)) }
        response.cacheStatus(request.outcome)
        answer.end()
        request.exchange.respond(response)
    }
}
