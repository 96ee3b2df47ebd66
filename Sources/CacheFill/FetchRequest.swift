import Activity
import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// Builds a fetch's requests: the URL, the range and the conditions. Answers may change them. Bound to the fetch's
/// loop.
///
/// A player may combine answers although no strong validator shows that they are of one version. Such answers have to
/// come from the same URL: the source of the resource's *play*.
struct FetchRequest {
    let purpose: FetchOrder.Purpose
    let demand: Demand
    let resource: OpenResource
    let filler: CacheFiller
    /// Whether, when and from whom it is requested.
    var call: OriginCall
    /// `OpenResource.changes` when the last request was sent.
    private(set) var mark = 0
    /// Set after an answer about another version: the next request has no conditions.
    var isUnconditional = false
    /// Set when the redirect target refuses (signed URLs expire): request the first URL again.
    private var requestsFirstURL = false
    /// Set if each answer is another version, so that only one answer with the whole is consistent; or if the origin's
    /// parts cannot be used.
    private(set) var requestsWhole = false
    /// Whether the last request was for a part.
    private var requestsPart = false
    /// The URLs of which this request takes a redirect for granted.
    private var redirects: [String] = []
    /// Set once they have led nowhere.
    private(set) var ignoresRedirects = false
    /// Whether the resource's play counts this transfer.
    private var isOfPlay = false
    /// Where the media is, if not at the demand's URL.
    private(set) var moved: MovedMedia

    init(_ order: FetchOrder, _ origins: LoopOrigins) {
        (purpose, demand, resource, filler) = (order.purpose, order.demand, order.status.resource, origins.filler)
        moved = MovedMedia(demand, filler.locations)
        let audience: OriginCall.Retry.Audience =
            if purpose.validated != nil {
                .whoHasIt
            } else if order.isForDownload && order.status.isForDownloads {
                // A player may have joined on the way to this loop.
                .downloads
            } else {
                order.isMidway ? .midway : .whoHasNothing
            }
        call = OriginCall(origins, ParentTurns(demand.resolvedRule.parents, for: resource.key), for: audience)
    }

    /// The range that an opening requests; nil for the whole.
    var openingSpan: UpstreamRequest.Span? {
        if !requestsWhole, case .opening(let span, _, _, _) = purpose { span } else { nil }
    }

    /// The next request.
    /// - Parameters:
    ///   - known: the generation that the bytes must belong to; nil until an opening has found it.
    ///   - wanted: the range of it that is wanted; without an upper end while the length is unknown.
    ///   - overlap: how many bytes before it to request as well, to compare them.
    ///   - standing: how its resource is at this moment.
    mutating func make(
        for known: Generation?, _ wanted: Range<Int64>, overlap: Int64, _ standing: SharedFetch.Standing
    ) -> UpstreamRequest {
        let source = source(of: standing.play)
        let cookies = demand.cookies(in: filler.cookies, or: resource.key)
        let parent =
            mayUseParents(for: known, source) && cookies?.isEmpty != false ? call.choose() : call.passParents()
        // A parent follows redirects by itself.
        let url = parent == nil ? known.map(urlOfGaps) ?? source ?? firstURL : firstURL
        var fields = known == nil ? demand.openingFields(to: url) : demand.fields(to: url)
        moved.media?.location.addHeaders(to: &fields, for: url)
        var span = openingSpan
        if let known, requestsWhole, known.head.rangeCondition != nil {
            span = nil
        } else if let known {
            // RFC 9110 §13.1.5: with If-Range, the origin sends the whole if the part would be of another version.
            if let condition = known.head.rangeCondition { fields.append("If-Range", condition) }
            let start = wanted.lowerBound -| overlap
            span = wanted.upperBound == .max ? .from(start) : .bounded(start..<wanted.upperBound) // no trap: earlier
        } else if let validated = purpose.validated, !isUnconditional {
            // RFC 9110 §13.2.2: the condition is evaluated before the range, so the part comes only if it is of another
            // version.
            fields.lines += Freshening.conditions(for: validated.head.fields)?.lines ?? []
        }
        // RFC 9111 §4.4: what this proxy has passed to the origin, the parent has not seen.
        if parent != nil, known == nil, purpose.validated == nil, standing.changes > 0 { fields.demandValidation() }
        var request = UpstreamRequest(
            url: url, method: .get, span: span, fields: fields,
            confined: demand.confined + (moved.media?.location.confined ?? []))
        request.parent = parent?.url
        request.client = demand.client
        // A parent serves others, too.
        if parent == nil { request.cookies = cookies }
        return request
    }

