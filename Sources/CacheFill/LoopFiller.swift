import Activity
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Upstream

/// The fetches, fills and prefetches of one loop. Loop-bound.
///
/// A request that meets a gap joins a running fetch that will deliver its bytes soon; otherwise it starts a new one,
/// which is held here while it runs. The fetch runs on this loop, unless another has much less to do (`FetchBalance`).
package final class LoopFiller {
    package let filler: CacheFiller
    package let loop: EventLoop
    package let upstream: UpstreamClient
    let pieces = PieceBuffers()
    private(set) var isShutDown = false
    /// The offline setting, and the version of the policy that it was read from.
    private var knownOffline = (version: -1, isOffline: false)
    /// The counters of the hosts that this loop has met, so that looking them up takes no lock.
    private var origins: [String: OriginCounters.Origin] = [:]
    /// The one of the last request: the next one is often of the same.
    private var lastOrigin: (host: String, origin: OriginCounters.Origin)?
    private var fetches: [ObjectIdentifier: Fetch] = [:]
    private var fetchCount: UInt64 = 0
    private var fills: [ObjectIdentifier: ResourceFill] = [:]
    private var prefetches: [ObjectIdentifier: Prefetch] = [:]
    var documents: [ObjectIdentifier: DocumentFetch] = [:]

    package init(_ filler: CacheFiller, upstream: UpstreamClient, loop: EventLoop) {
        self.filler = filler
        self.upstream = upstream
        self.loop = loop
        filler.balance.register(self)
    }

    /// Opens a resource: finds out what it is by fetching the wanted part. Requests that arrive meanwhile join.
    /// - Parameters:
    ///   - validated: the stored generation; the same request revalidates it, once for all who wait.
    ///   - alone: do not join and do not store, because what a joined request found cannot be shared, or because the
    ///     stored generation cannot be read.
    /// - Returns: nil if another generation has become known meanwhile.
    package func open(
        _ resource: OpenResource, _ demand: Demand, validating validated: Generation? = nil, follower: FollowerID,
        alone: Bool
    ) -> (SharedFetch, isCollapsed: Bool)? {
        let span = openingSpan(demand.span)
        let (range, reach) = (
            Self.expectedRange(span), ResourceState.Reach(window: filler.window(of: demand), furthest: filler.readAhead)
        )
        let opened =
            alone
            ? (resource.openAlone(follower, at: range.lowerBound, range, reach), isNew: true)
            : resource.open(follower, validating: validated, range, reach)
        guard let (status, isNew) = opened else { return nil }
        if isNew {
            start(
                status, .opening(span, owner: follower, isShared: !alone, validating: validated), demand, range,
                validated != nil ? .validation : alone ? .bypass : .uriMiss)
        } else {
            filler.metrics.collapsed.add()
            if demand.isOfProxy { status.note { $0.isJoinedByProxy = true } }
        }
        return (status, !isNew)
    }

    /// Locates the next byte that a follower needs, and starts a fetch if none delivers it.
    /// - Parameters:
    ///   - offset: the byte's offset.
    ///   - chunk: the chunk that contains it.
    ///   - end: the end of the wanted range; nil if no fetch may be started.
    ///   - start: where a reader began.
    ///   - followed: the fetch that the follower follows; it is left if it does not deliver the byte.
    ///   - isMidway: whether earlier bytes have been sent, or nobody waits: then a host in back-off is waited for
    ///     longer.
    ///   - isThere: whether the byte is present by now.
    func locate(
        _ offset: Int64, in chunk: Range<Int64>, upTo end: Int64?, of generation: Generation, _ resource: OpenResource,
        _ demand: Demand, _ follower: FollowerID,
        from start: Int64?, following followed: SharedFetch?, isMidway: Bool, isThere: () -> Bool,
        wake: @escaping @Sendable () -> Void
    ) -> ResourceState.Whereabouts {
        assert(followed.map { $0.resource === resource } ?? true, "a fetch of another resource")
        let request = ResourceState.Request(
            follower: follower, offset: offset, chunk: chunk, end: end ?? .max, start: start, followed: followed?.id)
        let reach = { [filler] () -> ResourceState.Reach? in
            guard end != nil, generation.isStored, generation.head.rangeCondition != nil else { return nil }
            return ResourceState.Reach(window: filler.window(of: demand), furthest: filler.readAhead)
        }
        let found = resource.locate(request, in: generation, isThere: isThere, reach: reach, wake: wake)
        switch found {
        case .coming(let id, let gap?):
            self.start(SharedFetch(resource: resource, id: id), .gap(generation), demand, gap, .gap, isMidway: isMidway)
        case .coming(let id, nil) where demand.isOfProxy:
            SharedFetch(resource: resource, id: id).note { $0.isJoinedByProxy = true }
        case .coming, .present, .passing, .failed, .lost, .unsettled: break
        }
        return found
    }

    /// Continues a response past the cache, through a buffer in memory.
    func bypass(
        _ wanted: Range<Int64>, of generation: Generation, _ resource: OpenResource, _ demand: Demand,
        follower: FollowerID, isMidway: Bool
    ) -> SharedFetch {
        // Request whole chunks: an incomplete chunk cannot be read.
        let range = ChunkGeometry.ofBuffers.roundedOut(wanted, length: generation.length)
        let fetch = resource.openAlone(
            follower, at: wanted.lowerBound, range,
            ResourceState.Reach(window: filler.window(of: demand), furthest: filler.settings.bufferReadAhead))
        start(fetch, .bypass(generation, owner: follower), demand, range, .bypass, isMidway: isMidway)
        return fetch
    }

    private func start(
        _ status: SharedFetch, _ purpose: Fetch.Purpose, _ demand: Demand, _ range: Range<Int64>, _ reason: FetchReason,
        isMidway: Bool = false
    ) {
        let home = loop.index
        let length = range.upperBound < .max ? range.upperBound -| range.lowerBound : nil
        let run: @Sendable (LoopFiller) -> Void = { filler in
            let fetch = Fetch(status, filler, home: home, purpose, demand, range, isMidway: isMidway)
            filler.run(fetch, reason)
        }
        guard let chosen = filler.balance.place(from: home, length: length, demand.url), chosen.loop !== loop else {
            return run(self)
        }
        chosen.post(run)
    }

    private func run(_ fetch: Fetch, _ reason: FetchReason) {
        fetches[ObjectIdentifier(fetch)] = fetch
        filler.began(fetch.status)
        filler.metrics.openFetches.add(1)
        fetch.start(reason)
        // All followers may have left before the fetch got to this loop.
        fetch.considerStopping()
        if isShutDown { fetch.abort() }
    }

    /// The counters of an origin host.
    package func origin(_ host: String) -> OriginCounters.Origin {
        if let lastOrigin, lastOrigin.host == host { return lastOrigin.origin }
        let origin = knownOrigin(host)
        lastOrigin = (host, origin)
        return origin
    }

    private func knownOrigin(_ host: String) -> OriginCounters.Origin {
        if let origin = origins[host] { return origin }
        let origin = filler.metrics.origins.origin(host)
        if origins.count < OriginCounters.capacity { origins[host] = origin }
        return origin
    }

    /// Whether the proxy is offline and must not contact origins.
    package var isOffline: Bool {
        let version = filler.policy.version
        if knownOffline.version != version { knownOffline = (version, filler.policy.value.isOffline) }
        return knownOffline.isOffline
    }

    func ended(_ fetch: Fetch) {
        guard fetches.removeValue(forKey: ObjectIdentifier(fetch)) != nil else { return }
        filler.ended(fetch.status)
        filler.metrics.openFetches.add(-1)
        filler.balance.ended(on: loop.index, from: fetch.home)
    }

    /// Ends all transfers; their followers get an error.
    package func shutdown() {
        isShutDown = true
        for document in Array(documents.values) { document.cancel() }
        for prefetch in Array(prefetches.values) { prefetch.stop() }
        for fill in Array(fills.values) { fill.stop() }
        for fetch in Array(fetches.values) { fetch.abort() }
        upstream.shutdown()
    }

    func numberOfNextFetch() -> UInt64 {
        fetchCount &+= 1
        return fetchCount
    }

    /// Adds the running fetches at this moment; if there are very many, those that began first. Of feeds,
    /// few are checked at once.
    package func addSamples(to samples: inout ActivitySamples) {
        let most = ActivitySamples.mostOfALoop
        let shown =
            fetches.count > most
            ? Array(fetches.values.sorted { $0.began < $1.began }.prefix(most)) : Array(fetches.values)
        samples.fetches += shown.compactMap(\.sample)
        samples.hiddenFetches +|= fetches.count - shown.count
        samples.fetches += documents.values.prefix(most).map(\.sample)
    }

    // MARK: In the background

    /// Holds a prefetch while it runs.
    func keep(_ prefetch: Prefetch) { prefetches[ObjectIdentifier(prefetch)] = prefetch }

    func letGo(_ prefetch: Prefetch) { prefetches[ObjectIdentifier(prefetch)] = nil }

    /// Fills a resource beyond what is read, as its rule says: from `offset` to its end, and then the part before, if
    /// all of it is wanted. One fill serves all readers, and continues when they have left.
    package func keepFilling(_ resource: OpenResource, _ generation: Generation, _ demand: Demand, from offset: Int64) {
        let start: Int64
        switch demand.resolvedRule.fill {
        case .read, .ahead: return
        case .end: start = offset
        case .whole: start = 0
        }
        guard !isShutDown, !isOffline, !demand.resolvedRule.isMetered, let length = generation.length,
            ResourceFill.isPossible(generation), length <= filler.largestFilled,
            generation.coverage(of: start..<length) != .whole, !filler.backoff.isDown(demand.address),
            resource.beginFilling(generation, from: start)
        else { return }
        let fill = ResourceFill(resource, generation, demand, self)
        fill.whereNext = { _, done in resource.filled(generation, from: done.lowerBound).map { $0..<done.lowerBound } }
        fill.onEnd = { [unowned self] fill, end in
            fills[ObjectIdentifier(fill)] = nil
            // A completed fill has ended with its last call of `whereNext`: another may run by now.
            if case .completed = end { return }
            resource.endFilling(generation)
            if case .failed(let error) = end {
                filler.logger.info(
                    "not filled further: \(error)",
                    metadata: ["resource": "\(resource.key.text)", "offset": "\(fill.position)"])
            }
        }
        fills[ObjectIdentifier(fill)] = fill
        fill.start(offset..<length)
    }

    // MARK: The first request

    /// Rounds out to chunks, so that everything that comes can be stored.
    private func openingSpan(_ span: ByteRangeSpec?) -> UpstreamRequest.Span? {
        let geometry = filler.store.configuration.geometry
        switch span {
        case nil: return nil
        case .bounded(let first, let last):
            // The greatest number as the last offset means no end.
            guard last < ByteNumber.greatest else { return .from(geometry.chunkStart(geometry.chunk(at: first))) }
            return .bounded(geometry.roundedOut(first..<last + 1, length: nil))
        case .from(let first): return .from(geometry.chunkStart(geometry.chunk(at: first)))
        case .suffix(let count):
            // Where the suffix's first chunk begins depends on the unknown length: this many more bytes are sure to
            // reach it.
            return .suffix(count + geometry.chunkSize - 1)
        }
    }

    private static func expectedRange(_ span: UpstreamRequest.Span?) -> Range<Int64> {
        switch span {
        case .bounded(let range): range
        case .from(let first): first..<Int64.max
        case .suffix, nil: 0..<Int64.max
        }
    }
}
