import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// Checks an origin's answer before a byte of it is kept, and prepares the output that its bytes go to. The caller, the
/// fetch, carries out the result on the transfer.
struct AnswerIntake {
    /// The fetch's next step.
    enum Next {
        /// Take in the body.
        case receive
        /// Drop this answer and send another request.
        case requestAgain
        /// Nothing more is needed: end the fetch, but let the transfer finish.
        case complete
        case end(FetchEnd)
    }

    let status: SharedFetch
    let purpose: FetchOrder.Purpose
    let demand: Demand
    let filler: CacheFiller
    /// Whether a parent gave the answer. The origin, which is then requested, knows better which version is current.
    var isFromParent = false
    /// What the redirects before the answer set for the client.
    var redirectCookies: [String] = []
    /// An answer whose first bytes decide what it is.
    var examined: (head: UpstreamHead, bytes: [UInt8])?
    /// What the first bytes say of an answer that its origin calls a web page; nil if they were not examined.
    var isMedia: Bool?

    /// Whether the same request may get a different status later.
    static func isTransient(_ head: UpstreamHead) -> Bool {
        head.status == 429 || head.status >= 500
    }

    func known(_ output: borrowing FetchOutput) -> Generation? {
        purpose.generation ?? output.writer?.generation ?? purpose.validated
    }

    func accept(_ head: UpstreamHead, _ request: inout FetchRequest, _ output: inout FetchOutput) throws(FillError)
        -> Next
    {
        try refuseStrayPage(head, output)
        if head.status == 200 || head.status == 206 || head.status == 304 { request.moved.worked() }
        do throws(FillError) { return try take(head, &request, &output) } catch {
            // An origin that encodes its parts encodes the whole, too. Another parent, or the origin, knows better than
            // this one.
            guard case .unusable = error, head.status == 206, ContentEncoding.isUncoded(head.fields), !isFromParent,
                request.turnsToWhole(for: purpose.generation ?? output.writer?.generation)
            else { throw error }
            return .requestAgain
        }
    }

    private func take(_ head: UpstreamHead, _ request: inout FetchRequest, _ output: inout FetchOutput)
        throws(FillError)
        -> Next
    {
        switch purpose {
        case .opening(_, let owner, let isShared, let validated) where output.writer?.generation == nil:
            if request.isRefusedBySource(head) || request.isRefusedAtLocation(head)
                || request.isRefusedBehindRedirect(head)
            {
                return .requestAgain
            }
            if let validated, let next = try decided(validated, head, &request) { return next }
            return try open(head, owner: owner, isShared: isShared, &request, &output)
        case .gap(let generation) where output.writer?.generation == nil: try fillGap(of: generation, head, &output)
        case .bypass(let generation, let owner) where output.writer?.generation == nil:
            try passOn(generation, head, owner: owner, &output)
        case .opening, .gap, .bypass:
            // Another transfer continues one that broke off.
            guard let generation = purpose.generation ?? output.writer?.generation else { break }
            if Combining.ends(generation.known, at: output.position, by: head.answer) {
                output.keepShort()
                output.writer?.finish()
                return .end(.completed)
            }
            let isWhole = try deliversWhole(head, generation, &output)
            output.resume(surplus: isWhole ? output.position : output.overlap)
        }
        return .receive
    }

    /// A web page that arrives in place of known media is an error: it neither updates nor replaces the stored
    /// generation.
    private func refuseStrayPage(_ head: UpstreamHead, _ output: borrowing FetchOutput) throws(FillError) {
        guard let known = known(output),
            isMedia.map({ !$0 }) ?? head.replacesMedia(known.head.fields, isKept: playsKept(known), demand)
        else { return }
        throw .strayPage(StrayPage.name(of: head.fields))
    }

    private func playsKept(_ generation: Generation) -> Bool { demand.resolvedRule.playsKept && generation.isKept }

    // MARK: Answers to a validation

    /// Applies an origin's answer to a conditional request about a stored generation.
    /// - Returns: nil if the answer delivers another version, or none, and is handled like the answer to a first
    ///   request.
    private func decided(
        _ generation: Generation, _ head: UpstreamHead, _ request: inout FetchRequest
    ) throws(FillError) -> Next? {
        status.resource.changePlay { $0.lastUse = filler.settings.clock() }
        let verdict = Freshening.verdict(
            of: head.answer, on: generation.known, isConditional: !request.isUnconditional,
            isKept: playsKept(generation),
            isRefusable: demand.resolvedRule.terms.kind != .private || !generation.isComplete)
        // RFC 9111 §4: of another version a parent may have the older one, or an error that is over. The origin knows.
        if isFromParent, verdict != .holds, filler.isOlder(head, than: generation, requestedAt: request.call.time) {
            throw .changed
        }
        switch verdict {
        case .holds:
            filler.freshen(generation, by: head, demand, requestedAt: request.call.time)
            status.ring { $0.opening = .validated(generation, status: head.status) }
            // If the origin sent the body nonetheless, stop the transfer: the stored bytes are valid.
            return head.status == 304 ? .complete : .end(.completed)
        case .isAboutAnother:
            request.isUnconditional = true
            return .requestAgain
        case .error: throw .originStatus(head.status)
        case .unusable(let why): throw .unusable(why)
        case .gone:
            filler.discard(generation, of: status.resource)
            return nil
        case .another: return nil
        }
    }

