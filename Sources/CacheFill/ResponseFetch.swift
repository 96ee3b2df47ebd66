import Activity
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Upstream

/// Fetches a response past the cache, into memory: its head alone, or a document for a reader that keeps what it means,
/// not its bytes. Loop-bound.
///
/// The rules' header fields, the address policy and the hosts' back-off apply as to any request.
package final class ResponseFetch: TransferDelegate {
    /// A response, whatever its status.
    package struct Response: Sendable {
        package let head: UpstreamHead
        /// The body as received, perhaps with a content coding; empty for a 304, and if the head alone was requested.
        package let body: [UInt8]
    }

    let demand: Demand
    private let conditions: HeaderFields
    /// The most bytes of a body; nil to request the head alone.
    private let limit: Int?
    /// What it is about, and the stored generation that the conditions validate; nil if it is not of the cache.
    private let resource: OpenResource?, validated: Generation?
    private(set) var call: OriginCall
    /// Unique among the fetches of the loop.
    let number: UInt64
    /// When it began; monotonic, in nanoseconds.
    let began = MonotonicClock.nanoseconds()
    private(set) var phase: UpstreamError.Phase?
    /// Called with each response before the final one.
    var report: (InterimResponse) -> Void = { _ in }
    /// Called when it is over.
    var onEnd: (ResponseFetch) -> Void = { _ in }
    /// nil when it is over.
    private var deliver: ((Result<Response, FillError>) -> Void)?
    private var transfer: (any Transfer)?
    private(set) var head: UpstreamHead?
    private(set) var body: [UInt8] = []
    /// Why the answer of a parent does not count.
    private var refusal: FillError?
    /// Runs before the request, and ends a response that arrives too slowly.
    private var timer: LoopTimer?

    /// In seconds, for the whole response.
    private static let longest = 600.0

    init(
        _ demand: Demand, conditions: HeaderFields, limit: Int?, of resource: OpenResource? = nil,
        validating validated: Generation? = nil, _ call: OriginCall,
        deliver: @escaping (Result<Response, FillError>) -> Void
    ) {
        (self.demand, self.conditions, self.limit, self.call) = (demand, conditions, limit, call)
        (self.resource, self.validated, self.deliver) = (resource, validated, deliver)
        number = call.origins.numberOfNextFetch()
    }

    /// Sends the request, once its host may be contacted. `deliver` is called once, later, unless cancelled.
    func start() {
        let cookies = demand.cookies(in: call.origins.filler.cookies, or: resource?.key ?? demand.url.cacheKey)
        let parent = cookies?.isEmpty != false ? call.choose() : call.passParents(), loop = call.origins.loop
        var fields = demand.openingFields(to: demand.address)
        fields.lines += conditions.lines
        // RFC 9111 §4.4: what this proxy has passed to the origin, the parent has not seen.
        if parent != nil, conditions.lines.isEmpty, resource?.changes ?? 0 > 0 { fields.demandValidation() }
        var request = UpstreamRequest(
            url: demand.address, method: limit == nil ? .head : .get, fields: fields, confined: demand.confined)
        (request.parent, request.client) = (parent?.url, demand.client)
        if parent == nil { request.cookies = cookies }
        switch call.turn(before: request) {
        case .now: break
        case .later(let seconds): return after(seconds) { [unowned self] in start() }
        case .never(let error): return loop.afterCallback { self.end(.failure(error)) }
        }
        refusal = nil
        call.begin(request, for: limit != nil ? .feed : conditions.lines.isEmpty ? .head : .validation)
        after(Self.longest) { [unowned self] in
            end(.failure(.upstream(.broken(detail: "it did not arrive within \(Int64(Self.longest)) s"))))
        }
        transfer = call.origins.upstream.start(request, delegate: self)
    }

    /// Ends it without a result.
    package func cancel() {
        (deliver, timer) = (nil, nil)
        transfer?.cancel()
        transfer = nil
        onEnd(self)
    }

    private func end(_ result: Result<Response, FillError>) {
        let deliver = deliver
        cancel()
        deliver?(result)
    }

    private func after(_ seconds: Double, _ handler: @escaping () -> Void) {
        let timer = LoopTimer(on: call.origins.loop, handler: handler)
        self.timer = timer
        timer.schedule(afterSeconds: seconds)
    }

    package func transfer(_ transfer: any Transfer, isIn phase: UpstreamError.Phase) { self.phase = phase }

    package func transfer(_ transfer: any Transfer, followed redirect: ReceivedRedirect) {
        if call.stops(transfer, at: redirect) { start() }
    }

    package func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse) { report(interim) }

    package func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        refusal = call.answered(head) ?? (isOutdated(head) ? .changed : nil)
        // Otherwise somebody else is requested when this exchange has ended.
        guard refusal == nil else { return }
        self.head = head
        if let limit, let length = head.contentLength, length > Int64(limit) { endAsTooLong(transfer, limit) }
    }

    /// Whether a parent has something older than what is stored. The origin knows which holds.
    private func isOutdated(_ head: UpstreamHead) -> Bool {
        let filler = call.origins.filler
        guard call.parent != nil, let validated, !filler.confirms(head, validated) else { return false }
        return filler.isOlder(head, than: validated, requestedAt: call.time)
    }

    package func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        guard let limit, refusal == nil else { return true }
        // Memory grows with the received bytes, up to the limit, and not with the announced length.
        if body.count + bytes.count <= limit { body += bytes } else { endAsTooLong(transfer, limit) }
        return true
    }

    /// It ends once curl's callback has returned.
    private func endAsTooLong(_ transfer: any Transfer, _ limit: Int) {
        transfer.cancel()
        call.origins.loop.afterCallback {
            self.end(.failure(.unusable("it is longer than \(limit >> 20) MiB")))
        }
    }

    package func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        self.transfer = nil
        if let error { call.failed(error) }
        // What breaks off after a head is no matter where the head alone was requested.
        if let head, error == nil || limit == nil { return end(.success(Response(head: head, body: body))) }
        let failure = refusal ?? .upstream(error ?? .broken(detail: "no answer"))
        if call.leaveParent(after: failure) != nil { start() } else { end(.failure(failure)) }
    }
}

