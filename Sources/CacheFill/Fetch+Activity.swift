import Activity
import Upstream

/// What is shown of a fetch while it runs.
extension Fetch {
    /// nil once it has ended.
    var sample: FetchSample? {
        guard let shown = shownPhase, let (range, arrived, followers) = status.progress else { return nil }
        return FetchSample(
            id: "\(origins.loop.index)-\(number)", key: resource.key, whole: demand.whole, url: demand.address,
            requestedURL: request.url.isEmpty ? demand.address : request.url,
            // Before its first request, what it is for tells.
            reason: reason ?? (output.writer?.generation == nil ? .uriMiss : .gap), phase: shown,
            purposes: FetchSample.Purpose.allCases.filter { purpose in followers.contains { $0.purpose == purpose } },
            from: range.lowerBound, to: range.upperBound == .max ? nil : range.upperBound, arrived: arrived,
            began: began)
    }

    private var shownPhase: FetchSample.Phase? {
        switch phase {
        case .waiting: .waiting
        case .heldBack: .held
        case .received: .finishing
        case .ended: nil
        case .receiving(let transfer) where transfer.isPaused: .held
        case .receiving(let transfer) where transfer.isReceiving: .receiving
        case .receiving: FetchSample.Phase(status.phase)
        }
    }
}

extension DocumentFetch {
    /// A check of a feed, whose document goes to no player.
    var sample: FetchSample {
        FetchSample(
            id: "\(origins.loop.index)-\(number)", key: demand.url.cacheKey, whole: demand.whole,
            url: demand.address,
            requestedURL: head?.finalURL ?? demand.address, reason: .feed, phase: FetchSample.Phase(phase),
            purposes: [.subscription], from: 0, to: head?.contentLength, arrived: Int64(body.count), began: began)
    }
}

extension FetchSample.Phase {
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
