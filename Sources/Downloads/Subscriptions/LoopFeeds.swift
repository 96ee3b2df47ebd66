import CacheFill
import CachePolicy
@preconcurrency import Dispatch
import EventIO
import HTTPModel
import Playlists
import Presentations
import Synchronization
import Upstream

/// Fetches feeds on the loops of a cache, in turn. Not to be called on a loop.
///
/// Their texts are decoded and read on a queue of its own, one after the other: a long one delays no player, nor those
/// who wait for the manager.
package final class LoopFeeds: FeedSource {
    private let loops: [LoopBound<LoopFiller>]
    private let filler: CacheFiller
    private let turn = Atomic<Int>(0)
    private let readingQueue = DispatchQueue(label: "reelcache.feed-texts", qos: .utility)

    package init(_ loops: [LoopBound<LoopFiller>], of filler: CacheFiller) {
        (self.loops, self.filler) = (loops, filler)
    }

    package var isOffline: Bool { filler.policy.value.isOffline }

    package func fetch(_ request: FeedRequest, onEnd end: @escaping @Sendable (FeedAnswer) -> Void)
        -> @Sendable () -> Void
    {
        let loop = loops[turn.wrappingAdd(1, ordering: .relaxed).oldValue % loops.count]
        let policy = filler.policy.value
        let demand = Demand(url: request.url, span: nil, resolvedRule: policy.resolve(request.url).resolvedRule)
        let (now, queue) = (filler.now, readingQueue)
        let fetch = loop.loop.sync {
            let fetch = loop.value.document(demand, conditions: request.validators.conditions, limit: FeedLimits.bytes)
            { result in
                queue.async { end(FeedAnswer(result, to: request, policy, now: now())) }
            }
            return fetch.map { LoopBound($0, on: loop.loop) }
        }
        guard let fetch else {
            end(.failed(FeedReadings.offline))
            return {}
        }
        return { fetch.post { $0.cancel() } }
    }
}

extension FeedValidators {
    /// The request fields of a conditional request.
    fileprivate var conditions: HeaderFields {
        var fields = HeaderFields()
        if let etag { fields.append("If-None-Match", etag) }
        if let lastModified { fields.append("If-Modified-Since", lastModified) }
        return fields
    }
}

extension FeedAnswer {
    /// - Parameter now: seconds since 1970.
    fileprivate init(
        _ result: Result<ResponseFetch.Response, FillError>, to request: FeedRequest, _ policy: ProxyPolicy, now: Int64
    ) {
        switch result {
        case .failure(.offline): self = .failed(FeedReadings.offline)
        case .failure(let error): self = .failed(FeedFailure(error, adviceWords: policy.adviceWords))
        case .success(let document) where document.head.status == 304:
            let head = document.head
            self = .notModified(movedTo: head.hasMoved ? try? OriginURL(url: head.finalURL) : nil)
        case .success(let document) where document.head.status == 200: self.init(document, to: request, policy)
        case .success(let document):
            let (status, fields) = (document.head.status, document.head.fields)
            let seconds = [429, 503].contains(status) ? RetryAfter.seconds(fields["Retry-After"], now: now) : nil
            let meaning = Self.meaning[status].map { ": \($0)" } ?? ""
            self = .failed(FeedFailure("the origin answered \(status)\(meaning)", retryAfter: seconds.map(Double.init)))
        }
    }

    private static let meaning = [
        401: "it requires credentials, which a rule can send", 403: "it forbids this",
        404: "there is nothing at this URL", 410: "the feed is gone", 429: "too many requests", 503: "it is busy",
    ]

    private init(_ document: ResponseFetch.Response, to request: FeedRequest, _ policy: ProxyPolicy) {
        let head = document.head
        do {
            // Some origins encode without being asked to.
            let text = try ContentCoding.decoded(document.body, head.fields, limit: FeedLimits.bytes)
            var read = FeedDocument(
                bytes: text, type: head.fields["Content-Type"],
                url: (try? OriginURL(url: head.finalURL)) ?? request.url,
                isPage: { policy.resolve($0).resolvedRule.resolver != nil })
            read.hasMoved = head.hasMoved
            read.validators = FeedValidators(etag: head.fields["ETag"], lastModified: head.fields["Last-Modified"])
            self = .document(read)
        } catch {
            let reason =
                switch error {
                case .unknown(let coding): "its content coding \(String(coding.prefix(20)).printable) is unknown"
                case .broken: "its content coding is broken"
                case .tooLong: "it is longer than \(FeedLimits.bytes >> 20) MiB"
                }
            self = .failed(FeedFailure("the feed cannot be read: \(reason)"))
        }
    }
}

extension FeedFailure {
    fileprivate init(_ error: FillError, adviceWords words: Advice.Words) {
        switch error {
        case .upstream(.addressRefused(let host, let address)):
            let advice = Advice.allow(host: host).text(in: words)
            self.init("\(UpstreamError.addressRefused(host: host, address: address)); to fetch from it, \(advice)")
        case .busy(let seconds): self.init("\(error)", retryAfter: Double(seconds))
        case .unusable(let reason): self.init("the feed cannot be read: \(reason)")
        default: self.init("\(error)")
        }
    }
}
