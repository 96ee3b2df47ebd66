import Activity
import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Presentations

/// Answers with what a generation has: meets the request's conditions and ranges, waits for the first bytes, sends the
/// head, and is the source of the body. Loop-bound.
///
/// The answer that it belongs to is passed along until the head is sent: after that, it is not needed.
final class ContentAnswer: BodySource {
    private let request: MediaRequest
    private let generation: Generation
    /// A recent snapshot of it.
    private let view: Generation.Snapshot
    private let resource: OpenResource
    /// Whether it was stored before, although its origin was contacted.
    private let isOld: Bool
    private var form = Form.whole(length: nil)
    private(set) var reader: CacheReader?
    /// The first bytes, read before the head is sent: if they do not arrive, the answer is an error instead.
    private var firstStep: BodyStep?
    /// The item that is delivered, if the next one is fetched after it; and the offset at which most of it was read.
    private var item: NextItems.Reading?
    private var itemMark = Int64.max
    /// Where it was reading at its end; nil before.
    private(set) var lastReading: (offset: Int64, length: Int64?)?

    private enum Form {
        case whole(length: Int64?)
        case part(Range<Int64>, length: Int64?)
        /// Several ranges (RFC 9110 §14.2, §15.3.7.2).
        case parts(MultipartLayout, length: Int64)
        /// The origin's own answer, such as its error page.
        case page
    }

    init(_ answer: MediaAnswer, _ generation: Generation, _ view: Generation.Snapshot) {
        (request, resource, self.generation, self.view) = (answer.request, answer.opening.resource, generation, view)
        isOld = answer.accepts(generation)
    }

    // MARK: What is sent

    /// - Parameter status: the fetch that delivers it.
    func start(for answer: MediaAnswer, following status: SharedFetch?) {
        guard view.head.status == 200 else { return relay(for: answer, following: status) }
        guard meetsConditions(following: status) else { return }
        noteMembership()
        if request.resolvedRule.pins, generation.isStored { request.filler.filler.pin(generation, of: resource) }
        // RFC 9110 §14.2: while the length is unknown, Range is ignored.
        guard let length = view.length, let wanted = request.wanted,
            request.honoursRange(of: view.head)
        else { return send(.whole(length: view.length), for: answer, following: status) }
        if !request.several.isEmpty, generation.isStored {
            return sendSeveral(of: length, for: answer, following: status)
        }
        guard let range = wanted.resolve(length: length) else { return refuseRange(length, following: status) }
        send(.part(range, length: length), for: answer, following: status)
    }

    /// Answers with a part whose total length the origin did not state; the answer leaves it open as well.
    func start(with part: Range<Int64>, for answer: MediaAnswer, following status: SharedFetch) {
        guard meetsConditions(following: status) else { return }
        guard let range = request.wanted(of: part) else {
            status.leave(request.follower)
            return answer.fail(.unusable("it does not contain the requested bytes"))
        }
        send(.part(range, length: nil), for: answer, following: status)
    }

    /// Otherwise, the answer is given.
    private func meetsConditions(following status: SharedFetch?) -> Bool {
        guard request.head.rest.isConditional else { return true }
        switch Conditional.evaluate(request.head, against: view.head.validators) {
        case .notModified: close(304, following: status)
        case .failed: close(412, following: status)
        case .proceed: return true
        }
        return false
    }

    /// A response that is passed through has only the range that was requested from the origin, which is a valid answer
    /// too (§15.3.7); a stored generation may have all of them.
    private func sendSeveral(of length: Int64, for answer: MediaAnswer, following status: SharedFetch?) {
        switch RangeSet(request.several, length: length) {
        case .unsatisfiable: refuseRange(length, following: status)
        case .parts(let ranges) where ranges.count == 1:
            send(.part(ranges[0], length: length), for: answer, following: status)
        case .parts(let ranges) where view.head.rangeCondition != nil || coverage(of: ranges) == .whole:
            let layout = MultipartLayout(ranges, total: length, type: view.head.fields["Content-Type"])
            send(.parts(layout, length: length), for: answer, following: status)
        // Without a validator, the absent bytes arrive in one transfer, in the order of the whole.
        case .parts, .whole: send(.whole(length: length), for: answer, following: status)
        }
    }

