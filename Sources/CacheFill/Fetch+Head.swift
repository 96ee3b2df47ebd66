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
        case .opening(let span, let owner, let isShared, let validated):
            if let writer { return try resumed(writer.generation, head) }
            if isRefusedBySource(head) { return }
            if let validated, try settled(validated, head) { return }
            try open(head, asked: asksWhole ? nil : span, owner: owner, isShared: isShared)
        case .gap(let generation):
            if writer != nil { try resumed(generation, head) } else { try fillGap(of: generation, head) }
        case .bypass(let generation, let owner):
            if writer != nil { try resumed(generation, head) } else { try passOn(generation, head, owner: owner) }
        }
    }

    /// A page is no version of media that is known: neither does it answer for it, nor does it end it.
    private func refuseStrayPage(_ head: UpstreamHead) throws(FillError) {
        guard let known = knownGeneration ?? validated, head.replacesMedia(known.head.fields, demand) else { return }
        throw .strayPage(type: StrayPage.pageType(head.fields) ?? "")
    }

    // MARK: An answer about what is stored

    /// What the origin says of the generation that is there.
    /// - Returns: whether that is all; else the answer is one about another version, or about none, and handled like a
    ///   first one.
    private func settled(_ generation: Generation, _ head: UpstreamHead) throws(FillError) -> Bool {
        resource.changePlay { $0.lastUse = filler.settings.clock() }
        switch head.status {
        case 304:
            guard !asksUnconditionally else { throw .unusable("it answers 304 to a request without a condition") }
            // RFC 9111 §4.3.4
            guard Freshening.isAbout(head.fields, stored: generation.head.fields) else {
                asksUnconditionally = true
                askAgain()
                return true
            }
            filler.freshen(generation, by: head, requestedAt: requestedAt)
            status.validated(generation, status: 304)
            complete()
            return true
        case 200, 206:
            // The condition was not heeded; the bytes are the same all the same.
            guard isSameBytes(head, generation) else { return false }
            filler.freshen(generation, by: head, requestedAt: requestedAt)
            status.validated(generation, status: head.status)
            finish(.completed)
            return true
        case let status where Reuse.isError(status: status):
            throw .originStatus(status)
        case let status where Reuse.isGone(status: status) || status == 416:
            // It is gone, or no longer as long as it was.
            resource.invalidate(generation)
            store.retire(generation)
            return false
        default:
            return false
        }
    }

    private func isSameBytes(_ head: UpstreamHead, _ generation: Generation) -> Bool {
        guard let condition = generation.head.rangeCondition, condition == Combining.condition(for: head.fields) else {
            return false
        }
        return (head.status == 206 ? head.contentRange?.total : head.contentLength) == generation.length
    }

    // MARK: The first answer about a resource

    private func open(_ head: UpstreamHead, asked span: UpstreamRequest.Span?, owner: FollowerID, isShared: Bool)
        throws(FillError)
    {
        let answer = try Answer(
            head, asked: span, demand,
            times: ResponseTimes(head.fields, requestedAt: requestedAt, receivedAt: filler.now()), store)
        if head.status == 200 || head.status == 206 { filler.balance.note(answer.bufferLength, of: demand.url) }
        // What cannot be told from another version is kept only where it comes as a whole, in one transfer.
        if mustComeWhole(head, answer) { return }
        let isKept =
            isShared && answer.isKeepable && (answer.generationHead.rangeCondition != nil || head.status == 200)
        if case .pass(let reason) = answer.storing, isShared, reason != .status { status.mayNotStore(reason) }
        if isKept, store.isKnown(resource.key, beside: validated) {
            // Imported while the answer was on its way: whoever waits looks again.
            resource.lookAgain(after: nil)
            return finish(.stopped)
        }
        // What is stored is no longer what its origin has, though that must not be stored.
        if !isKept, let validated, head.status == 200 || head.status == 206 { validated.freshen { $0.doubted } }
        let generation = makeGeneration(answer, isKept: isKept)
        let chunk = generation.geometry
        // A suffix begins anywhere: bytes before its first whole chunk are let go.
        let start = chunk.chunkStart(
            chunk.chunk(at: answer.range.lowerBound +| (answer.range.lowerBound == 0 ? 0 : chunk.chunkSize -| 1)))
        surplus = start -| answer.range.lowerBound
        position = start
        end = answer.range.upperBound
        let isUnresumable =
            !generation.isStored || generation.head.rangeCondition == nil || answer.total == nil
            || (head.status == 200 && span != nil)
        // What others have brought meanwhile is not fetched again, unless what lies beyond comes in no other way.
        writer = store.writer(generation, at: start, stopsAtPresent: !isUnresumable)
        beginPlay(head, generation)
        let range = start..<max(end, start) // no trap: at least start
        if generation.isStored {
            let (isCurrent, previous) = resource.opened(
                generation, by: status, range, furthest: filler.readAhead, isUnresumable: isUnresumable)
            guard isCurrent else {
                // Invalidated, removed or imported while the answer was on its way: whoever waits looks again.
                store.retire(generation)
                return finish(.stopped)
            }
            if let previous, previous !== generation { store.retire(previous) }
        } else {
            let part = head.status == 206 ? answer.range : nil
            resource.passes(
                .passing(generation, owner: owner, part: part, total: answer.total), by: status, range,
                furthest: filler.settings.bufferReadAhead,
                isUnresumable: isUnresumable)
        }
    }

    private func makeGeneration(_ answer: Answer, isKept: Bool) -> Generation {
        guard isKept else {
            return store.makeBuffer(resource.key, head: answer.generationHead, length: answer.bufferLength)
        }
        do throws(StoreError) {
            return try store.makeGeneration(resource.key, head: answer.generationHead, length: answer.total)
        } catch {
            store.reportDisk("keep what is fetched, so responses go on without the cache", error, label: "disk-write")
            status.foundNoRoom()
            return store.makeBuffer(resource.key, head: answer.generationHead, length: answer.bufferLength)
        }
    }

    // MARK: An answer about a generation that is known

    private func fillGap(of generation: Generation, _ head: UpstreamHead) throws(FillError) {
        switch try match(head, generation, from: position) {
        case .part:
            writer = store.writer(generation, at: position, stopsAtPresent: true)
        case .whole:
            // A full body is used as such: from its first byte, past what is present.
            guard let length = generation.length else { throw .changed }
            position = 0
            end = length
            writer = store.writer(generation, at: 0, stopsAtPresent: false)
            status.moved(to: 0..<length) // no trap: a generation's length is none below 0
        }
    }

    private func passOn(_ generation: Generation, _ head: UpstreamHead, owner: FollowerID) throws(FillError) {
        let matched = try match(head, generation, from: position)
        if case .whole = matched { surplus = position }
        let buffer = store.makeBuffer(resource.key, head: generation.head, length: generation.length)
        writer = store.writer(buffer, at: position, stopsAtPresent: false)
        resource.passes(
            .passing(buffer, owner: owner, part: nil, total: generation.length), by: status,
            position..<end, // no trap: a gap that is asked for has not been filled
            furthest: filler.settings.bufferReadAhead, isUnresumable: true)
    }

    /// A transfer that broke goes on.
    private func resumed(_ generation: Generation, _ head: UpstreamHead) throws(FillError) {
        surplus = 0
        if case .whole = try match(head, generation, from: position) { surplus = position }
    }

    private enum Match { case part, whole }

    /// Whether an answer brings bytes of this very generation, from `offset` on or from the start.
    private func match(_ head: UpstreamHead, _ generation: Generation, from offset: Int64) throws(FillError) -> Match {
        // A name that stood for a public address and now stands for a private one: what pages of all sites may read is
        // not added to from there.
        if generation.head.isPublic, !head.isFromPublicAddress { return try replace(generation) }
        switch head.status {
        case 206:
            guard Storing.isUncoded(head.fields) else { throw .unusable("the part is encoded") }
            guard let part = head.contentRange, let range = part.range else {
                throw .unusable("a 206 without a usable Content-Range")
            }
            guard part.total == generation.length || part.total == nil, isSameVersion(head, generation) else {
                return try replace(generation)
            }
            guard range.lowerBound == offset else {
                throw .unusable("asked from byte \(offset), it answers from \(range.lowerBound)")
            }
            // RFC 9110 §14.4: of a body that is longer or shorter than its Content-Range, nobody knows which bytes it
            // has. A range that ends elsewhere than asked is one to be used all the same: up to what was asked, and
            // what it lacks is asked for again.
            guard head.contentLength.map({ $0 == range.upperBound -| range.lowerBound }) ?? true else {
                throw .unusable("a 206 whose Content-Length is not that of its Content-Range")
            }
            answered = range
            return .part
        case 200:
            guard Storing.isUncoded(head.fields), head.contentLength == generation.length,
                isSameVersion(head, generation), generation.head.rangeCondition != nil
            else {
                return try replace(generation)
            }
            return .whole
        case 416:
            // Asked within the length that it had: it is another one now.
            return try replace(generation)
        default:
            throw .originStatus(head.status)
        }
    }

    private func replace(_ generation: Generation) throws(FillError) -> Match {
        resource.invalidate(generation)
        store.retire(generation)
        throw .changed
    }

    private func isSameVersion(_ head: UpstreamHead, _ generation: Generation) -> Bool {
        Combining.isSameVersion(head.fields, isPart: head.status == 206, stored: generation.head.fields)
    }
}

