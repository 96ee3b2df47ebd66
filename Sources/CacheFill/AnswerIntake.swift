import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// Takes an origin's answer up: it is checked before a byte is kept, and where its bytes go is prepared. What becomes of
/// the transfer is left to the fetch.
struct AnswerIntake {
    /// What the fetch is to do.
    enum Next {
        /// Its bytes come in.
        case receive
        /// The answer is to be left, and the origin asked once more.
        case askAgain
        /// All that is wanted is known.
        case complete
        case end(FetchEnd)
    }

    let status: SharedFetch
    let purpose: Fetch.Purpose
    let demand: Demand
    let filler: CacheFiller

    private var resource: OpenResource { status.resource }
    private var store: CacheStore { filler.store }

    /// Whether an error answer may be another one next time.
    static func isTransient(_ head: UpstreamHead) -> Bool {
        head.status == 429 || head.status >= 500
    }

    func accept(_ head: UpstreamHead, _ request: inout FetchRequest, _ output: inout FetchOutput) throws(FillError)
        -> Next
    {
        try refuseStrayPage(head, output)
        switch purpose {
        case .opening(_, let owner, let isShared, let validated) where output.generation == nil:
            if request.isRefusedBySource(head) { return .askAgain }
            if let validated, let next = try settled(validated, head, &request) { return next }
            return try open(head, owner: owner, isShared: isShared, &request, &output)
        case .gap(let generation) where output.generation == nil: try fillGap(of: generation, head, &output)
        case .bypass(let generation, let owner) where output.generation == nil:
            try passOn(generation, head, owner: owner, &output)
        case .opening, .gap, .bypass:
            // A transfer that broke goes on.
            guard let generation = purpose.generation ?? output.generation else { break }
            output.resume(surplus: try bringsWhole(head, generation, &output) ? output.position : 0)
        }
        return .receive
    }

    /// A page is no version of media that is known: neither does it answer for it, nor does it end it.
    private func refuseStrayPage(_ head: UpstreamHead, _ output: FetchOutput) throws(FillError) {
        guard let known = purpose.generation ?? output.generation ?? purpose.validated,
            head.replacesMedia(known.head.fields, demand)
        else {
            return
        }
        throw .strayPage(type: StrayPage.pageType(head.fields) ?? "")
    }

    // MARK: An answer about what is stored

    /// What the origin says of the generation that is there.
    /// - Returns: nil where the answer is one about another version, or about none, and handled like a first one.
    private func settled(
        _ generation: Generation, _ head: UpstreamHead, _ request: inout FetchRequest
    ) throws(FillError) -> Next? {
        resource.changePlay { $0.lastUse = filler.settings.clock() }
        switch Freshening.verdict(of: head.answer, on: generation.known, isConditional: !request.isUnconditional) {
        case .holds:
            filler.freshen(generation, by: head, requestedAt: request.time)
            status.validated(generation, status: head.status)
            // Of a whole that comes all the same nothing is wanted.
            return head.status == 304 ? .complete : .end(.completed)
        case .isAboutAnother:
            request.isUnconditional = true
            return .askAgain
        case .error: throw .originStatus(head.status)
        case .unusable(let why): throw .unusable(why)
        case .gone:
            filler.discard(generation, of: resource)
            return nil
        case .another: return nil
        }
    }

    // MARK: The first answer about a resource