    private func coverage(of ranges: [Range<Int64>]) -> Generation.Coverage {
        let coverages = ranges.map { generation.coverage(of: $0) }
        return coverages.allSatisfy { $0 == coverages[0] } ? coverages[0] : .part
    }

    private func send(_ form: Form, for answer: MediaAnswer, following status: SharedFetch?) {
        self.form = form
        let first: Range<Int64>, end: Int64?, coverage: Generation.Coverage
        switch form {
        case .whole(let length):
            (first, end) = (0..<(length ?? .max), length) // no trap: a length is not negative
            // What has just been opened is on its way.
            coverage = length == nil || status != nil ? .part : generation.coverage(of: first)
        case .part(let range, _):
            (first, end) = (range, range.upperBound)
            coverage = view.length == nil ? .part : generation.coverage(of: range)
        case .parts(let layout, _):
            (first, end) = (layout.ranges[0], layout.ranges[0].upperBound)
            coverage = self.coverage(of: layout.ranges)
        case .page: return
        }
        request.classify(coverage, generation, isOpening: status != nil)
        guard case .get = request.head.method else {
            status?.leave(request.follower)
            // RFC 9110 §14.2: Range is for GET alone.
            if case .part(_, let length) = form { self.form = .whole(length: length) }
            return request.exchange.respond(contentHead)
        }
        if request.directives.control.onlyIfCached, coverage != .whole {
            status?.leave(request.follower)
            return request.refuse()
        }
        let reader = reader(from: first.lowerBound, to: end, following: status)
        self.reader = reader
        if case .parts = form {} else { beginItem(reader, isAsStored: answer.isAsStored) }
        if request.resolvedRule.fill.readsOn {
            ResourceFill.keepFilling(
                resource, generation, request.demand, from: reader.offset, on: request.filler)
        }
        sendFirst(of: reader, for: answer)
    }

    private func reader(from start: Int64, to end: Int64?, following status: SharedFetch?) -> CacheReader {
        let request = request
        return CacheReader(
            generation, from: start, to: end, resource: resource, host: request.route.url.host,
            demand: request.demand, filler: request.filler, follower: request.follower, following: status)
    }

    private func relay(for answer: MediaAnswer, following status: SharedFetch?) {
        form = .page
        request.classify(.none, generation, isOpening: true)
        request.outcome.forwardStatus = view.head.status
        let reader = reader(from: 0, to: view.length, following: status)
        self.reader = reader
        sendFirst(of: reader, for: answer)
    }

    /// Adds the generation to its presentation, if it was stored before a playlist named it.
    private func noteMembership() {
        // A resource that is kept on its own does not become part of a presentation.
        guard let whole = request.membership?.whole, generation.isStored, generation.whole != whole,
            !generation.isKept
        else { return }
        request.proxy.library.join([generation.key], to: whole)
    }

    // MARK: Without bytes

    private func close(_ status: Int, following opening: SharedFetch?) {
        request.classify(.whole, generation, isOpening: opening != nil)
        opening?.leave(request.follower)
        var response = Response(status, length: status == 304 ? nil : 0)
        request.addFields(of: generation, view, isOld: isOld, to: &response)
        request.exchange.respond(response)
    }

    private func refuseRange(_ length: Int64, following status: SharedFetch?) {
        request.classify(.whole, generation, isOpening: status != nil)
        status?.leave(request.follower)
        request.refuseRange(length)
    }

    // MARK: The first bytes

