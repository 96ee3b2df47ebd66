import Activity
import Upstream

extension FetchSample {
    /// What is shown of a fetch while it runs; nil once it has ended.
    init?(_ fetch: Fetch) {
        guard let phase = Phase(of: fetch), let (range, arrived, followers) = fetch.status.progress else { return nil }
        let (demand, url) = (fetch.demand, fetch.request.call.url)
        self.init(
            id: "\(fetch.origins.loop.index)-\(fetch.number)", key: fetch.status.resource.key, whole: demand.whole,
            url: demand.address, requestedURL: url.isEmpty ? demand.address : url,
            // Before its first request, what it is for tells.
            reason: fetch.reason ?? (fetch.output.writer?.generation == nil ? .uriMiss : .gap), phase: phase,
            purposes: Purpose.allCases.filter { purpose in followers.contains { $0.purpose == purpose } },
            from: range.lowerBound, to: range.upperBound == .max ? nil : range.upperBound, arrived: arrived,
            began: fetch.began)
    }
}

extension ResponseFetch {
    /// A check of a feed, whose document goes to no player.
    var sample: FetchSample {
        FetchSample(
            id: "\(call.origins.loop.index)-\(number)", key: demand.url.cacheKey, whole: demand.whole,
            url: demand.address,
            requestedURL: head?.finalURL ?? demand.address, reason: .feed, phase: FetchSample.Phase(phase),
            purposes: [.subscription], from: 0, to: head?.contentLength, arrived: Int64(body.count), began: began)
    }
}

extension FetchSample.Phase {
    fileprivate init?(of fetch: Fetch) {
        switch fetch.phase {
        case .waiting: self = .waiting
        case .heldBack: self = .held
        case .received: self = .finishing
        case .ended: return nil
        case .receiving(let transfer) where transfer.isPaused: self = .held
        case .receiving(let transfer) where transfer.isReceiving: self = .receiving
        case .receiving: self.init(fetch.status.phase)
        }
    }

    /// - Parameter phase: of a transfer that is not held back; nil before it has begun.
    fileprivate init(_ phase: UpstreamError.Phase?) {
        switch phase {
        case .queue: self = .queued
        case nil, .names, .connect: self = .connecting
        case .response: self = .requested
        case .body: self = .receiving
        }
    }
}

extension FollowerID.Kind {
    /// Who needs the bytes that this follower waits for.
    fileprivate var purpose: FetchSample.Purpose {
        switch self {
        case .reader: .play
        case .ahead: .ahead
        case .fill: .fill
        case .download: .download
        }
    }
}