/// What an origin's answer says about a resource.
struct Answer {
    let generationHead: GenerationHead
    /// The bytes that the body brings; the upper end is `Int64.max` where it is not told.
    let range: Range<Int64>
    /// The resource's length.
    let total: Int64?
    let storing: Storing
    /// A part of an unknown whole is nobody's but the one's who asked for it.
    var isKeepable: Bool { storing == .store && (total != nil || !isPart) }
    private let isPart: Bool
    /// A buffer reaches to the last byte that comes, where more is not known.
    var bufferLength: Int64? { total ?? (range.upperBound < .max ? range.upperBound : nil) }

    init(
        _ head: UpstreamHead, asked span: UpstreamRequest.Span?, _ demand: Demand, times: ResponseTimes,
        _ store: CacheStore
    ) throws(FillError) {
        isPart = head.status == 206
        if isPart {
            guard let part = head.contentRange, let range = part.range else {
                throw .unusable("a 206 without a usable Content-Range")
            }
            guard Self.isExpected(range, of: part.total, span) else {
                throw .unusable(
                    "it answers with bytes \(range.lowerBound)-\(range.upperBound -| 1), which were not asked for")
            }
            self.range = range
            total = part.total
        } else {
            total = head.contentLength
            range = 0..<(total ?? .max) // no trap: a declared length is none below 0
        }
        let length = total ?? (range.upperBound < .max ? range.upperBound : 0)
        if length > Self.longest { throw .unusable("a length of \(length) bytes is more than can be handled") }
        storing = Storing.decide(
            status: head.status, fields: head.fields, total: total, request: demand.directives,
            expectsMedia: demand.expectsMedia, demand.resolvedRule)
        let fields = head.keptFields(receivedAt: times.validatedAt)
        // Of a part, the rest has the same status as the whole.
        generationHead = GenerationHead(
            status: isPart ? 200 : head.status, fields: storing == .store ? fields.worthKeeping : fields,
            variant: Variant(response: head.fields, request: demand.sentFields, fingerprint: store.fingerprint),
            finalURL: head.finalURL,
            isPublic: head.isFromPublicAddress, storedAt: times.validatedAt, times: times)
    }

