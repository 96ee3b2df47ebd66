import Activity
import CacheFill
import EventIO
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Playlists
import Presentations
import Upstream

/// Answers with playlists and feeds, which are read as a whole and rewritten so that every URL in them leads through
/// the proxy.
extension MediaAnswer {
    var library: PlaylistLibrary { handler.library }

    /// Reads the playlist, then answers with it.
    func answerPlaylist(
        from generation: Generation, _ view: Generation.Snapshot, following status: SharedFetch?
    ) {
        let isOpening = status != nil
        // no trap: a length is not negative
        let coverage = view.length.map { generation.coverage(of: 0..<$0) } ?? .part
        if directives.control.onlyIfCached, coverage != .whole {
            status?.leave(follower)
            return refuseRequest()
        }
        classify(coverage, generation, isOpening: isOpening)
        if let document = library.document(of: generation, at: route.url) {
            status?.leave(follower)
            return answer(with: document, from: generation, isNews: isOpening)
        }
        guard coverage == .whole || beginWaiting() else {
            status?.leave(follower)
            return failSilent()
        }
        awaitReading { [self] end in
            library.read(generation, of: resource, demand, follower: follower, following: status, then: end)
        } then: { [self] in
            take($0, of: generation, isNews: isOpening)
        }
    }

    /// Reads and answers a playlist that was recognized by its first bytes.
    /// - Parameters:
    ///   - reader: has delivered `beginning`, starting with the first byte, and continues to the last.
    func answerPlaylist(
        from generation: Generation, beginning: UnsafeRawBufferPointer, by reader: CacheReader, isNews: Bool
    ) {
        let beginning = Array(beginning)
        self.reader = nil
        // It is read, not played.
        (reader.onReady, reader.isPlay) = (nil, false)
        guard beginWaiting() else {
            reader.finish()
            return failSilent()
        }
        awaitReading { [self] end in
            library.read(
                generation, of: resource, at: route.url, by: reader, after: beginning, then: end)
        } then: { [self] in
            take($0, of: generation, isNews: isNews)
        }
    }

    /// Waits for a reading. A client that disconnects meanwhile gets no answer; others may wait for the same
    /// reading.
    private func awaitReading(
        _ read: (@escaping (PlaylistLibrary.Outcome) -> Void) -> PlaylistLibrary.Waiter?,
        then end: @escaping (PlaylistLibrary.Outcome) -> Void
    ) {
        exchange.onAbort = { [self] in abandon() }
        playlistWaiter = read { [self] outcome in
            playlistWaiter = nil
            guard exchange.isOpen, !isAnswered else { return }
            end(outcome)
        }
    }

    private func take(_ outcome: PlaylistLibrary.Outcome, of generation: Generation, isNews: Bool) {
        switch outcome {
        case .document(let document): answer(with: document, from: generation, isNews: isNews)
        case .refused where generation.isStored: answer(from: generation)
        // The bytes that were read are all that is left of it.
        case .refused(let bytes?, _): respondOriginal(bytes, from: generation)
        case .refused(nil, _): passUnread()
        case .failed(.changed): restart(after: .changed)
        case .failed(let error) where generation.isUnreadable: restart(after: error)
        case .failed(let error): doubted == nil ? fail(error) : answerInDoubt(after: error)
        }
    }

    /// Whether a GET may get a rewritten text, by the header that its origin sends for HEAD.
    func mayBeRewritten(_ head: UpstreamHead) -> Bool {
        guard head.status == 200, let type = head.fields["Content-Type"] else { return false }
        guard head.contentLength.map({ $0 <= PlaylistLimits.bytes }) ?? true else { return false }
        return Listing.isCertain(type: type) || FeedRecognition.mayBe(type: type)
    }

    // MARK: Freshness

    /// - Parameter isNews: whether it has just arrived from its origin.
    private func answer(with document: PlaylistDocument, from generation: Generation, isNews: Bool) {
        let isNews = isNews || resolver.accepted === generation && doubt == nil
        note(document, of: generation, isNews: isNews)
        if !isNews, doubt == nil, let need = needOfValidation(generation) {
            return validate(generation, need.freshness, need.need)
        }
        if let doubt, !filler.isOffline, let live = generation.head.live, live.isSilent(at: filler.filler.instant) {
            return fail(doubt, status: 504, advice: "the stream's playlist would not advance")
        }
        guard mayBeIncomplete(document) else { return giveText(of: document, from: generation) }
        findKept(of: document) { [self] in giveText(of: document, from: generation) }
    }

