import Activity
import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport
import Playlists
import Presentations

/// Answers with a playlist or feed, which is read as a whole and rewritten so that every URL in it leads through the
/// proxy. Loop-bound.
final class PlaylistAnswer {
    private let answer: MediaAnswer
    private let request: MediaRequest
    private let generation: Generation
    /// Whether it has just arrived from its origin.
    private let isNews: Bool
    /// Set while it is being read for this answer.
    private var waiter: PlaylistLibrary.Waiter?
    /// Set while the text is being made.
    private var budget: WorkBudget?
    /// The renditions that stay in it while its origin is unreachable; nil for all.
    private var kept: PlaylistForm.Kept?

    init(_ answer: MediaAnswer, _ generation: Generation, isNews: Bool) {
        (self.answer, request, self.generation, self.isNews) = (answer, answer.request, generation, isNews)
    }

    private var isOver: Bool { !request.exchange.isOpen || answer.playlist !== self }

    var isWaiting: Bool { waiter != nil }

    // MARK: Reading

    /// Reads the playlist, then answers with it.
    func start(_ view: Generation.Snapshot, following status: SharedFetch?) {
        // no trap: a length is not negative
        let coverage = view.length.map { generation.coverage(of: 0..<$0) } ?? .part
        if request.directives.control.onlyIfCached, coverage != .whole {
            status?.leave(request.follower)
            answer.end()
            return request.refuse()
        }
        request.classify(coverage, generation, isOpening: status != nil)
        if let document = request.proxy.library.document(of: generation, at: request.route.mediaURL) {
            status?.leave(request.follower)
            return give(document)
        }
        guard coverage == .whole || answer.beginWaiting() else {
            status?.leave(request.follower)
            return answer.failSilent()
        }
        awaitReading { [self] end in
            request.proxy.library.read(
                generation, of: answer.opening.resource, request.demand, follower: request.follower, following: status,
                then: end)
        }
    }

    /// Reads and answers a playlist that was recognized by its first bytes.
    /// - Parameters:
    ///   - reader: has delivered `beginning`, starting with the first byte, and continues to the last.
    func start(after beginning: UnsafeRawBufferPointer, by reader: CacheReader) {
        let beginning = Array(beginning)
        // It is read, not played.
        reader.onReady = nil
        reader.count(asPlay: false)
        guard answer.beginWaiting() else {
            reader.finish()
            return answer.failSilent()
        }
        awaitReading { [self] end in
            request.proxy.library.read(
                generation, of: answer.opening.resource, at: request.route.mediaURL, by: reader, after: beginning,
                then: end)
        }
    }

    /// Waits for a reading. A client that disconnects meanwhile gets no answer; others may wait for the same
    /// reading.
    private func awaitReading(_ read: (@escaping (PlaylistLibrary.Outcome) -> Void) -> PlaylistLibrary.Waiter?) {
        request.exchange.onAbort { [answer] in answer.abandon() }
        waiter = read { [self] outcome in
            waiter = nil
            if !isOver { haveRead(outcome) }
        }
    }

    private func haveRead(_ outcome: PlaylistLibrary.Outcome) {
        switch outcome {
        case .document(let document): give(document)
        case .refused(_, let refusal) where generation.isStored && refusal.isPassing:
            answer.answer(fromFile: generation)
        case .refused where generation.isStored: answer.answer(from: generation)
        // The bytes that were read are all that is left of it.
        case .refused(let bytes?, _): respondOriginal(bytes)
        case .refused(nil, _): answer.passUnread()
        case .failed(.changed): answer.restart(after: .changed)
        case .failed(let error) where generation.isUnreadable: answer.restart(after: error)
        case .failed(let error): answer.answerInDoubt(after: error)
        }
    }

    /// Leaves what is being read or made.
    func leave() {
        if let waiter { request.proxy.library.leave(waiter) }
        waiter = nil
        budget?.cancel()
    }

    // MARK: Freshness

    private func give(_ document: PlaylistDocument) {
        let isNews = isNews || answer.accepts(generation) && answer.doubt == nil
        note(document, isNews: isNews)
        if !isNews, answer.doubt == nil, let need = needOfValidation {
            return answer.validate(generation, need.freshness, need.need)
        }
        if let doubt = answer.doubt, !request.filler.origins.isOffline, let live = generation.head.live,
            live.isSilent(at: request.filler.filler.instant)
        {
            return answer.fail(doubt, status: 504, advice: "the stream's playlist would not advance")
        }
        mayBeIncomplete(document) ? findKept(of: document) : giveText(of: document)
    }

