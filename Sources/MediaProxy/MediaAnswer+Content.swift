import Activity
import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport

/// Answers from a generation, or with an error.
extension MediaAnswer {
    /// - Parameter view: a recent snapshot of the generation; nil to take one now.
    func answer(from generation: Generation, as view: Generation.Snapshot? = nil, following status: SharedFetch? = nil)
    {
        opening = nil
        let view = view ?? generation.snapshot, head = view.head
        guard head.status == 200 else { return relay(generation, view, following: status) }
        if !isAsStored, library.isPlaylist(generation, view, at: route.url, beginsAtStart: beginsAtStart) {
            return answerPlaylist(from: generation, view, following: status)
        }
        switch Conditional.evaluate(request, against: head.validators) {
        case .notModified: return close(304, generation, view, following: status)
        case .failed: return close(412, generation, view, following: status)
        case .proceed: break
        }
        noteMembership(of: generation)
        if resolvedRule.pins, generation.isStored { filler.filler.pin(generation, of: resource) }
        guard let length = view.length else {
            // RFC 9110 §14.2: while the length is unknown, Range is ignored.
            return answer(from: generation, view, range: nil, length: nil, following: status)
        }
        guard let wanted, Conditional.rangeApplies(request, against: head.validators) else {
            return answer(from: generation, view, range: nil, length: length, following: status)
        }
        if !several.isEmpty, generation.isStored {
            return answerSeveral(from: generation, view, length: length, following: status)
        }
        guard let range = wanted.resolve(length: length) else {
            return refuseRange(length, generation, following: status)
        }
        answer(from: generation, view, range: range, length: length, following: status)
    }

    /// Whether the client requests the bytes from the first one on.
    private var beginsAtStart: Bool {
        guard request.method == .get else { return false }
        return if case .from(0)? = wanted { true } else { wanted == nil }
    }

    /// Adds the generation to its presentation, if it was stored before a playlist named it.
    private func noteMembership(of generation: Generation) {
        // A resource that is kept on its own does not become part of a presentation.
        guard let whole = membership?.whole, generation.isStored, generation.whole != whole, !generation.isKept else {
            return
        }
        library.join([generation.key], to: whole)
    }

    func answer(
        from generation: Generation, _ view: Generation.Snapshot, range: Range<Int64>?, length: Int64?,
        following status: SharedFetch?
    ) {
        let bytes = range ?? 0..<(length ?? .max) // no trap: a length is not negative
        let coverage = view.length == nil ? .part : generation.coverage(of: bytes)
        classify(coverage, generation, isOpening: status != nil)
        guard request.method == .get else {
            status?.leave(follower)
            return exchange.respond(contentHead(of: generation, view, range: nil, length: length))
        }
        if directives.control.onlyIfCached, coverage != .whole {
            status?.leave(follower)
            return refuseRequest()
        }
        let reader = CacheReader(
            generation, from: bytes.lowerBound, to: range?.upperBound ?? length, resource: resource,
            host: route.url.host,
            demand: self.demand,
            filler: filler,
            follower: follower, following: status)
        self.reader = reader
        beginItem(generation, at: bytes.lowerBound, length: length)
        if resolvedRule.fill.readsOn { filler.keepFilling(resource, generation, demand, from: reader.offset) }
        sendFirst(of: reader) { [self] in contentHead(of: generation, view, range: range, length: length) }
    }

    /// Answers with a part whose total length the origin did not state; the answer leaves it open as well.
    func answer(fromPart part: Range<Int64>, of generation: Generation, following status: SharedFetch) {
        opening = nil
        let range = wanted?.resolve(length: part.upperBound)?.clamped(to: part) ?? part
        answer(from: generation, generation.snapshot, range: range, length: nil, following: status)
    }

