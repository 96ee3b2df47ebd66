import CachePolicy
import EventIO
import HTTPModel
import Upstream

/// Fetches a document into memory, past the cache: for a reader that keeps what the document means, not its bytes.
/// Loop-bound.
///
/// The rules' header fields, the address policy and the hosts' back-off apply as to any request.
package final class DocumentFetch: TransferDelegate {
    /// A response, whatever its status.
    package struct Document: Sendable {
        package let head: UpstreamHead
        /// The body as received, perhaps with a content coding; empty for a 304.
        package let body: [UInt8]
    }

    let demand: Demand
    private let conditions: HeaderFields
    private let limit: Int
    let origins: LoopOrigins
    /// Unique among the fetches of the loop.
    let number: UInt64
    /// When it began; monotonic, in nanoseconds.
    let began = MonotonicClock.nanoseconds()
    private(set) var phase: UpstreamError.Phase?
    /// Called when it is over.
    private let onEnd: (DocumentFetch) -> Void
    /// nil when it is over.
    private var deliver: ((Result<Document, FillError>) -> Void)?
    private var transfer: (any Transfer)?
    private(set) var head: UpstreamHead?
    private(set) var body: [UInt8] = []
    /// Ends a response that arrives too slowly.
    private var timer: LoopTimer?

    /// In seconds, for the whole response.
    private static let longest = 600.0

    init(
        _ demand: Demand, conditions: HeaderFields, limit: Int, _ origins: LoopOrigins,
        onEnd: @escaping (DocumentFetch) -> Void, deliver: @escaping (Result<Document, FillError>) -> Void
    ) {
        (self.demand, self.conditions, self.limit, self.origins) = (demand, conditions, limit, origins)
        (self.onEnd, self.deliver) = (onEnd, deliver)
        number = origins.numberOfNextFetch()
    }

    /// Sends the request. `deliver` is called once, later, unless cancelled.
    func start() {
        let wait = origins.filler.backoff.wait(before: demand.address)
        guard wait == 0 else {
            return origins.loop.afterCallback { self.end(.failure(.busy(retryAfter: Int64(wait.rounded(.up))))) }
        }
        origins.filler.metrics.upstreamReasons[.feed].add()
        var fields = demand.openingFields(to: demand.address)
        fields.lines += conditions.lines
        let timer = LoopTimer(on: origins.loop) { [unowned self] in
            end(.failure(.upstream(.broken(detail: "it did not arrive within \(Int64(Self.longest)) s"))))
        }
        timer.schedule(afterSeconds: Self.longest)
        self.timer = timer
        transfer = origins.upstream.start(
            UpstreamRequest(url: demand.address, fields: fields, confined: demand.confined), delegate: self)
    }

    /// Ends it without a result.
    package func cancel() {
        deliver = nil
        timer?.cancel()
        timer = nil
        transfer?.cancel()
        transfer = nil
        onEnd(self)
    }

    private func end(_ result: Result<Document, FillError>) {
        let deliver = deliver
        cancel()
        deliver?(result)
    }

    package func transfer(_ transfer: any Transfer, isIn phase: UpstreamError.Phase) { self.phase = phase }

    package func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        self.head = head
        origins.filler.backoff.note(head, requesting: demand.address)
        if let length = head.contentLength, length > Int64(limit) { endAsTooLong(transfer) }
    }

    package func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        // Memory grows with the received bytes, up to the limit, and not with the announced length.
        guard body.count + bytes.count <= limit else {
            endAsTooLong(transfer)
            return true
        }
        body += bytes
        return true
    }

    /// It ends once curl's callback has returned.
    private func endAsTooLong(_ transfer: any Transfer) {
        transfer.cancel()
        let reason = "it is longer than \(limit >> 20) MiB"
        origins.loop.afterCallback { self.end(.failure(.unusable(reason))) }
    }

    package func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        self.transfer = nil
        if let error {
            origins.filler.backoff.note(error, requesting: demand.address)
            return end(.failure(.upstream(error)))
        }
        guard let head else { return end(.failure(.upstream(.broken(detail: "no answer")))) }
        end(.success(Document(head: head, body: body)))
    }
}

extension LoopFiller {
    /// Fetches a document into memory.
    /// - Parameters:
    ///   - conditions: request fields such as `If-None-Match`.
    ///   - limit: the most bytes of its body; a longer one is an error.
    ///   - deliver: called once, later, unless it is cancelled or this loop ends.
    /// - Returns: nil while the proxy is offline, and after `shutdown`.
    package func document(
        _ demand: Demand, conditions: HeaderFields = HeaderFields(), limit: Int,
        deliver: @escaping (Result<DocumentFetch.Document, FillError>) -> Void
    ) -> DocumentFetch? {
        guard !origins.isOffline, !isShutDown else { return nil }
        let fetch = DocumentFetch(
            demand, conditions: conditions, limit: limit, origins,
            onEnd: { [self] in documents[ObjectIdentifier($0)] = nil }, deliver: deliver)
        documents[ObjectIdentifier(fetch)] = fetch
        fetch.start()
        return fetch
    }
}
