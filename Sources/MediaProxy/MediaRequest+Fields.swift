import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Upstream

/// The field lines of its answers.
extension MediaRequest {
    /// - Parameters:
    ///   - isOld: whether it was stored before, although its origin was contacted.
    ///   - excluded: fields that do not describe what is sent.
    func addFields(
        of generation: Generation, _ view: Generation.Snapshot, isOld: Bool, without excluded: FieldNames = [],
        to response: inout Response
    ) {
        let acceptsRanges = view.head.status == 200 && view.length != nil && !excluded.contains("accept-ranges")
        addFields(
            of: view.head, key: generation.key, acceptsRanges: acceptsRanges, isOld: isOld, without: excluded,
            to: &response)
    }

    /// - Parameters:
    ///   - key: the cache key.
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
        if !cookies.isEmpty { addCookies(to: &response) }
        response.hasDate = head.hasDate
        proxy.addFormFields(head.siteBytes, head.safety, isPublic: head.isPublic, for: self, to: &response)
        let age = head.age(at: filler.filler.now())
        if route.hasOwnKey { outcome.key = key.text }
        // Most have no texts, and nobody else needs it.
        let outcome = outcome, isPlain = outcome.isShort && !exchange.isRecorded && !isExplained
        response.lines(upTo: 96 + CacheStatus.mostOfBeginning) { line in
            if acceptsRanges { line.append("Accept-Ranges: bytes\r\n") }
            // RFC 9111 §5.1: no Age on a response that was just fetched, unless it came from another cache.
            if age > 0 || outcome.isHit || isOld || outcome.forward == .partial {
                line.append("Age: ")
                line.append(decimal: age)
                line.append("\r\n")
            }
            guard isPlain else { return }
            line.append("Cache-Status: ")
            outcome.writeBeginning(to: &line)
            line.append("\r\n")
        }
        if !isPlain { response.cacheStatus(outcome) }
    }

    /// RFC 9110 §15.4.5
    private static let notModifiedFields: FieldNames = [
        "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary",
    ]

    func addCookies(to response: inout Response) {
        for cookie in cookies { response.field("Set-Cookie", cookie) }
    }

    // MARK: What the origin sends to this client alone

    /// Passes on what has come so far.
    /// - Parameter sent: how many interim responses were passed on; counted further.
    func passOwn(_ status: SharedFetch, after sent: inout Int) {
        guard route.passesCookies else { return }
        let share = status.share(of: follower)
        for interim in share.interims.dropFirst(sent) {
            exchange.sendInterim(interim.status, interim.fields)
            sent += 1
        }
        if !share.cookies.isEmpty { cookies = share.cookies }
    }

    /// Passes on an interim response to a HEAD.
    func passOn(_ interim: InterimResponse) {
        guard route.passesCookies, let fields = interim.fields(from: route.url) else { return }
        exchange.sendInterim(interim.status, fields)
    }

    // MARK: Short responses and refusals

    /// Answers with a short response from memory (RFC 9111 §4).
    func respond(with short: ShortResponse, key: CacheKey) {
        count(as: \.hits)
        let status = status(of: short), hasBody = status == short.head.status
        var response = Response(status, length: hasBody ? Int64(short.body.count) : status == 304 ? nil : 0)
        addFields(of: short.head, key: key, acceptsRanges: false, isOld: true, to: &response)
        let isSent = hasBody && head.method == .get && !short.body.isEmpty
        let count = isSent ? Int64(short.body.count) : 0
        countSent(count, isFetched: false)
        noteFirstByte()
        exchange.respond(response, body: isSent ? BytesSource(short.body) : nil)
    }

    /// - Parameter isFetched: whether its origin has sent them for this request.
    func countSent(_ count: Int64, isFetched: Bool) {
        let origin = filler.origins.counters(of: route.url.host)
        exchange.count(fromCache: isFetched ? 0 : count, fromOrigin: isFetched ? count : 0)
        (isFetched ? proxy.metrics.bytesFromUpstream : proxy.metrics.bytesFromCache).add(count)
        (isFetched ? origin.sentFromOrigin : origin.sentFromCache).add(count)
    }

    /// RFC 9110 §13.2.1: conditions are for successful responses alone.
    private func status(of short: ShortResponse) -> Int {
        guard (200..<300).contains(short.head.status) else { return short.head.status }
        return switch Conditional.evaluate(head, against: short.head.validators) {
        case .notModified: 304
        case .failed: 412
        case .proceed: short.head.status
        }
    }

    func refuseRange(_ length: Int64) {
        exchange.respond(416, text: "the range lies outside the \(length) bytes") { [outcome] response in
            // RFC 9110 §15.5.17
            response.field("Content-Range", ContentRange(range: nil, total: length).fieldValue)
            response.field("Accept-Ranges", "bytes")
            response.cacheStatus(outcome)
        }
    }

    /// RFC 9111 §5.2.1.7
    func refuse() {
        outcome = CacheStatus(detail: "only-if-cached")
        exchange.respond(
            504, text: "not cached, and the request allows only cached responses (Cache-Control: only-if-cached)"
        ) { [outcome] response in
            response.cacheStatus(outcome)
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

    /// What a program wrote may repeat addresses with secrets that the client has not seen.
    private func clientText(of error: FillError) -> String {
        let text = error.clientText(proxy.policy.adviceWords)
        return error.isResolvers ? proxy.policy.mask.masked(text) : text
    }
}