    /// Waits for the first bytes, then sends the header followed by them.
    /// - Parameter body: makes the source of the body from the first step; nil to use this object.
    func sendFirst(
        of reader: CacheReader, body: ((CacheReader.Step) -> any BodySource)? = nil, head: @escaping () -> Response
    ) {
        // Bytes that have been examined already are not looked at again.
        let looks = body == nil && !isAsStored && reader.offset == 0 && reader.generation.beginning != .other
        let step = reader.next(limit: Self.firstSpan(of: reader), copies: looks)
        switch step {
        case .wait:
            guard !reader.isFollowing || beginWaiting() else {
                reader.finish()
                self.reader = nil
                return failSilent()
            }
            exchange.onAbort = { [self] in abandon() }
            reader.onReady = { [self] in
                reader.onReady = nil
                sendFirst(of: reader, body: body, head: head)
            }
            return
        case .bytes(let bytes, _, _)
        where looks && library.isPlaylist(bytes, of: reader.generation) && readsAll(reader):
            return answerPlaylist(from: reader.generation, beginning: bytes, by: reader, isNews: !outcome.isHit)
        case .failed(.changed):
            reader.finish()
            self.reader = nil
            return restart(after: .changed)
        case .failed(let error):
            reader.finish()
            self.reader = nil
            return reader.generation.isUnreadable ? restart(after: error) : fail(error)
        case .bytes, .end:
            firstStep = Self.bodyStep(step)
        }
        if reader.isCollapsed { outcome.isCollapsed = true }
        if reader.hasLeftDisk { noteForward(.bypass) }
        if !outcome.isHit, outcome.forwardStatus == nil { outcome.forwardStatus = reader.originStatus }
        if reader.lacksRoom {
            outcome.isStored = false
            outcome.detail = FailureKind.noRoom.rawValue
        }
        endWaiting()
        exchange.firstByteTimes = outcome.isHit ? handler.metrics.firstByteOfHits : handler.metrics.firstByteOfMisses
        exchange.respond(head(), body: body?(step) ?? self)
    }

    /// Whether a reader that began at the resource's first byte runs to its end.
    private func readsAll(_ reader: CacheReader) -> Bool {
        reader.generation.head.status == 200
            && (wanted == nil || reader.remaining.map { $0 +| reader.offset } == reader.generation.length)
    }

    /// A short answer goes out in one piece. The first piece of a long one is small: a client that seeks waits for
    /// the first byte, and a piece is sent only once the kernel has copied all of it.
    private static func firstSpan(of reader: CacheReader) -> Int {
        reader.remaining.map { $0 <= 64 << 10 } == true ? 64 << 10 : 16 << 10
    }

    /// Counts the request by how much of the requested range is cached, and marks a hit as partial.
    func classify(_ coverage: Generation.Coverage, _ generation: Generation, isOpening: Bool) {
        defer { isCounted = true }
        if !isOpening {
            if !isCounted { generation.countHit() }
            if outcome.isHit, coverage != .whole {
                outcome = .forwarded(
                    .partial, detail: filler.isOffline ? "offline" : coverage == .none ? "nothing-of-the-range" : nil)
            }
        }
        guard !isCounted else { return }
        switch (isOpening, coverage) {
        case (true, _): (outcome.forward == .bypass ? handler.metrics.bypasses : handler.metrics.misses).add()
        case (false, .whole): handler.metrics.hits.add()
        case (false, _): handler.metrics.partialHits.add()
        }
    }

    // MARK: Heads

    func contentHead(
        of generation: Generation, _ view: Generation.Snapshot, range: Range<Int64>?, length: Int64?,
        without excluded: FieldNames = []
    ) -> Response {
        var response = Response(range == nil ? 200 : 206, length: range.map { Int64($0.count) } ?? length)
        if let range { response.contentRange(range, total: length) }
        addFields(of: generation, view, without: excluded, to: &response)
        return response
    }

    /// - Parameter excluded: fields that do not describe what is sent.
    func addFields(
        of generation: Generation, _ view: Generation.Snapshot, without excluded: FieldNames = [],
        to response: inout Response
    ) {
        let acceptsRanges = view.head.status == 200 && view.length != nil && !excluded.contains("accept-ranges")
        addFields(
            of: view.head, key: generation.key, acceptsRanges: acceptsRanges, isOld: resolver.accepted === generation,
            without: excluded, to: &response)
    }