    // MARK: Origin unreachable

    /// Whether some of its renditions may be unreachable.
    private func mayBeIncomplete(_ document: PlaylistDocument) -> Bool {
        guard document.listsRenditions else { return false }
        return filler.isOffline || doubt != nil || filler.filler.backoff.isDown(route.url.absolute)
    }

    /// Finds the renditions that are completely cached, so that only these remain in the playlist, if there are
    /// any.
    private func findKept(of document: PlaylistDocument, then done: @escaping () -> Void) {
        let bound = LoopBound(self, on: exchange.loop)
        exchange.onAbort = { [self] in abandon() }
        whenKeptIsFound = done
        library.findKept(of: document.key, handler.policy) { kept in
            bound.post { answer in
                answer.kept = kept
                answer.whenKeptIsFound?()
            }
        }
    }

    private func giveText(of document: PlaylistDocument, from generation: Generation) {
        whenKeptIsFound = nil
        guard exchange.isOpen, !isAnswered else { return }
        let form = form
        guard let text = document.knownText(for: form) else {
            return makeText(of: document, for: form, from: generation)
        }
        endWaiting()
        respond(with: text, of: document, from: generation)
    }

    /// Notes from the document's content how long it is the current state of its stream.
    private func note(_ document: PlaylistDocument, of generation: Generation, isNews: Bool) {
        let head = generation.head, now = filler.filler.instant
        guard let rule = document.refreshRule else {
            let isUnchanging = document.isUnchanging
            if head.live != nil || !head.isListing || head.isUnchanging != isUnchanging {
                generation.setHead { $0.ofPlaylist(nil, isUnchanging: isUnchanging) }
            }
            return
        }
        let age = UInt64(clamping: head.times.residentTime(at: filler.filler.now())) *| 1_000_000_000
        let timing = LiveTiming(rule, answeredAt: head.live?.answeredAt ?? (isNews ? now : now -| age))
        if head.live != timing { generation.setHead { $0.ofPlaylist(timing) } }
    }

    /// Decides again whether to validate, as the live timing is known only once the playlist has been read.
    private func needOfValidation(_ generation: Generation) -> (freshness: Freshness, need: Reuse.Need)? {
        let head = generation.head, reading = head.reading(resolvedRule.terms)
        let freshness = head.freshness(
            ttl: resolvedRule.ttl, reading, now: filler.filler.now(), instant: filler.filler.instant)
        let reuse = Reuse.decide(
            directives, response: reading.directives.obeyed, freshness, isOffline: filler.isOffline)
        if case .validate(let need) = reuse, resolver.accepted !== generation { return (freshness, need) }
        return nil
    }

    // MARK: The text

    /// The form in which this client can reach the URLs in the playlist.
    private var form: PlaylistForm {
        // What a balancer states about the client may differ from request to request.
        let host = exchange.forwarded == nil && kept == nil ? request.value(of: "Host") : nil
        if let host, let known = route.listing, known.host == host { return known.form }
        let own = route.form == .absolute ? route.url : handler.clientURL(of: exchange) ?? route.url
        let policy = handler.policy
        let style: PlaylistForm.Style =
            switch route.form {
            case .absolute: .absolute
            case .path: .path
            case .mount: .mount(servesAnyOrigin: policy.servesAnyOrigin)
            }
        let form = PlaylistForm(client: own, style: style, mounts: policy.mounts, kept: kept)
        if let host { route.listing = (host, form) }
        return form
    }

    private func makeText(of document: PlaylistDocument, for form: PlaylistForm, from generation: Generation) {
        let bound = LoopBound(self, on: exchange.loop), budget = WorkBudget(bytes: document.text.count)
        exchange.onAbort = { [self] in
            budget.cancel()
            abandon()
        }
        let shelf = library.shelf
        let isRun = filler.filler.store.performOnText(of: document.url.host) {
            let text = Result { () throws(PlaylistError) in try shelf.text(of: document, for: form, within: budget) }
            bound.post { $0.respond(with: text, of: document, from: generation) }
        }
        if !isRun { fail(.offline) }
    }

    private func respond(
        with text: Result<PlaylistText, PlaylistError>, of document: PlaylistDocument, from generation: Generation
    ) {
        guard exchange.isOpen, !isAnswered else { return }
        endWaiting()
        switch text {
        case .success(let text): respond(with: text, of: document, from: generation)
        case .failure(let error): fail(.unusable("\(error)"))
        }
    }

