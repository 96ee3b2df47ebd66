import Activity
import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import HTTPTransport
import Upstream

/// A request that bypasses the cache: its body is sent to the origin as it arrives, and the origin's answer to the
/// client. Loop-bound.
///
/// Each direction waits for its receiver. The two are independent: an origin may answer while the body is still
/// being sent, and the client gets the answer at once.
final class PassThrough: TransferDelegate, BodySink, BodySource {
    private let exchange: Exchange
    private let route: Route
    private let proxy: ProxyLoop
    private var call: OriginCall
    private var transfer: (any Transfer)?
    private var head: UpstreamHead?

    // To the origin
    private var upload: Relay
    private var isReading = false
    private var isUploadComplete = false

    // To the client
    private var download: Relay
    private var end: End?
    private var isAnswered = false
    private var isWakeDue = false

    private lazy var origin = proxy.filler.origins.counters(of: route.url.host)

    private enum End { case complete, broken }

    init(_ exchange: Exchange, _ route: Route, _ proxy: ProxyLoop) {
        self.exchange = exchange
        self.route = route
        self.proxy = proxy
        call = OriginCall(once: proxy.filler.origins)
        upload = Relay(in: proxy.metrics.transit, for: exchange.countedClient)
        download = Relay(in: proxy.metrics.transit, for: exchange.countedClient)
    }

    func start() {
        var request = UpstreamRequest(
            url: route.text, method: .other(exchange.request.method.name), fields: fields)
        request.content = content
        request.client = exchange.countedClient
        if case .never(let error) = call.turn(before: request) { return refuse(after: error) }
        exchange.onAbort { [self] in cancel() }
        let limit = proxy.policy.largestMountBody
        if let limit, let length = exchange.bodyLength, length > limit {
            // Refuse it before the origin is contacted.
            return exchange.readBody(limit: limit, into: self)
        }
        call.begin(request, for: .method)
        transfer = call.origins.upstream.start(request, delegate: self)
    }

    private func refuse(after error: FillError) {
        proxy.metrics.errors.add(error.kind.rawValue)
        exchange.respond(504, text: "the proxy is offline and contacts no origin", closes: true) {
            $0.cacheStatus(CacheStatus(detail: error.kind.rawValue))
        }
    }

    // MARK: The request

    private var fields: HeaderFields {
        var fields = exchange.request.fields
        fields.removeHopByHop()
        if !exchange.isForwarded { fields.removeForwarding() }
        if !route.passesCookies { fields.remove("Cookie") }
        proxy.referrer(of: exchange, route).replace(in: &fields)
        // RFC 9110 §7.6.2: one fewer server may forward it.
        if let hops = fields["Max-Forwards"].flatMap({ ASCII.decimal($0.utf8) }) {
            fields.replace("Max-Forwards", "\(max(0, hops -| 1))")
        }
        for line in route.resolvedRule.headers.lines { fields.replace(line.name, line.value) }
        return fields
    }

    private var content: UpstreamRequest.Content {
        switch exchange.bodyLength {
        case nil: return .unknownLength
        case 0?:
            // RFC 9110 §8.6: with these methods, a length of 0 is stated as well; with others, only if the client
            // states it.
            let isExpected =
                ["POST", "PUT", "PATCH"].contains(exchange.request.method.name)
                || exchange.request.value(of: "Content-Length") != nil
            return isExpected ? .length(0) : .none
        case let length?: return .length(length)
        }
    }

    /// Gives curl bytes to send. Its first call comes when the origin is reached: until then, a client that waits
    /// for `100 Continue` sends nothing.
    func transfer(_ transfer: any Transfer, fillUpload buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
        let bytes = upload.next(limit: buffer.count)
        readOn()
        guard bytes.isEmpty else {
            buffer.copyMemory(from: bytes)
            return .bytes(bytes.count)
        }
        return isUploadComplete ? .end : .wait
    }

