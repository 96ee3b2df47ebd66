import CacheFill
import CachePolicy
import DiskCache
import EventIO
import Glibc
import HTTPModel
import HTTPTransport
import Metrics
import Upstream

/// One request for media on its way to its answer, and then the answer's body. Loop-bound.
///
///     look up ── known ──────────────── answer from the generation ── body
///        └────── unknown ── open (fetch what is wanted) ──┘
///                             └── not to be stored: pass on
final class MediaAnswer: BodySource {
    private let exchange: Exchange
    private let request: RequestHead
    private let route: MediaRoutes.Route
    private let handler: MediaHandler
    private let resource: OpenResource
    private let follower = FollowerID()
    private var wanted: ByteRangeSpec?
    private var opening: FetchStatus?
    private var headFetch: HeadFetch?
    private var reader: CacheReader?
    /// The first bytes, asked for before the head goes out: when they cannot be had, the answer is an error instead.
    private var firstStep: BodyStep?
    private var outcome = CacheStatus.hit()
    /// A generation may be replaced while its first byte is awaited: then the answer is given from the next one.
    private var restarts = 0
    /// Each request counts once, however often it starts anew.
    private var isCounted = false
    private static let maxRestarts = 3

    init(_ exchange: Exchange, _ route: MediaRoutes.Route, _ handler: MediaHandler) {
        self.exchange = exchange
        request = exchange.request
        self.route = route
        self.handler = handler
        resource = handler.filler.filler.resource(route.key)
    }

    func start() {
        // RFC 9110 §14.2: Range is for GET alone; of several ranges the whole is a valid answer.
        if request.method == .get {
            switch RangeRequest.parse(request.combined("Range")) {
            case .none, .multiple: break
            case .single(let spec): wanted = spec
            case .malformed:
                handler.metrics.errors.add("bad-request")
                return exchange.respond(400, text: "malformed Range; write bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT")
            }
        }
        proceed()
    }

    /// As far as it goes without waiting. Called again when there is news.
    private func proceed() {
        guard exchange.isOpen else { return }
        switch resource.view() {
        case .generation(let generation):
            answer(from: generation)
        case .unknown where request.method == .head:
            passHead()
        case .unknown:
            open(alone: false)
        case .unreadable where request.method == .head:
            passHead()
        case .unreadable:
            open(alone: true)
        case .mustLookUp:
            exchange.onAbort = { [self] in abandon() }
            resource.whenLookedUp(wake { $0.proceed() })
            handler.filler.filler.lookUp(resource)
        case .lookingUp:
            exchange.onAbort = { [self] in abandon() }
            resource.whenLookedUp(wake { $0.proceed() })
        }
    }

    private func wake(_ body: @escaping @Sendable (MediaAnswer) -> Void) -> @Sendable () -> Void {
        let bound = LoopBound(self, on: exchange.loop)
        return { bound.post { if $0.exchange.isOpen { body($0) } } }
    }

    private lazy var demand = Demand(url: route.url, span: wanted, request: request)

    // MARK: Unknown

    private func open(alone: Bool) {
        exchange.onAbort = { [self] in abandon() }
        guard let (status, isCollapsed) = handler.filler.open(resource, demand, follower: follower, alone: alone) else { return proceed() }
        opening = status
        outcome = .forwarded(alone ? .bypass : .uriMiss)
        outcome.isCollapsed = isCollapsed
        awaitOpening()
    }

    private func awaitOpening() {
        guard exchange.isOpen, let status = opening else { return }
        switch status.opening {
        case .stored(let generation):
            outcome.isStored = true
            return answer(from: generation, following: status)
        case .passing(let generation, let owner, let part?) where owner == follower:
            return answer(fromPart: part, of: generation, following: status)
        case .passing(let generation, let owner, nil) where owner == follower:
            return answer(from: generation, following: status)
        case .passing:
            // What came was for the one who asked.
            leaveOpening()
            return open(alone: true)
        case nil: break
        }
        if case .ended(let end, _) = status.view {
            leaveOpening()
            if case .failed(let error) = end { return fail(error) }
            return restart(after: .unusable("it ended before its head"))
        }
        if !status.wait(follower, at: nil, wake: wake { $0.awaitOpening() }) { awaitOpening() }
    }