    private func respond(with text: PlaylistText, of document: PlaylistDocument, from generation: Generation) {
        if let fault = text.fault {
            filler.filler.logger.info("not rewritten: \(fault)", metadata: ["resource": "\(document.key.text)"])
        }
        guard !text.isOriginal else {
            guard !generation.isStored else { return answer(fromFile: generation) }
            // The content coding was removed.
            return ContentEncoding.isUncoded(generation.head.fields)
                ? respondOriginal(text.bytes, sharedBy: text.shared, from: generation) : respond(text, from: generation)
        }
        // RFC 9110 §10.2.2: a client that uses this as an HTTP proxy resolves against the origin's URL.
        guard route.form != .absolute || kept != nil || doubt != nil || filler.isOffline else {
            return redirect(to: document.base, from: generation)
        }
        respond(text, from: generation)
    }

    private func redirect(to url: OriginURL, from generation: Generation) {
        respond(302, [], from: generation) { $0.field("Location", url.absolute) }
    }

    /// Answers with the rewritten text, a representation with its own length, validator and ranges (RFC 9110 §8,
    /// §13, §14).
    private func respond(_ text: PlaylistText, from generation: Generation) {
        let validators = RepresentationValidators(etag: text.etag)
        let describe = { (response: inout Response) in response.fields(rendered: text.fieldBytes) }
        let length = Int64(text.bytes.count)
        switch Conditional.evaluate(request, against: validators) {
        case .notModified: return respond(304, nil, from: generation, describe)
        case .failed: return respond(412, [], from: generation, describe)
        case .proceed: break
        }
        guard let wanted, several.isEmpty, request.method == .get,
            Conditional.rangeApplies(request, against: validators)
        else { return respond(200, text.bytes, sharedBy: text.shared, from: generation, describe) }
        guard let range = wanted.resolve(length: length) else {
            return refuseRange(length, generation, following: nil)
        }
        respond(206, text.bytes, range, sharedBy: text.shared, from: generation) { response in
            response.contentRange(range, total: length)
            describe(&response)
        }
    }

    /// Answers with a playlist or another text that is not stored, byte for byte.
    private func respondOriginal(
        _ bytes: [UInt8], sharedBy shared: ProxyMetrics.Transit.SharedBytes? = nil, from generation: Generation
    ) {
        let range = wantedPart(of: bytes.count, generation.head.validators)
        respond(range == nil ? 200 : 206, bytes, range, sharedBy: shared, from: generation, keepsValidators: true) {
            if let range { $0.contentRange(range, total: Int64(bytes.count)) }
        }
    }

    /// The one range that the client wants of a text; nil for all of it.
    private func wantedPart(of length: Int, _ validators: RepresentationValidators) -> Range<Int64>? {
        guard let wanted, several.isEmpty, request.method == .get,
            Conditional.rangeApplies(request, against: validators)
        else { return nil }
        return wanted.resolve(length: Int64(length))
    }

    /// - Parameters:
    ///   - bytes: the text; nil if the answer has no body.
    ///   - range: the part of it that is sent; nil for all.
    ///   - shared: nil if it is this answer's own.
    private func respond(
        _ status: Int, _ bytes: [UInt8]?, _ range: Range<Int64>? = nil,
        sharedBy shared: ProxyMetrics.Transit.SharedBytes? = nil, from generation: Generation,
        keepsValidators: Bool = false, _ describe: (inout Response) -> Void
    ) {
        isAnswered = true
        endWaiting()
        var body: BytesSource?
        if let bytes {
            body = exchange.source(of: bytes, range.map { Int($0.lowerBound)..<Int($0.upperBound) }, sharedBy: shared)
            guard body != nil else { return fail(.crowded) }
        }
        let length = body.map { Int64($0.unsent.count) }, cached = outcome.isHit ? length ?? 0 : 0
        handler.metrics.bytesFromCache.add(cached)
        filler.origin(route.url.host).sentFromCache.add(cached)
        exchange.firstByteTimes = outcome.isHit ? handler.metrics.firstByteOfHits : handler.metrics.firstByteOfMisses
        var response = Response(status, length: length)
        addFields(
            of: generation, generation.snapshot, without: keepsValidators ? [] : Self.ofTheOriginal, to: &response)
        describe(&response)
        exchange.respond(response, body: body)
    }

    /// Fields that describe only the origin's bytes.
    private static let ofTheOriginal: FieldNames = [
        "accept-ranges", "content-digest", "content-encoding", "content-length", "content-md5", "digest", "etag",
        "last-modified", "repr-digest",
    ]
}