    /// Waits for the first bytes, then sends the head followed by them.
    private func sendFirst(of reader: CacheReader, for answer: MediaAnswer) {
        // Bytes that have been examined already are not looked at again.
        let looks = looksForListing(reader, answer)
        reader.count(asSent: !looks, asFetched: answer.isAsStored && request.isFetched)
        let step = reader.next(limit: Self.firstSpan(of: reader), copies: looks)
        switch step {
        case .wait:
            guard !reader.isFollowing || answer.beginWaiting() else {
                finishReader()
                return answer.failSilent()
            }
            request.exchange.onAbort { answer.abandon() }
            reader.onReady = { [self] in
                reader.onReady = nil
                sendFirst(of: reader, for: answer)
            }
            return
        case .bytes(let bytes, _, _)
        where looks && request.proxy.library.isPlaylist(bytes, of: reader.generation) && readsAll(reader):
            self.reader = nil
            return answer.answerListing(reader.generation, beginning: bytes, by: reader)
        case .failed(let error):
            // Not of the buffer through which it may have continued.
            let isUnreadable = reader.generation.isUnreadable
            finishReader()
            if case .changed = error { return answer.restart(after: error) }
            return isUnreadable ? answer.restart(after: error) : answer.fail(error)
        case .bytes, .end: firstStep = Self.bodyStep(step)
        }
        reader.count(asSent: true, asFetched: answer.isAsStored && request.isFetched)
        report(reader, answer)
        answer.patience.end()
        request.noteFirstByte()
        request.exchange.respond(contentHead, body: body(reader, step))
    }

    private func looksForListing(_ reader: CacheReader, _ answer: MediaAnswer) -> Bool {
        if case .parts = form { return false }
        return !answer.isAsStored && reader.offset == 0 && reader.generation.beginning != .other
    }

    /// Whether a reader that began at the resource's first byte runs to its end.
    private func readsAll(_ reader: CacheReader) -> Bool {
        reader.generation.head.status == 200
            && (request.wanted == nil || reader.remaining.map { $0 +| reader.offset } == reader.generation.length)
    }

    /// Adds to `Cache-Status` how its first bytes came.
    private func report(_ reader: CacheReader, _ answer: MediaAnswer) {
        if reader.account.isCollapsed { request.outcome.isCollapsed = true }
        if reader.account.hasLeftDisk { answer.noteForward(.bypass) }
        if !request.outcome.isHit, request.outcome.forwardStatus == nil {
            request.outcome.forwardStatus = reader.originStatus
        }
        if reader.account.lacksRoom {
            request.outcome.isStored = false
            request.outcome.detail = FailureKind.noRoom.rawValue
        }
    }

    /// A short answer goes out in one piece. The first piece of a long one is small: a client that seeks waits for
    /// the first byte, and a piece is sent only once the kernel has copied all of it.
    private static func firstSpan(of reader: CacheReader) -> Int {
        reader.remaining.map { $0 <= 64 << 10 } == true ? 64 << 10 : 16 << 10
    }

    private func body(_ first: CacheReader, _ step: CacheReader.Step) -> any BodySource {
        guard case .parts(let layout, _) = form else { return self }
        return MultipartBody(layout, request.exchange, first: first, step) { [resource, generation, request] in
            CacheReader(
                generation, from: $0.lowerBound, to: $0.upperBound, resource: resource, host: request.route.url.host,
                demand: request.demand, filler: request.filler)
        } onNext: { [self] in
            lastReading = reading
            reader = $0
        } onEnd: { [self] isWhole in
            lastReading = reading
            reader = nil
            if !isWhole { request.leaveReading() }
        }
    }

    // MARK: The head

