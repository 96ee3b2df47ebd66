import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// The answer is checked before a byte is kept.
extension Fetch {
    /// Whether an error answer may be another one next time.
    static func isTransient(_ head: UpstreamHead) -> Bool {
        head.status == 429 || head.status >= 500
    }

    func accept(_ head: UpstreamHead) throws(FillError) {
        try refuseStrayPage(head)
        switch purpose {
        case .opening(_, let owner, let isShared, let validated):
            if let generation = output.generation { return try resumed(generation, head) }
            if request.isRefusedBySource(head) { return askAgain() }
            if let validated, try settled(validated, head) { return }
            try open(head, owner: owner, isShared: isShared)
        case .gap(let generation):
            if output.generation != nil { try resumed(generation, head) } else { try fillGap(of: generation, head) }
        case .bypass(let generation, let owner):
            if output.generation != nil {
                try resumed(generation, head)
            } else {
                try passOn(generation, head, owner: owner)
            }
        }
    }

    /// A page is no version of media that is known: neither does it answer for it, nor does it end it.
    private func refuseStrayPage(_ head: UpstreamHead) throws(FillError) {
        guard let known = knownGeneration ?? purpose.validated, head.replacesMedia(known.head.fields, demand) else {
            return
        }
        throw .strayPage(type: StrayPage.pageType(head.fields) ?? "")
    }

    // MARK: An answer about what is stored

    /// What the origin says of the generation that is there.
    /// - Returns: whether that is all; else the answer is one about another version, or about none, and handled like a
    ///   first one.
    private func settled(_ generation: Generation, _ head: UpstreamHead) throws(FillError) -> Bool {
        resource.changePlay { $0.lastUse = filler.settings.clock() }
        switch Freshening.verdict(of: head.answer, on: generation.known, isConditional: !request.isUnconditional) {
        case .holds:
            filler.freshen(generation, by: head, requestedAt: request.time)
            status.validated(generation, status: head.status)
            // Of a whole that comes all the same nothing is wanted.
            head.status == 304 ? complete() : finish(.completed)
            return true
        case .isAboutAnother:
            request.isUnconditional = true
            askAgain()
            return true
        case .error: throw .originStatus(head.status)
        case .unusable(let why): throw .unusable(why)
        case .gone:
            filler.discard(generation, of: resource)
            return false
        case .another: return false
        }
    }

    // MARK: The first answer about a resource

    private func open(_ head: UpstreamHead, owner: FollowerID, isShared: Bool) throws(FillError) {
        let span = request.openingSpan, validated = purpose.validated
        let answer = try OpeningAnswer(
            head, asked: span, demand,
            times: ResponseTimes(head.fields, requestedAt: request.time, receivedAt: filler.now()), store)
        let isContent = head.status == 200 || head.status == 206
        if isContent { filler.balance.note(answer.first.knownLength, of: demand.url) }
        if request.mustComeWhole(head, answer) { return askAgain() }
        if case .pass(let reason) = answer.storing, isShared, reason != .status { status.mayNotStore(reason) }
        let isKept = isShared && answer.isKept
        if isKept, store.isKnown(resource.key, beside: validated) {
            // Imported while the answer was on its way: whoever waits looks again.
            resource.lookAgain(after: nil)
            return finish(.stopped)
        }
        // What is stored is no longer what its origin has, though that must not be stored.
        if !isKept, isContent { validated?.freshen { $0.doubted } }
        let generation = makeGeneration(answer, isKept: isKept)
        let isUnresumable = answer.first.isUnresumable(
            isStored: generation.isStored, condition: generation.head.rangeCondition, isAskedForPart: span != nil)
        let start = answer.first.start(generation.geometry)
        // What others have brought meanwhile is not fetched again, unless what lies beyond comes in no other way.
        output.begin(
            generation, at: start, upTo: answer.first.range.upperBound,
            surplus: start -| answer.first.range.lowerBound, stopsAtPresent: !isUnresumable)
        request.beginPlay(head, generation)
        publish(generation, answer.first, owner: owner, isUnresumable: isUnresumable)
    }

    private func makeGeneration(_ answer: OpeningAnswer, isKept: Bool) -> Generation {
        if isKept {
            do throws(StoreError) {
                return try store.makeGeneration(resource.key, head: answer.head, length: answer.first.total)
            } catch {
                store.reportDisk(
                    "keep what is fetched, so responses go on without the cache", error, label: "disk-write")
                status.foundNoRoom()
            }
        }
        return store.makeBuffer(resource.key, head: answer.head, length: answer.first.knownLength)
    }

    /// Tells of what an opening has found: it is the resource's, or passes by.
    private func publish(_ generation: Generation, _ answer: FirstAnswer, owner: FollowerID, isUnresumable: Bool) {
        guard generation.isStored else {
            return resource.passes(
                .passing(generation, owner: owner, part: answer.isPart ? answer.range : nil, total: answer.total),
                by: status, output.wanted, furthest: filler.settings.bufferReadAhead, isUnresumable: isUnresumable)
        }
        let (isCurrent, previous) = resource.opened(
            generation, by: status, output.wanted, furthest: filler.readAhead, isUnresumable: isUnresumable)
        guard isCurrent else {
            // Invalidated, removed or imported while the answer was on its way: whoever waits looks again.
            store.retire(generation)
            return finish(.stopped)
        }
        if let previous, previous !== generation { store.retire(previous) }
    }

    // MARK: An answer about a generation that is known

    private func fillGap(of generation: Generation, _ head: UpstreamHead) throws(FillError) {
        guard try bringsWhole(head, generation) else { return output.begin(generation, stopsAtPresent: true) }
        // A full body is used as such: from its first byte, past what is present.
        guard let length = generation.length else { throw .changed }
        output.begin(generation, at: 0, upTo: length, stopsAtPresent: false)
        status.moved(to: output.wanted)
    }

    private func passOn(_ generation: Generation, _ head: UpstreamHead, owner: FollowerID) throws(FillError) {
        let isWhole = try bringsWhole(head, generation)
        let buffer = store.makeBuffer(resource.key, head: generation.head, length: generation.length)
        output.begin(buffer, surplus: isWhole ? output.position : 0, stopsAtPresent: false)
        resource.passes(
            .passing(buffer, owner: owner, part: nil, total: generation.length), by: status, output.wanted,
            furthest: filler.settings.bufferReadAhead, isUnresumable: true)
    }

    /// A transfer that broke goes on.
    private func resumed(_ generation: Generation, _ head: UpstreamHead) throws(FillError) {
        output.resume(surplus: try bringsWhole(head, generation) ? output.position : 0)
    }

    /// Whether an answer brings the whole of this very generation; else it brings what was asked for of it.
    private func bringsWhole(_ head: UpstreamHead, _ generation: Generation) throws(FillError) -> Bool {
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
