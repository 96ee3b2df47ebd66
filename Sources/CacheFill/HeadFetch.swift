import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// A client's HEAD for what is not cached, passed on. Loop-bound.
package final class HeadFetch: TransferDelegate {
    private var transfer: Transfer?
    private let deliver: (Result<UpstreamHead, FillError>) -> Void
    private var head: UpstreamHead?

    init(_ demand: Demand, conditions: FieldLines?, _ upstream: UpstreamClient, deliver: @escaping (Result<UpstreamHead, FillError>) -> Void) {
        self.deliver = deliver
        var fields = demand.openingFields
        fields.lines += conditions?.lines ?? []
        transfer = upstream.start(
            UpstreamRequest(url: demand.url.absolute, method: .head, fields: fields, confined: demand.confined), delegate: self)
    }

    package func cancel() {
        transfer?.cancel()
        transfer = nil
    }

    package func transfer(_ transfer: Transfer, receivedHead head: UpstreamHead) {
        self.head = head
    }

    package func transfer(_ transfer: Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool { true }

    package func transfer(_ transfer: Transfer, finishedWith error: UpstreamError?) {
        self.transfer = nil
        if let head { return deliver(.success(head)) }
        deliver(.failure(.upstream(error ?? .broken(detail: "no answer"))))
    }
}

extension LoopFiller {
    /// Asks an origin for a head. Delivers once, unless cancelled.
    /// - Parameter validated: the generation that is there: the origin is asked for its head only if that is another one.
    /// - Returns: nil where no origin is to be asked.
    package func head(_ demand: Demand, validating validated: Generation? = nil, deliver: @escaping (Result<UpstreamHead, FillError>) -> Void) -> HeadFetch? {
        guard !isOffline else { return nil }
        filler.metrics.upstreamReasons[.head].add()
        return HeadFetch(demand, conditions: validated.flatMap { Freshening.conditions(for: $0.head.fields) }, upstream, deliver: deliver)
    }
}
