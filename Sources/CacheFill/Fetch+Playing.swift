import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// Answers that a player puts together though nothing strong tells that they are of one version: they come from one
/// place.
extension Fetch {
    /// Where the play comes from that this request belongs to.
    var sourceOfPlay: String? {
        guard !asksFirstURL, case .opening(let span, _, _, let validated) = purpose else { return nil }
        // What has a strong validator is asked for at the URL that it is known by: that one says what is there now.
        if let validated, validated.head.rangeCondition != nil { return nil }
        return resource.play(at: filler.settings.clock(), mayBegin: span == nil)?.source.flatMap(redirected)
    }

    /// The place has gone, as signed URLs do.
    /// - Returns: whether it was asked.
    func leavePlay() -> Bool {
        guard knownGeneration == nil, let source = sourceOfPlay, source == askedURL else { return false }
        resource.changePlay { ($0.source, $0.version) = (nil, nil) }
        return true
    }

    /// Whether an answer is one of the play's source that no longer has it; then the first URL is asked.
    func isRefusedBySource(_ head: UpstreamHead) -> Bool {
        guard (400..<500).contains(head.status), head.status != 416, head.status != 429, leavePlay() else {
            return false
        }
        asksFirstURL = true
        askAgain()
        return true
    }

    /// Whether an answer to a request for a part is of another version than those before it, so that only the whole is
    /// one version. Long ones pass all the same: who seeks would have to wait for too much.
    func mustComeWhole(_ head: UpstreamHead, _ answer: Answer) -> Bool {
        guard case .opening(.some, _, true, _) = purpose, !asksWhole, head.status == 206, answer.isKeepable,
            answer.generationHead.rangeCondition == nil,
            let total = answer.total, total <= filler.settings.longestUnknownLength,
            let known = resource.play(at: filler.settings.clock(), mayBegin: false)?.version,
            known != OngoingPlay.Version(head)
        else { return false }
        asksWhole = true
        askAgain()
        return true
    }

    /// An answer's bytes are on their way.
    func beginPlay(_ head: UpstreamHead, _ generation: Generation) {
        guard head.status == 200 || head.status == 206, !generation.isStored || generation.head.rangeCondition == nil
        else { return }
        isOfPlay = true
        resource.beganTransferOfPlay(
            from: redirected(to: head.finalURL), OngoingPlay.Version(head), at: filler.settings.clock())
    }

    func endPlay() {
        guard isOfPlay else { return }
        isOfPlay = false
        resource.endedTransferOfPlay(at: filler.settings.clock())
    }
}