    /// - Parameters:
    ///   - key: the cache key.
    ///   - isOld: whether it was stored before, although its origin was contacted.
    func addFields(
        of head: GenerationHead, key: CacheKey, acceptsRanges: Bool, isOld: Bool, without excluded: FieldNames = [],
        to response: inout Response
    ) {
        if response.status == 304 {
            for line in head.fields.lines
            where Self.notModifiedFields.contains(line.name) && !excluded.contains(line.name) {
                response.field(line.name, line.value)
            }
        } else {
            response.fields(rendered: excluded.isEmpty ? head.fieldBytes : head.fieldBytes(without: excluded))
        }
        addCookies(to: &response)
        response.hasDate = head.hasDate
        handler.addFormFields(head.siteBytes, head.safety, isPublic: head.isPublic, route, for: request, to: &response)
        if acceptsRanges { response.field("Accept-Ranges", "bytes") }
        // RFC 9111 §5.1: no Age on a response that was just fetched, unless it came from another cache.
        let age = head.age(at: filler.filler.now())
        if age > 0 || outcome.isHit || isOld || outcome.forward == .partial {
            response.field("Age", age)
        }
        if route.hasOwnKey { outcome.key = key.text }
        response.cacheStatus(outcome)
    }

    /// RFC 9110 §15.4.5
    private static let notModifiedFields: FieldNames = [
        "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary",
    ]

    private func close(
        _ status: Int, _ generation: Generation, _ view: Generation.Snapshot, following opening: SharedFetch?
    ) {
        classify(.whole, generation, isOpening: opening != nil)
        opening?.leave(follower)
        var response = Response(status, length: status == 304 ? nil : 0)
        addFields(of: generation, view, to: &response)
        exchange.respond(response)
    }

    func refuseRange(_ length: Int64, _ generation: Generation, following status: SharedFetch?) {
        classify(.whole, generation, isOpening: status != nil)
        status?.leave(follower)
        exchange.respond(416, text: "the range lies outside the \(length) bytes") { [outcome] response in
            // RFC 9110 §15.5.17
            response.field("Content-Range", ContentRange(range: nil, total: length).fieldValue)
            response.field("Accept-Ranges", "bytes")
            response.cacheStatus(outcome)
        }
    }

    // MARK: Error pages and failures

    /// What a program wrote may repeat addresses with secrets that the client has not seen.
    private func clientText(of error: FillError) -> String {
        let text = error.clientText(handler.policy.adviceWords)
        return error.isResolvers ? handler.policy.mask.masked(text) : text
    }

    /// Passes on the origin's own answer, such as its error page.
    private func relay(_ generation: Generation, _ view: Generation.Snapshot, following status: SharedFetch?) {
        classify(.none, generation, isOpening: true)
        let length = view.length
        outcome.forwardStatus = view.head.status
        let reader = CacheReader(
            generation, from: 0, to: length, resource: resource, host: route.url.host,
            demand: self.demand, filler: filler, follower: follower,
            following: status)
        self.reader = reader
        sendFirst(of: reader) { [self] in
            var response = Response(view.head.status, length: length)
            addFields(of: generation, view, to: &response)
            return response
        }
    }

    /// - Parameters:
    ///   - status: replaces the error's own status.
    ///   - advice: what the client can do about the error.
    func fail(_ error: FillError, status: Int? = nil, advice: String? = nil) {
        // No request went to the origin.
        if error.isUnsent { outcome = CacheStatus() }
        // A cache in front of this one can tell by it that an origin is busy from a reason of this proxy's own.
        outcome.detail = error.kind.rawValue
        exchange.respond(
            status ?? error.status,
            text: [clientText(of: error), advice].compactMap(\.self).joined(separator: "; ")
        ) { [outcome] response in
            if let seconds = error.retryAfter { response.field("Retry-After", seconds) }
            response.cacheStatus(outcome.isHit ? .forwarded(.partial, detail: outcome.detail) : outcome)
        }
    }
}
