import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// How a fetch asks its origin: at which URL, for what, and under which condition. Its answers may change that. Bound
/// to the fetch's loop.
///
/// Answers that a player puts together though nothing strong tells that they are of one version have to come from one
/// place: that of the resource's *play*.
struct FetchRequest {
    let purpose: Fetch.Purpose
    let demand: Demand
    let resource: OpenResource
    let filler: CacheFiller
    /// What was asked last; empty before.
    private(set) var url = ""
    /// When that was, in seconds since 1970.
    private(set) var time: Int64 = 0
    /// What is stored is asked for as if it were not there: the origin has answered about another version.
    var isUnconditional = false
    /// Where the first one redirected to refuses by now (signed URLs expire), the first is asked again.
    private var asksFirstURL = false
    /// Each answer is another version: only the whole, in one, is one.
    private var asksWhole = false
    /// Whether the resource's play counts this transfer.
    private var isOfPlay = false

    init(_ purpose: Fetch.Purpose, _ demand: Demand, _ resource: OpenResource, _ filler: CacheFiller) {
        (self.purpose, self.demand, self.resource, self.filler) = (purpose, demand, resource, filler)
    }

    /// What an opening asks for; nil for the whole.
    var openingSpan: UpstreamRequest.Span? {
        if !asksWhole, case .opening(let span, _, _, _) = purpose { span } else { nil }
    }

    /// The next request.
    /// - Parameters:
    ///   - known: the generation whose bytes have to come; nil until an opening has found it.
    ///   - wanted: the bytes of it; without an upper end while that is unknown.
    func make(for known: Generation?, _ wanted: Range<Int64>) -> UpstreamRequest {
        let url = known.map(urlOfGaps) ?? sourceOfPlay ?? demand.url.absolute
        var fields = known == nil ? demand.openingFields(to: url) : demand.fields(to: url)
        var span = openingSpan
        if let known {
            // RFC 9110 §13.1.5: with If-Range the origin sends the whole where the part would be another version's.
            if let condition = known.head.rangeCondition { fields.append("If-Range", condition) }
            span = wanted.upperBound == .max ? .from(wanted.lowerBound) : .bounded(wanted)
        } else if let validated = purpose.validated, !isUnconditional {
            // RFC 9110 §13.2.2: the condition is looked at before the range; the part comes only where it is of another
            // version.
            fields.lines += Freshening.conditions(for: validated.head.fields)?.lines ?? []
        }
        return UpstreamRequest(url: url, method: .get, span: span, fields: fields, confined: demand.confined)
    }

    /// The request goes out.
    mutating func asked(_ url: String, at time: Int64) { (self.url, self.time) = (url, time) }

    /// Origins that stitch each answer anew do so behind a redirect: the gaps come from where the rest came from.
    private func urlOfGaps(_ generation: Generation) -> String {
        asksFirstURL ? demand.url.absolute : redirected(to: generation.head.finalURL) ?? demand.url.absolute
    }

    /// A URL, if it is where the demanded one redirects to.
    private func redirected(to final: String) -> String? {
        guard final != demand.url.absolute, let finalURL = try? OriginURL(url: final) else { return nil }
        // No redirect, but another URL of the same key, by which somebody else asked: perhaps with a token that has
        // expired.
        let policy = filler.policy.value
        return policy.resolve(finalURL).key == policy.resolve(demand.url).key ? nil : final
    }

    // MARK: Refusals

    /// Gaps were asked for where the first answer had come from, and that refuses.
    /// - Returns: whether the first URL is to be asked instead.
    mutating func turnsToFirstURL(after error: FillError, for known: Generation?) -> Bool {
        guard case .originStatus(let status) = error, (400..<500).contains(status), status != 429, !asksFirstURL,
            let known, urlOfGaps(known) != demand.url.absolute
        else { return false }
        asksFirstURL = true
        return true
    }

    /// Whether an answer is one of the play's source that no longer has it; then the first URL is to be asked.
    mutating func isRefusedBySource(_ head: UpstreamHead) -> Bool {
        (400..<500).contains(head.status) && head.status != 416 && head.status != 429 && leavesPlay()
    }

    /// Where the place that the play comes from was asked in vain, it has gone, as signed URLs do.
    /// - Returns: whether it was; then the first URL is to be asked.
    @discardableResult
    mutating func leavesPlay() -> Bool {
        guard let source = sourceOfPlay, source == url else { return false }
        resource.changePlay { ($0.source, $0.version) = (nil, nil) }
        asksFirstURL = true
        return true
    }

    // MARK: Plays

    /// Where the play comes from that this request belongs to.
    private var sourceOfPlay: String? {
        guard !asksFirstURL, case .opening(let span, _, _, let validated) = purpose else { return nil }
        // What has a strong validator is asked for at the URL that it is known by: that one says what is there now.
        if let validated, validated.head.rangeCondition != nil { return nil }
        return resource.play(at: filler.settings.clock(), mayBegin: span == nil)?.source.flatMap(redirected)
    }

    /// Whether an answer to a request for a part is of another version than those before it, so that only the whole is
    /// one version, and is to be asked for. Long ones pass all the same: who seeks would have to wait for too much.
    mutating func mustComeWhole(_ head: UpstreamHead, _ answer: OpeningAnswer) -> Bool {
        guard case .opening(.some, _, true, _) = purpose, !asksWhole, head.status == 206, answer.storing == .store,
            answer.head.rangeCondition == nil,
            let total = answer.first.total, total <= filler.settings.longestUnknownLength,
            let known = resource.play(at: filler.settings.clock(), mayBegin: false)?.version,
            known != OngoingPlay.Version(head)
        else { return false }
        asksWhole = true
        return true
    }

    /// An answer's bytes are on their way.
    mutating func beginPlay(_ head: UpstreamHead, _ generation: Generation) {
        guard head.status == 200 || head.status == 206, !generation.isStored || generation.head.rangeCondition == nil
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