    /// If a version could not be validated that is to replace one that is kept, those who wait look again, and find
    /// that one.
    func returnsToFormer(_ output: borrowing FetchOutput) -> Bool {
        guard let validated = purpose.validated, output.writer == nil else { return false }
        return filler.returnsToFormer(of: validated, in: status.resource)
    }

    // MARK: The first answer about a resource

    private func open(
        _ head: UpstreamHead, owner: FollowerID, isShared: Bool, _ request: inout FetchRequest,
        _ output: inout FetchOutput
    ) throws(FillError) -> Next {
        let span = request.openingSpan, validated = purpose.validated
        let answer = try OpeningAnswer(
            head, requested: span, demand,
            times: ResponseTimes(head.fields, requestedAt: request.call.time, receivedAt: filler.now()),
            fileName: request.moved.media?.location.fileName, setsCookies: !redirectCookies.isEmpty,
            isMedia: isMedia == true, filler.store)
        let isContent = head.status == 200 || head.status == 206
        if [401, 403].contains(head.status), demand.keepsCookies, let whole = demand.whole { filler.doubt(whole) }
        if isContent { filler.balance.note(answer.first.knownLength, of: demand.url) }
        if request.mustComeWhole(head, answer) { return .requestAgain }
        if case .pass(let reason) = answer.storing, isShared, reason != .status { status.note { $0.passing = reason } }
        var isKept = isShared && answer.first.isKept(answer.storing, condition: answer.head.rangeCondition)
        if isKept, validated?.isHidden != true, filler.store.isKnown(status.resource.key, beside: validated) {
            // The resource was imported while the answer was on its way: waiting requests look it up again.
            status.resource.lookAgain(after: nil)
            return .end(.stopped)
        }
        // What somebody has pinned or downloaded stays until the new version is whole.
        let isHidden =
            isKept
            && validated.map {
                $0.isHidden || $0.isKept && ($0.isComplete || $0.whole != nil && !demand.resolvedRule.pins)
            } ?? false
        if isHidden, !filler.hasRoom(beside: answer.first.total) {
            isKept = false
            status.note { $0.obstacle = .noRoom(in: filler.store) }
        }
        let generation = makeGeneration(answer, isKept: isKept, isHidden: isHidden, &output)
        if answer.head.isCertainListing || StrayPage.isPlaylist(demand.url) {
            // Until it is parsed, the playlist or feed keeps its predecessor's freshness, or gets half a second:
            // requests in the meantime share this answer. In a shared cache, it may be one user's.
            let live = validated?.head.live?.answered(at: filler.settings.clock())
            let isShared = demand.resolvedRule.terms.kind == .shared
            generation.setHead { $0.ofPlaylist(live ?? (isShared ? nil : .unread(at: filler.settings.clock()))) }
        }
        // The stored generation is outdated even though the new one must not be stored, or not yet.
        if !isKept || isHidden, isContent { validated?.freshen { $0.doubted } }
        let isUnresumable = answer.first.isUnresumable(
            isStored: generation.isStored, condition: answer.head.rangeCondition,
            isPartRequested: span != nil || request.requestsWhole)
        let start = answer.first.start(generation.geometry)
        // Stop at chunks that other fetches have stored meanwhile, unless the bytes beyond them cannot be requested
        // separately.
        output.begin(
            generation, at: start, upTo: answer.first.range.upperBound,
            surplus: start -| answer.first.range.lowerBound, stopsAtPresent: !isUnresumable)
        request.beginPlay(head, generation, condition: answer.head.rangeCondition)
        if !isContent, isShared { keepShort(head, answer, request, &output) }
        return publish(generation, answer.first, owner: owner, output.wanted, isUnresumable: isUnresumable)
    }

    /// Stores an answer that is not media, if it is short enough and may be reused.
    private func keepShort(
        _ head: UpstreamHead, _ answer: OpeningAnswer, _ request: FetchRequest, _ output: inout FetchOutput
    ) {
        // A 204 has no body (RFC 9110 §15.3.5).
        let length = head.status == 204 ? 0 : head.contentLength
        let terms = demand.resolvedRule.terms
        let stated = answer.head.freshness(
            ttl: nil, answer.head.reading(terms), now: filler.now(), instant: filler.instant)
        let isStated = stated.source == .explicit && stated.isFresh && !stated.isValidatedEachTime
        let absence = Reuse.isGone(status: head.status) && !isStated ? demand.absence?() : nil
        let live = absence?.timing(at: filler.instant)
        let freshness = live?.freshness(age: stated.age, at: filler.instant) ?? stated
        // Whatever the answer, it does not take the place of media.
        guard status.resource.current == nil,
            ShortStoring.isStorable(
                status: head.status, fields: head.fields, length: length, freshness,
                demand.storing(setsCookies: !redirectCookies.isEmpty), demand.resolvedRule)
        else { return }
        let variant = Variant(
            ofShort: head.fields, status: head.status, request: demand.sentFields, terms,
            fingerprint: filler.store.fingerprint
        )
        status.note { $0.isKeptShort = true }
        output.begin(
            ShortResponse.Intake(
                to: demand.address, answer.head.of(variant, terms, live: live), length: length,
                mark: request.mark, absence: absence))
    }