    /// Where the media has moved, and where answers differ although no validator shows it, the origin alone has the
    /// right bytes.
    private func mayUseParents(for known: Generation?, _ source: String?) -> Bool {
        !demand.resolvedRule.parents.isEmpty && moved.media?.location == nil && source == nil
            && known.map { $0.head.rangeCondition != nil } ?? true
    }

    /// Records the request that is sent now.
    mutating func begin(_ request: UpstreamRequest, for reason: FetchReason, _ standing: SharedFetch.Standing) {
        (mark, requestsPart, redirects) = (standing.changes, request.span != nil, [])
        call.begin(request, for: reason)
    }

    /// Requests gaps where the first bytes came from: origins that assemble each answer individually do so behind a
    /// redirect.
    private func urlOfGaps(_ generation: Generation) -> String {
        // Media that has moved is no longer where the first bytes came from.
        let hasMoved = moved.media?.location != nil && !moved.isWhereItBegan
        return requestsFirstURL || hasMoved ? firstURL : redirected(to: generation.head.finalURL) ?? firstURL
    }

    /// The URL that the client named, or the one at which its media is now.
    private var firstURL: String { moved.media?.location.url.absolute ?? demand.address }

    /// The URL, if the requested one really redirects there.
    private func redirected(to final: String) -> String? {
        guard final != demand.address, final != firstURL, let finalURL = try? OriginURL(url: final) else {
            return nil
        }
        // The same key means no redirect: another client used another URL, perhaps with a token that has expired.
        let policy = filler.policy.value
        return policy.resolve(finalURL).key == policy.resolve(demand.url).key ? nil : final
    }

    /// After a part that cannot be used: without a range, an origin has less to get wrong.
    /// - Returns: whether to request the whole; not if its bytes could not be joined to what is known.
    mutating func turnsToWhole(for known: Generation?) -> Bool {
        guard requestsPart, known.map({ $0.head.rangeCondition != nil }) ?? true else { return false }
        requestsWhole = true
        return true
    }

    /// Finds out where the media is, before a request. If it waits, the request has to be made again then.
    /// - Returns: nil if it is at the demand's URL.
    mutating func find(
        for known: Generation?, waiter: @escaping @Sendable (Result<LocatedMedia, ResolverFailure>) -> Void
    ) -> KnownLocation? {
        moved.find(isGap: known != nil, waiter: waiter)
    }

    /// How the fetch ends if its page turned out to have media that is cached under another key than the resource's,
    /// as what is there now must not be stored, or joined to stored bytes, under a key that other pages share.
    func endOfAnotherKey(for known: Generation?) -> FetchEnd? {
        guard demand.resolvedRule.resolver != nil,
            !resource.key.isOf(filler.policy.value.resolve(demand.url).key)
        else { return nil }
        // The stored bytes stay: they are still those of the other pages.
        guard known == nil else { return .failed(.changed) }
        // What goes to one client alone is not stored.
        if case .opening(_, _, isShared: false, _) = purpose { return nil }
        // Those who wait look under the key that is right now.
        return .stopped
    }

    // MARK: Failures

    /// What follows a failure.
    enum Next {
        /// Request it elsewhere, at once.
        case elsewhere(after: ParentProxy)
        case again(OriginCall.Turn)
    }

    /// - Parameter isTransient: whether the same request may succeed later.
    mutating func next(after error: FillError, isTransient: Bool, _ output: borrowing FetchOutput) -> Next {
        let known = purpose.generation ?? output.writer?.generation, head = known?.head, overlap = output.overlap
        let failure = OriginCall.Retry.Failure(
            isTransient: isTransient,
            canContinue: head.map { $0.status == 200 && ($0.rangeCondition != nil || overlap > 0) } ?? true,
            isNeeded: purpose.validated == nil || head != nil,
            // A download that starts over would meet the next expiry at the same place.
            isForDownloads: output.status.isForDownloads && !demand.resolvedRule.mayMove, delivered: output.delivered)
        if failure.canContinue || call.parent == nil, let parent = call.leaveParent(after: error) {
            return .elsewhere(after: parent)
        }
        let startsOver = known == nil && leavesShortcuts() && !isTransient
        let turn = call.turn(after: error, failure)
        if turnsToFirstURL(after: error, for: known) { return .again(.now) }
        if let seconds = leavesExpiredLink(after: error, for: known, delivered: failure.delivered) {
            return .again(seconds > 0 ? .later(afterSeconds: seconds) : .now)
        }
        return .again(startsOver ? .now : turn)
    }

    /// Checks whether the redirect target has refused a gap.
    /// - Returns: whether to request the first URL instead.
    private mutating func turnsToFirstURL(after error: FillError, for known: Generation?) -> Bool {
        guard case .originStatus(let status) = error, (400..<500).contains(status), status != 429, !requestsFirstURL,
            let known, urlOfGaps(known) != firstURL
        else { return false }
        requestsFirstURL = true
        return true
    }