    private func leaveOpening() {
        opening?.leave(follower)
        opening = nil
    }

    // MARK: Known

    private func answer(from generation: Generation, following status: FetchStatus? = nil) {
        opening = nil
        guard generation.head.status == 200 else { return relay(generation, following: status) }
        switch Conditional.evaluate(request, against: generation.head.validators) {
        case .notModified: return close(304, generation, following: status)
        case .failed: return close(412, generation, following: status)
        case .proceed: break
        }
        guard let length = generation.length else {
            // RFC 9110 §14.2: while the length is unknown, Range is ignored.
            return answer(from: generation, range: nil, length: nil, following: status)
        }
        guard let wanted, Conditional.rangeApplies(request, against: generation.head.validators) else {
            return answer(from: generation, range: nil, length: length, following: status)
        }
        guard let range = wanted.resolve(length: length) else { return refuseRange(length, generation, following: status) }
        answer(from: generation, range: range, length: length, following: status)
    }

    private func answer(from generation: Generation, range: Range<Int64>?, length: Int64?, following status: FetchStatus?) {
        classify(generation, range ?? 0..<(length ?? .max), isOpening: status != nil)
        guard request.method == .get else {
            status?.leave(follower)
            return exchange.respond(head(of: generation, range: nil, length: length))
        }
        let reader = CacheReader(
            generation, from: range?.lowerBound ?? 0, to: range?.upperBound ?? length, resource: resource, demand: demand, filler: handler.filler,
            follower: follower, following: status)
        self.reader = reader
        sendFirst(of: reader) { [self] in head(of: generation, range: range, length: length) }
    }

    /// The origin sends a part and does not tell of how much: the player is told no more either.
    private func answer(fromPart part: Range<Int64>, of generation: Generation, following status: FetchStatus) {
        opening = nil
        let range = wanted?.resolve(length: part.upperBound)?.clamped(to: part) ?? part
        answer(from: generation, range: range, length: nil, following: status)
    }

    /// Waits for the first bytes, then sends the head and them.
    private func sendFirst(of reader: CacheReader, head: @escaping () -> Response) {
        let step = reader.next(limit: Self.firstSpan(of: reader))
        switch step {
        case .wait:
            exchange.onAbort = { [self] in abandon() }
            reader.onReady = { [self] in sendFirst(of: reader, head: head) }
            return
        case .failed(.changed):
            reader.finish()
            self.reader = nil
            return restart(after: .changed)
        case .failed(let error):
            reader.finish()
            self.reader = nil
            return fail(error)
        case .bytes, .end:
            firstStep = Self.bodyStep(step)
        }
        if reader.isCollapsed { outcome.isCollapsed = true }
        if reader.lacksRoom {
            outcome.isStored = false
            outcome.detail = "no-room"
        }
        reader.onReady = nil
        exchange.firstByteTimes = outcome.isHit ? handler.metrics.firstByteOfHits : handler.metrics.firstByteOfMisses
        exchange.respond(head(), body: self)
    }

    /// A short answer goes out in one piece. Of a long one the first piece is small: who seeks waits for the first byte, and a piece is
    /// there only when the kernel has copied all of it.
    private static func firstSpan(of reader: CacheReader) -> Int {
        reader.remaining.map { $0 <= 64 << 10 } == true ? 64 << 10 : 16 << 10
    }

    private func restart(after error: FillError) {
        guard restarts < Self.maxRestarts else { return fail(error) }
        restarts += 1
        proceed()
    }

    private func classify(_ generation: Generation, _ range: Range<Int64>, isOpening: Bool) {
        defer { isCounted = true }
        if !isOpening {
            if !isCounted { generation.countHit() }
            switch generation.length == nil ? .part : generation.coverage(of: range) {
            case .whole: outcome = .hit()
            case .part: outcome = .forwarded(.partial)
            case .none: outcome = .forwarded(.partial, detail: "nothing-of-the-range")
            }
        }
        guard !isCounted else { return }
        if outcome.isHit {
            handler.metrics.hits.add()
        } else if outcome.forward == .partial {
            handler.metrics.partialHits.add()
        } else if outcome.forward == .bypass {
            handler.metrics.bypasses.add()
        } else {
            handler.metrics.misses.add()
        }
    }

    // MARK: Heads