extension LoopFiller {
    /// Sends a HEAD to an origin.
    /// - Parameters:
    ///   - validated: the stored generation; the request is conditional on it.
    ///   - report: called with each response before the final one.
    ///   - deliver: called once, later, unless it is cancelled.
    package func head(
        _ demand: Demand, validating validated: Generation?, report: @escaping (InterimResponse) -> Void,
        deliver: @escaping (Result<ResponseFetch.Response, FillError>) -> Void
    ) -> ResponseFetch {
        let conditions = validated.flatMap { Freshening.conditions(for: $0.head.fields) }
        let key = filler.policy.value.resolve(demand.url).key
        let fetch = ResponseFetch(
            demand, conditions: conditions ?? HeaderFields(), limit: nil, of: filler.resource(key),
            validating: validated,
            OriginCall(
                once: origins, ParentTurns(demand.resolvedRule.parents, for: key),
                // A client that can be given a stored response is not kept waiting.
                patience: conditions == nil ? filler.settings.longestWait : 0), deliver: deliver)
        fetch.report = report
        fetch.start()
        return fetch
    }

    /// Fetches a document into memory.
    /// - Parameters:
    ///   - conditions: request fields such as `If-None-Match`.
    ///   - limit: the most bytes of its body; a longer one is an error.
    ///   - deliver: called once, later, unless it is cancelled or this loop ends.
    /// - Returns: nil after `shutdown`.
    package func document(
        _ demand: Demand, conditions: HeaderFields = HeaderFields(), limit: Int,
        deliver: @escaping (Result<ResponseFetch.Response, FillError>) -> Void
    ) -> ResponseFetch? {
        guard !isShutDown else { return nil }
        let fetch = ResponseFetch(
            demand, conditions: conditions, limit: limit, OriginCall(once: origins, patience: 0), deliver: deliver)
        documents[ObjectIdentifier(fetch)] = fetch
        fetch.onEnd = { [self] in documents[ObjectIdentifier($0)] = nil }
        fetch.start()
        return fetch
    }
}