    /// Tables grow with the length; an origin must not choose how much memory that is.
    private static let longest = Generation.longest

    private static func isExpected(_ range: Range<Int64>, of total: Int64?, _ span: UpstreamRequest.Span?) -> Bool {
        switch span {
        case nil: range.lowerBound == 0
        case .bounded(let asked): range.lowerBound == asked.lowerBound && range.upperBound <= asked.upperBound
        case .from(let first): range.lowerBound == first
        // What is missing of the suffix would never come.
        case .suffix(let count): total.map { range.upperBound == $0 && Int64(range.count) >= min(count, $0) } ?? true
        }
    }

}

extension UpstreamHead {
    /// Whether this is a web page, and what is stored is not.
    package func replacesMedia(_ stored: HeaderFields, _ demand: Demand) -> Bool {
        guard status == 200 || status == 206, !demand.resolvedRule.storesPages, StrayPage.isPage(fields),
            !StrayPage.isPage(stored)
        else { return false }
        return demand.expectsMedia || StrayPage.isMedia(stored)
    }

    /// Without what the connection to the origin needed, or what this proxy says itself.
    /// - Parameter receivedAt: seconds since 1970; stands for a `Date` that is missing (RFC 9110 §6.6.1).
    func keptFields(receivedAt: Int64) -> HeaderFields {
        var fields = self.fields
        fields.removeUnfitForClients()
        fields.remove("Accept-Ranges")
        // RFC 9110 §14.4: with other statuses it means nothing, and parts are told of by this proxy.
        fields.remove("Content-Range")
        if status == 416, let contentRange, contentRange.range == nil {
            fields.append("Content-Range", contentRange.fieldValue)
        }
        if fields["Date"].flatMap(HTTPDate.parse) == nil { fields.replace("Date", HTTPDate.format(receivedAt)) }
        return fields
    }
}

extension HeaderFields {
    /// What concerns the connection to the origin only, what this proxy says itself, and lines that are no proper
    /// fields.
    package mutating func removeUnfitForClients() {
        removeHopByHop()
        remove(allOf: Self.ofTheProxy)
        removeMalformed()
    }

    private static let ofTheProxy: FieldNames = ["content-length", "age", "cache-status", "set-cookie"]
}