    /// Whether the play's source no longer has the resource; then the first URL has to be requested.
    mutating func isRefusedBySource(_ head: UpstreamHead) -> Bool {
        (400..<500).contains(head.status) && head.status != 416 && head.status != 429 && leavesPlay()
    }

    /// Forgets the play's source if the last request went there in vain, as signed URLs expire.
    /// - Returns: whether it did; then the first URL has to be requested.
    private mutating func leavesPlay() -> Bool {
        guard let source = source(of: resource.play), source == call.url else { return false }
        resource.changePlay { ($0.source, $0.version) = (nil, nil) }
        requestsFirstURL = true
        return true
    }

    /// The request goes past a URL that is known to redirect.
    mutating func wentThrough(redirectOf url: String) { redirects.append(url) }

    /// Whether the target of a redirect that was taken for granted refuses: signed links may expire before their
    /// redirect does. Then the first URL has to be requested.
    mutating func isRefusedBehindRedirect(_ head: UpstreamHead) -> Bool {
        head.status >= 400 && head.status != 416 && head.status != 429 && leavesRedirects()
    }

    /// Forgets the redirects that this request has taken for granted.
    /// - Returns: whether there are any.
    private mutating func leavesRedirects() -> Bool {
        guard !redirects.isEmpty else { return false }
        for url in redirects { filler.forgetRedirect(of: url) }
        (redirects, ignoresRedirects) = ([], true)
        return true
    }

    /// Forgets by which ways past the first URL the last request has failed.
    /// - Returns: whether there are any; then the first URL has to be requested, once.
    private mutating func leavesShortcuts() -> Bool {
        let hasLeftPlay = leavesPlay()
        return leavesRedirects() || hasLeftPlay
    }

    /// Checks whether the link to the media may have expired, and a fresh one is worthwhile.
    /// - Parameter delivered: how many bytes the fetch has delivered.
    /// - Returns: seconds after which to request the media where it is then; nil if the refusal counts.
    private mutating func leavesExpiredLink(after error: FillError, for known: Generation?, delivered: Int64) -> Double?
    {
        guard case .originStatus(let status) = error else { return nil }
        return leavesExpiredLink(status: status, isGap: known != nil, delivered: delivered)
    }

    /// Checks the same for the answer to an opening.
    mutating func isRefusedAtLocation(_ head: UpstreamHead) -> Bool {
        leavesExpiredLink(status: head.status, isGap: false, delivered: 0) != nil
    }

    private mutating func leavesExpiredLink(status: Int, isGap: Bool, delivered: Int64) -> Double? {
        guard MediaLocation.isExpired(status: status) else { return nil }
        return moved.leave(after: status, isGap: isGap, delivered: delivered)
    }

    // MARK: Plays

    /// The source of the resource's play, if this request belongs to that.
    private func source(of play: OngoingPlay?) -> String? {
        guard let play, !requestsFirstURL, case .opening(let span, _, _, let validated) = purpose else { return nil }
        // With a strong validator the resource's own URL is requested: that one tells the current version.
        if let validated, validated.head.rangeCondition != nil { return nil }
        return play.continues(at: filler.settings.clock(), mayBegin: span == nil)
            ? play.source.flatMap(redirected) : nil
    }

    /// Whether a partial answer is of another version than earlier ones, so that only the whole in one answer is
    /// consistent. Long resources pass through all the same: a player that seeks would wait too long.
    mutating func mustComeWhole(_ head: UpstreamHead, _ answer: OpeningAnswer) -> Bool {
        guard case .opening(.some, _, true, _) = purpose, !requestsWhole, head.status == 206, answer.storing == .store,
            answer.head.rangeCondition == nil,
            let total = answer.first.total, total <= filler.settings.longestUnknownLength,
            let play = resource.play, play.continues(at: filler.settings.clock(), mayBegin: false),
            let known = play.version, known != OngoingPlay.Version(head)
        else { return false }
        requestsWhole = true
        return true
    }

    /// The bytes of an answer are on their way.
    /// - Parameter condition: the value for `If-Range` in requests for the rest of them.
    mutating func beginPlay(_ head: UpstreamHead, _ generation: Generation, condition: String?) {
        moved.begin()
        guard head.status == 200 || head.status == 206, !generation.isStored || condition == nil
        else { return }
        isOfPlay = true
        resource.beganTransferOfPlay(
            from: redirected(to: head.finalURL), OngoingPlay.Version(head), at: filler.settings.clock())
    }

    mutating func endPlay() {
        guard isOfPlay else { return }
        isOfPlay = false
        resource.endedTransferOfPlay(at: filler.settings.clock())
    }
}