    private var contentHead: Response {
        var response: Response
        switch form {
        case .whole(let length): response = Response(200, length: length)
        case .part(let range, let length):
            response = Response(206, length: Int64(range.count))
            response.contentRange(range, total: length)
        case .parts(let layout, _):
            response = Response(200, length: layout.length)
            // Each part states its own type and range.
            request.addFields(of: generation, view, isOld: isOld, without: ["content-type"], to: &response)
            response.status = 206
            response.field("Content-Type", layout.contentType)
            return response
        case .page: response = Response(view.head.status, length: view.length)
        }
        request.addFields(of: generation, view, isOld: isOld, to: &response)
        return response
    }

    // MARK: The body

    func next(limit: Int) -> BodyStep {
        if let first = firstStep {
            firstStep = nil
            return first
        }
        guard let reader else { return .cut }
        if reader.remaining == 0 { return .end }
        if reader.offset >= itemMark { noteItem(reader) }
        let step = Self.bodyStep(reader.next(limit: limit))
        if case .wait = step, reader.onReady == nil { reader.onReady = { [request] in request.exchange.resume() } }
        return step
    }

    private static func bodyStep(_ step: CacheReader.Step) -> BodyStep {
        switch step {
        case .bytes(let bytes, let descriptor, let offset):
            .span(BodySpan(bytes: bytes, file: descriptor.map { ($0, offset) }))
        case .wait: .wait
        case .end: .end
        case .failed: .cut
        }
    }

    func takeBack(_ count: Int) -> Bool { reader?.rewind(by: count) == true }

    func finish() {
        guard let reader else { return request.leaveReading() }
        self.reader = nil
        lastReading = (reader.offset, reader.generation.length)
        request.exchange.note(reader)
        noteItem(reader)
        if reader.remaining != 0 { request.leaveReading() }
        reader.finish()
    }

    /// Ends the reading, as the client has left, or waits no longer.
    func finishReader() {
        reader?.finish()
        reader = nil
    }

    // MARK: Items

    /// Notices when a player has read three quarters of an item: it was played, and the next one is fetched.
    private func beginItem(_ reader: CacheReader, isAsStored: Bool) {
        // A page of another site must not choose what is downloaded or unpinned. `web_origins` names those that play
        // for the user.
        guard !isAsStored, generation.isStored, !request.reading.requester.isForeign else { return }
        reader.count(asPlay: isPlay)
        // Segments of a stream have read-ahead of their own.
        guard request.membership == nil, !view.isPart else { return }
        let route = request.route, next = request.proxy.next
        guard next.mayFollow(route.resolvedRule.prefetchesNext), let length = statedLength,
            next.mayFollow(route.url, length: length, route.resolvedRule)
        else { return }
        item = next.begin(route.url, resource.key, by: request.reading.player, at: reader.offset, length: length)
        itemMark = item?.mark ?? .max
    }

    private var statedLength: Int64? {
        switch form {
        case .whole(let length), .part(_, let length): length
        case .parts(_, let length): length
        case .page: nil
        }
    }

    /// Whether the answer is played as it arrives. AntennaPod and others download and play under one name, but only
    /// their players send `Icy-MetaData`.
    private var isPlay: Bool {
        guard request.isOfDownloader else { return true }
        return request.head.value(of: "Icy-MetaData") != nil
    }

    /// Reports what was delivered of the item so far.
    private func noteItem(_ reader: CacheReader) {
        itemMark = .max
        if let item { request.proxy.next.read(item, upTo: reader.offset, on: request.filler) }
    }

    // MARK: What is shown of it

    /// Where it reads, and how long the resource is; nil before its first byte.
    var reading: (offset: Int64, length: Int64?)? { reader.map { ($0.offset, $0.generation.length) } }

    /// The name that the origin gives the file.
    var fileName: String? {
        view.head.fields["Content-Disposition"].flatMap { ContentDisposition(parsing: $0)?.fileName }
    }
}

extension Exchange {
    /// Adds the bytes that a reader delivered to the counts of the exchange.
    func note(_ reader: CacheReader) {
        let account = reader.account
        count(fromCache: account.stored, fromOrigin: account.fetched)
    }
}