    private func makeGeneration(
        _ answer: OpeningAnswer, isKept: Bool, isHidden: Bool, _ output: inout FetchOutput
    ) -> Generation {
        if isKept {
            do throws(StoreError) {
                return try filler.store.makeGeneration(
                    status.resource.key, head: answer.head, length: answer.first.total, isHidden: isHidden,
                    partOf: demand.whole)
            } catch {
                filler.store.reportDisk(
                    "create a cache file, so responses continue uncached", error, label: "disk-write")
                let obstacle = FillError.noRoom(in: filler.store, after: error)
                status.note { $0.obstacle = obstacle }
            }
        }
        return filler.store.makeBuffer(
            status.resource.key, head: answer.head, length: answer.first.knownLength, in: output.countTransit())
    }

    /// Publishes the opened generation: as the resource's current one, or as a response that passes through.
    private func publish(
        _ generation: Generation, _ answer: FirstAnswer, owner: FollowerID, _ range: Range<Int64>, isUnresumable: Bool
    ) -> Next {
        guard generation.isStored else {
            status.resource.passes(
                .passing(generation, owner: owner, part: answer.isPart ? answer.range : nil, total: answer.total),
                by: status, range, furthest: filler.settings.bufferReadAhead, isUnresumable: isUnresumable)
            return .receive
        }
        let (isCurrent, previous) = status.resource.opened(
            generation, by: status, range, furthest: filler.readAhead, isUnresumable: isUnresumable)
        guard isCurrent else {
            // The resource was invalidated, removed or imported while the answer was on its way: waiting requests look
            // it up again.
            filler.store.retire(generation)
            return .end(.stopped)
        }
        if let previous, previous !== generation, previous.isHidden || !generation.isHidden {
            filler.store.retire(previous)
        }
        filler.shortResponses.removeResponses(under: status.resource.key)
        return .receive
    }

    // MARK: An answer about a known generation

    private func fillGap(
        of generation: Generation, _ head: UpstreamHead, _ output: inout FetchOutput
    ) throws(FillError) {
        guard try deliversWhole(head, generation, &output) else {
            return output.begin(generation, stopsAtPresent: true)
        }
        // The origin sent the whole body: write it from its first byte, present chunks included.
        guard let length = generation.length else { throw .changed }
        output.begin(generation, at: 0, upTo: length, stopsAtPresent: false)
        // The origin does not serve ranges.
        let range = output.wanted
        status.ring { $0.begin(range, isUnresumable: true) }
    }

    private func passOn(
        _ generation: Generation, _ head: UpstreamHead, owner: FollowerID, _ output: inout FetchOutput
    ) throws(FillError) {
        let isWhole = try deliversWhole(head, generation, &output)
        let buffer = filler.store.makeBuffer(
            status.resource.key, head: generation.head, length: generation.length, in: output.countTransit())
        output.begin(buffer, surplus: isWhole ? output.position : 0, stopsAtPresent: false)
        status.resource.passes(
            .passing(buffer, owner: owner, part: nil, total: generation.length), by: status, output.wanted,
            furthest: filler.settings.bufferReadAhead, isUnresumable: true)
    }

    /// Whether the answer delivers the whole of this generation. False if it delivers the part that was requested.
    private func deliversWhole(
        _ head: UpstreamHead, _ generation: Generation, _ output: inout FetchOutput
    ) throws(FillError) -> Bool {
        let overlap = output.overlap
        let isElsewhere = demand.resolvedRule.mayMove && head.finalURL != generation.head.finalURL
        let delivered = Combining.delivered(
            by: head.answer, of: generation.known, from: output.position -| overlap, isChecked: overlap > 0,
            isElsewhere: isElsewhere)
        switch delivered {
        case .part(let range):
            noteScope(of: head, generation)
            output.expect(range)
            return false
        case .whole:
            noteScope(of: head, generation)
            return true
        case .anotherVersion:
            if !isFromParent { filler.discard(generation, of: status.resource) }
            throw .changed
        case .unusable(let why): throw .unusable(why)
        // Only the origin knows whether what is stored is gone.
        case .status where isFromParent && Reuse.isGone(status: head.status): throw .changed
        case .status: throw .originStatus(head.status)
        }
    }

    /// Pages of other sites may not read what nobody knows the server of.
    private func noteScope(of head: UpstreamHead, _ generation: Generation) {
        if generation.head.isPublic, !head.isFromPublicAddress { generation.freshen { $0.ofUnknownScope } }
    }
}