    /// Reads more of the body from the client, once curl's callback has returned.
    private func readOn() {
        guard !isUploadComplete, !isReading || upload.isHeld && !upload.isFull else { return }
        let isFirst = !isReading
        isReading = true
        upload.isHeld = false
        exchange.loop.afterCallback { [self] in
            guard exchange.isOpen else { return }
            if !isFirst { return exchange.resumeReading() }
            // An origin that rejects the body may have answered already.
            if exchange.bodyLength == 0 || isAnswered {
                isUploadComplete = true
            } else {
                exchange.readBody(limit: proxy.policy.largestMountBody, into: self)
            }
            transfer?.resumeUpload()
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand {
        upload.append(bytes)
        transfer?.resumeUpload()
        upload.isHeld = upload.isFull
        return upload.isHeld ? .pause : .more
    }

    func ended() {
        isUploadComplete = true
        transfer?.resumeUpload()
    }

    /// The origin must not take the received part for the whole.
    func failed(_ fault: BodyFault) {
        cancel()
        end = .broken
        wake()
        // If there was no answer yet, the connection sends one now.
        isAnswered = true
    }

    // MARK: The response

    func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse) {
        guard route.passesCookies, let fields = interim.fields(from: route.url) else { return }
        exchange.sendInterim(interim.status, fields)
    }

    func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        self.head = head
        let stale = Invalidation.targets(
            method: exchange.request.method, status: head.status, url: route.url, fields: head.fields)
        let policy = proxy.policy
        let bound = LoopBound(self, on: exchange.loop)
        // A client that has the answer must no longer get the old response.
        proxy.filler.filler.invalidate(stale.map { policy.resolve($0).key }) { bound.post { $0.answer(head) } }
    }

    private func answer(_ head: UpstreamHead) {
        guard exchange.isOpen, !isAnswered else { return }
        isAnswered = true
        var fields = head.fields
        fields.removeHopByHop()
        fields.removeMalformed()
        fields.remove("Content-Length")
        fields.remove("\(SourceField.name)")
        fields.boundCacheStatus()
        if !route.passesCookies { for name in ["Set-Cookie", "Set-Cookie2"] { fields.remove(name) } }
        var response = Response(head.status, length: head.contentLength)
        response.fields(fields)
        response.hasDate = fields["Date"] != nil
        if route.form == .absolute { response.field("Via", proxy.via.element) }
        if route.form == .mount, !route.isOneSite, !ContentSafety(fields).isInert {
            response.field("Content-Security-Policy", SiteFields.belowMount)
        }
        response.cacheStatus(.forwarded(.method, status: head.status))
        exchange.respond(response, body: self, keepsReading: true)
    }

    func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        guard !download.isFull else {
            download.isHeld = true
            return false
        }
        download.append(bytes)
        proxy.metrics.upstreamBytes.add(Int64(bytes.count))
        origin.received.add(Int64(bytes.count))
        wake()
        return true
    }

    func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        self.transfer = nil
        end = error == nil ? .complete : .broken
        guard head == nil else { return wake() }
        isAnswered = true
        let failure = FillError.upstream(error ?? .broken(detail: "no answer"))
        proxy.metrics.errors.add(failure.kind.rawValue)
        exchange.respond(failure, proxy.policy.adviceWords) {
            $0.cacheStatus(.forwarded(.method, detail: failure.kind.rawValue))
        }
    }

    /// Curl delivers its pieces one by one: they are sent together.
    private func wake() {
        guard !isWakeDue else { return }
        isWakeDue = true
        exchange.loop.afterCallback { [self] in
            isWakeDue = false
            if isAnswered { exchange.resume() }
        }
    }

    func next(limit: Int) -> BodyStep {
        let bytes = download.next(limit: limit)
        if download.isHeld, !download.isFull {
            download.isHeld = false
            transfer?.resume()
        }
        guard bytes.isEmpty else {
            proxy.metrics.bytesFromUpstream.add(Int64(bytes.count))
            origin.sentFromOrigin.add(Int64(bytes.count))
            exchange.count(fromOrigin: Int64(bytes.count))
            return .span(BodySpan(bytes: bytes))
        }
        switch end {
        case .complete: return .end
        case .broken: return .cut
        case nil: return .wait
        }
    }

    func finish() { cancel() }

    private func cancel() {
        transfer?.cancel()
        transfer = nil
    }
}