    private func head(of generation: Generation, range: Range<Int64>?, length: Int64?) -> Response {
        var response = Response(range == nil ? 200 : 206, length: range.map { Int64($0.count) } ?? length)
        if let range { response.contentRange(range, total: length) }
        addFields(of: generation, to: &response)
        return response
    }

    private func addFields(of generation: Generation, to response: inout Response) {
        response.fields(rendered: generation.head.fieldBytes)
        if length(of: generation) != nil { response.field("Accept-Ranges", "bytes") }
        if outcome.isHit || outcome.forward == .partial {
            // RFC 9111 §5.1
            response.field("Age", max(0, Int64(time(nil)) - generation.head.storedAt))
        }
        response.field("Cache-Status", outcome.isHit ? Self.hitStatus : outcome.fieldValue)
    }

    private static let hitStatus = CacheStatus.hit().fieldValue

    private func length(of generation: Generation) -> Int64? {
        generation.head.status == 200 ? generation.length : nil
    }

    private func close(_ status: Int, _ generation: Generation, following opening: FetchStatus?) {
        classify(generation, 0..<0, isOpening: opening != nil)
        opening?.leave(follower)
        var response = Response(status, length: status == 304 ? nil : 0)
        addFields(of: generation, to: &response)
        exchange.respond(response)
    }

    private func refuseRange(_ length: Int64, _ generation: Generation, following status: FetchStatus?) {
        classify(generation, 0..<0, isOpening: status != nil)
        status?.leave(follower)
        exchange.respond(416, text: "the range is outside of the \(length) bytes") { [outcome] response in
            // RFC 9110 §15.5.17
            response.field("Content-Range", ContentRange(range: nil, total: length).fieldValue)
            response.field("Accept-Ranges", "bytes")
            response.field("Cache-Status", outcome.fieldValue)
        }
    }

    // MARK: Not from the cache

    /// The origin's own answer, such as its error page.
    private func relay(_ generation: Generation, following status: FetchStatus?) {
        classify(generation, 0..<0, isOpening: true)
        outcome.forwardStatus = generation.head.status
        let length = generation.length
        let reader = CacheReader(
            generation, from: 0, to: length, resource: resource, demand: demand, filler: handler.filler, follower: follower, following: status)
        self.reader = reader
        sendFirst(of: reader) { [self] in
            var response = Response(generation.head.status, length: length)
            addFields(of: generation, to: &response)
            return response
        }
    }

    private func passHead() {
        exchange.onAbort = { [self] in abandon() }
        outcome = .forwarded(.uriMiss)
        handler.metrics.misses.add()
        headFetch = handler.filler.head(demand) { [self] result in
            headFetch = nil
            switch result {
            case .success(let head):
                outcome.forwardStatus = head.status
                var fields = head.fields
                fields.removeUnfitForClients()
                var response = Response(head.status, length: head.contentLength)
                for line in fields.lines { response.field(line.name, line.value) }
                response.field("Cache-Status", outcome.fieldValue)
                exchange.respond(response)
            case .failure(let error): fail(error)
            }
        }
    }

    private func fail(_ error: FillError) {
        exchange.respond(error.status, text: error.clientText) { [outcome] response in
            response.field("Cache-Status", outcome.isHit ? CacheStatus.forwarded(.partial).fieldValue : outcome.fieldValue)
        }
    }

    /// The client went away before the head.
    private func abandon() {
        leaveOpening()
        headFetch?.cancel()
        headFetch = nil
        reader?.finish()
        reader = nil
    }

    // MARK: The body

    func next(limit: Int) -> BodyStep {
        if let first = firstStep {
            firstStep = nil
            return first
        }
        guard let reader else { return .cut }
        let step = Self.bodyStep(reader.next(limit: limit))
        if case .wait = step, reader.onReady == nil { reader.onReady = { [exchange] in exchange.resume() } }
        return step
    }

    private static func bodyStep(_ step: CacheReader.Step) -> BodyStep {
        switch step {
        case .bytes(let bytes, let descriptor, let offset): .span(BodySpan(bytes: bytes, file: (descriptor, offset)))
        case .wait: .wait
        case .end: .end
        case .failed: .cut
        }
    }

    func spanWasUnreadable() {
        reader?.dropLast()
    }

    func finish() {
        reader?.finish()
        reader = nil
    }
}