    /// Notes from the document's content how long it is the current state of its stream.
    private func note(_ document: PlaylistDocument, isNews: Bool) {
        let head = generation.head, now = request.filler.filler.instant
        guard let rule = document.refreshRule else {
            let isUnchanging = document.isUnchanging
            if head.live != nil || !head.isListing || head.isUnchanging != isUnchanging {
                generation.setHead { $0.ofPlaylist(nil, isUnchanging: isUnchanging) }
            }
            return
        }
        let age = UInt64(clamping: head.times.residentTime(at: request.filler.filler.now())) *| 1_000_000_000
        let timing = LiveTiming(rule, answeredAt: head.live?.answeredAt ?? (isNews ? now : now -| age))
        if head.live != timing { generation.setHead { $0.ofPlaylist(timing) } }
    }

    /// Decides again whether to validate, as the live timing is known only once the playlist has been read.
    private var needOfValidation: (freshness: Freshness, need: Reuse.Need)? {
        let freshness = request.freshness(of: generation)
        let reuse = Reuse.decide(
            request.directives, response: generation.head.reading(request.cacheTerms).directives.obeyed, freshness,
            isOffline: request.filler.origins.isOffline)
        if case .validate(let need) = reuse, !answer.accepts(generation) { return (freshness, need) }
        return nil
    }

    // MARK: Origin unreachable

    /// Whether some of its renditions may be unreachable.
    private func mayBeIncomplete(_ document: PlaylistDocument) -> Bool {
        guard document.listsRenditions else { return false }
        return request.filler.origins.isOffline || answer.doubt != nil
            || request.filler.filler.backoff.isDown(
                request.route.url.absolute, beside: request.resolvedRule.parents)
    }

    /// Finds the renditions that are completely cached, so that only these remain in the playlist, if there are
    /// any.
    private func findKept(of document: PlaylistDocument) {
        let bound = LoopBound(self, on: request.exchange.loop)
        request.exchange.onAbort { [answer] in answer.abandon() }
        request.proxy.library.findKept(of: document.key, request.proxy.policy) { kept in
            bound.post { playlist in
                playlist.kept = kept
                if !playlist.isOver { playlist.giveText(of: document) }
            }
        }
    }

    // MARK: The text

    private func giveText(of document: PlaylistDocument) {
        let form = form
        guard let text = document.knownText(for: form) else { return makeText(of: document, for: form) }
        respond(with: text, of: document)
    }

    /// The form in which this client can reach the URLs in the playlist.
    private var form: PlaylistForm {
        let route = request.route, exchange = request.exchange
        // What a balancer states about the client may differ from request to request.
        let host = exchange.forwarded == nil && kept == nil ? request.head.value(of: "Host") : nil
        if let host, let known = route.listing, known.host == host { return known.form }
        let own = route.form == .absolute ? route.url : request.proxy.clientURL(of: exchange) ?? route.url
        let policy = request.proxy.policy
        let style: PlaylistForm.Style =
            switch route.form {
            case .absolute: .absolute
            case .path: .path
            case .mount: .mount(servesAnyOrigin: policy.servesAnyOrigin)
            }
        let form = PlaylistForm(
            client: own, style: style, mounts: policy.mounts, kept: kept, limit: request.resolvedRule.limit)
        if let host { route.listing = (host, form) }
        return form
    }

    private func makeText(of document: PlaylistDocument, for form: PlaylistForm) {
        let bound = LoopBound(self, on: request.exchange.loop), budget = WorkBudget(bytes: document.text.count)
        self.budget = budget
        request.exchange.onAbort { [answer] in answer.abandon() }
        let shelf = request.proxy.library.shelf
        let isRun = request.filler.filler.store.performOnText(of: document.url.host) {
            let text = Result { () throws(PlaylistError) in try shelf.text(of: document, for: form, within: budget) }
            bound.post { $0.haveMade(text, of: document) }
        }
        if !isRun { answer.fail(.offline) }
    }

    private func haveMade(_ text: Result<PlaylistText, PlaylistError>, of document: PlaylistDocument) {
        guard !isOver else { return }
        budget = nil
        switch text {
        case .success(let text): respond(with: text, of: document)
        case .failure(let error): answer.fail(.unusable("\(error)"))
        }
    }