    private func open(
        _ head: UpstreamHead, owner: FollowerID, isShared: Bool, _ request: inout FetchRequest,
        _ output: inout FetchOutput
    ) throws(FillError) -> Next {
        let span = request.openingSpan, validated = purpose.validated
        let answer = try OpeningAnswer(
            head, asked: span, demand,
            times: ResponseTimes(head.fields, requestedAt: request.time, receivedAt: filler.now()), store)
        let isContent = head.status == 200 || head.status == 206
        if isContent { filler.balance.note(answer.first.knownLength, of: demand.url) }
        if request.mustComeWhole(head, answer) { return .askAgain }
        if case .pass(let reason) = answer.storing, isShared, reason != .status { status.mayNotStore(reason) }
        let isKept = isShared && answer.isKept
        if isKept, store.isKnown(resource.key, beside: validated) {
            // Imported while the answer was on its way: whoever waits looks again.
            resource.lookAgain(after: nil)
            return .end(.stopped)
        }
        // What is stored is no longer what its origin has, though that must not be stored.
        if !isKept, isContent { validated?.freshen { $0.doubted } }
        let generation = makeGeneration(answer, isKept: isKept)
        if generation.head.isCertainPlaylist || StrayPage.isPlaylist(demand.url) {
            // Until it is read: the next state of the same stream. Whoever comes in the meantime asks for the same.
            let live = validated?.head.live?.answered(at: filler.settings.clock())
            generation.setHead { $0.ofPlaylist(live ?? .unread(at: filler.settings.clock())) }
        }
        let isUnresumable = answer.first.isUnresumable(
            isStored: generation.isStored, condition: generation.head.rangeCondition, isAskedForPart: span != nil)
        let start = answer.first.start(generation.geometry)
        // What others have brought meanwhile is not fetched again, unless what lies beyond comes in no other way.
        output.begin(
            generation, at: start, upTo: answer.first.range.upperBound,
            surplus: start -| answer.first.range.lowerBound, stopsAtPresent: !isUnresumable)
        request.beginPlay(head, generation)
        return publish(generation, answer.first, owner: owner, output.wanted, isUnresumable: isUnresumable)
    }

    private func makeGeneration(_ answer: OpeningAnswer, isKept: Bool) -> Generation {
        if isKept {
            do throws(StoreError) {
                return try store.makeGeneration(
                    resource.key, head: answer.head, length: answer.first.total, partOf: demand.whole)
            } catch {
                store.reportDisk(
                    "keep what is fetched, so responses go on without the cache", error, label: "disk-write")
                status.foundNoRoom()
            }
        }
        return store.makeBuffer(resource.key, head: answer.head, length: answer.first.knownLength)
    }

    /// Tells of what an opening has found: it is the resource's, or passes by.
    private func publish(
        _ generation: Generation, _ answer: FirstAnswer, owner: FollowerID, _ range: Range<Int64>, isUnresumable: Bool
    ) -> Next {
        guard generation.isStored else {
            resource.passes(
                .passing(generation, owner: owner, part: answer.isPart ? answer.range : nil, total: answer.total),
                by: status, range, furthest: filler.settings.bufferReadAhead, isUnresumable: isUnresumable)
            return .receive
        }
        let (isCurrent, previous) = resource.opened(
            generation, by: status, range, furthest: filler.readAhead, isUnresumable: isUnresumable)
        guard isCurrent else {
            // Invalidated, removed or imported while the answer was on its way: whoever waits looks again.
            store.retire(generation)
            return .end(.stopped)
        }
        if let previous, previous !== generation { store.retire(previous) }
        return .receive
    }

    // MARK: An answer about a generation that is known

    private func fillGap(
        of generation: Generation, _ head: UpstreamHead, _ output: inout FetchOutput
    ) throws(FillError) {
        guard try bringsWhole(head, generation, &output) else { return output.begin(generation, stopsAtPresent: true) }
        // A full body is used as such: from its first byte, past what is present.
        guard let length = generation.length else { throw .changed }
        output.begin(generation, at: 0, upTo: length, stopsAtPresent: false)
        status.moved(to: output.wanted)
    }

    private func passOn(
        _ generation: Generation, _ head: UpstreamHead, owner: FollowerID, _ output: inout FetchOutput
    ) throws(FillError) {
        let isWhole = try bringsWhole(head, generation, &output)
        let buffer = store.makeBuffer(resource.key, head: generation.head, length: generation.length)
        output.begin(buffer, surplus: isWhole ? output.position : 0, stopsAtPresent: false)
        resource.passes(
            .passing(buffer, owner: owner, part: nil, total: generation.length), by: status, output.wanted,
            furthest: filler.settings.bufferReadAhead, isUnresumable: true)
    }

    /// Whether an answer brings the whole of this very generation; else it brings what was asked for of it.
    private func bringsWhole(
        _ head: UpstreamHead, _ generation: Generation, _ output: inout FetchOutput
    ) throws(FillError) -> Bool {
        switch Combining.brought(by: head.answer, of: generation.known, from: output.position) {
        case .part(let range):
            output.expect(range)
            return false
        case .whole: return true
        case .anotherVersion:
            filler.discard(generation, of: resource)
            throw .changed
        case .unusable(let why): throw .unusable(why)
        case .status: throw .originStatus(head.status)
        }
    }
}