    private func respond(with text: PlaylistText, of document: PlaylistDocument) {
        if let fault = text.fault {
            request.filler.filler.logger.info("not rewritten: \(fault)", metadata: ["resource": "\(document.key.text)"])
        }
        guard !text.isOriginal else {
            guard !generation.isStored else { return answer.answer(fromFile: generation) }
            // The content coding was removed.
            return ContentEncoding.isUncoded(generation.head.fields)
                ? respondOriginal(text.bytes, sharedBy: text.shared) : respond(text)
        }
        // RFC 9110 §10.2.2: a client that uses this as an HTTP proxy resolves against the origin's URL.
        guard
            request.route.form != .absolute || kept != nil || answer.doubt != nil || request.filler.origins.isOffline
                || !request.resolvedRule.limit.isNone
        else {
            return respond(302, []) { $0.field("Location", document.base.absolute) }
        }
        respond(text)
    }

    /// Answers with the rewritten text, a representation with its own length, validator and ranges (RFC 9110 §8,
    /// §13, §14).
    private func respond(_ text: PlaylistText) {
        let validators = RepresentationValidators(etag: text.etag)
        let describe = { (response: inout Response) in response.fields(rendered: text.fieldBytes) }
        let length = Int64(text.bytes.count)
        switch Conditional.evaluate(request.head, against: validators) {
        case .notModified: return respond(304, nil, describe: describe)
        case .failed: return respond(412, [], describe: describe)
        case .proceed: break
        }
        // Its lines have no date.
        guard Conditional.rangeApplies(request.head, against: validators, isDateStrong: false),
            let wanted = request.wantedPart
        else {
            return respond(200, text.bytes, sharedBy: text.shared, describe: describe)
        }
        guard let range = wanted.resolve(length: length) else {
            request.classify(.whole, generation, isOpening: false)
            answer.end()
            return request.refuseRange(length)
        }
        respond(206, text.bytes, range, sharedBy: text.shared) { response in
            response.contentRange(range, total: length)
            describe(&response)
        }
    }

    /// Answers with a playlist or another text that is not stored, byte for byte.
    private func respondOriginal(_ bytes: [UInt8], sharedBy shared: ProxyMetrics.Transit.SharedBytes? = nil) {
        let length = Int64(bytes.count), head = generation.head
        switch Conditional.evaluate(request.head, against: head.validators) {
        case .notModified: return respond(304, nil, keepsValidators: true) { _ in }
        case .failed: return respond(412, [], keepsValidators: true) { _ in }
        case .proceed: break
        }
        let wanted = request.honoursRange(of: head) ? request.wantedPart : nil
        let range = wanted?.resolve(length: length)
        guard wanted == nil || range != nil else {
            answer.end()
            return request.refuseRange(length)
        }
        respond(range == nil ? 200 : 206, bytes, range, sharedBy: shared, keepsValidators: true) {
            if let range { $0.contentRange(range, total: length) }
        }
    }

    /// - Parameters:
    ///   - bytes: the text; nil if the answer has no body.
    ///   - range: the part of it that is sent; nil for all.
    ///   - shared: nil if it is this answer's own.
    private func respond(
        _ status: Int, _ bytes: [UInt8]?, _ range: Range<Int64>? = nil,
        sharedBy shared: ProxyMetrics.Transit.SharedBytes? = nil, keepsValidators: Bool = false,
        describe: (inout Response) -> Void
    ) {
        let isOld = answer.accepts(generation)
        let length = bytes.map { Int64(range?.count ?? $0.count) }
        var body: BytesSource?
        if let bytes, request.head.method == .get {
            let part = range.map { Int($0.lowerBound)..<Int($0.upperBound) }
            body = request.exchange.source(of: bytes, part, sharedBy: shared)
            guard body != nil else { return answer.fail(.crowded) }
        }
        answer.end()
        if body != nil { request.countSent(length ?? 0, isFetched: request.isFetched) }
        request.noteFirstByte()
        var response = Response(status, length: length)
        request.addFields(
            of: generation, generation.snapshot, isOld: isOld, without: keepsValidators ? [] : Self.ofTheOriginal,
            to: &response)
        describe(&response)
        request.exchange.respond(response, body: body)
    }

    /// Fields that describe only the origin's bytes.
    private static let ofTheOriginal: FieldNames = [
        "accept-ranges", "content-digest", "content-encoding", "content-length", "content-md5", "digest", "etag",
        "last-modified", "repr-digest",
    ]
}
