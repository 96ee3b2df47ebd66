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
    package let origins: LoopOrigins
    let pieces = PieceBuffers()
    private(set) var isShutDown = false
    private var fetches: [ObjectIdentifier: Fetch] = [:]
    private var work: [ObjectIdentifier: any Work] = [:]
    var documents: [ObjectIdentifier: ResponseFetch] = [:]

    /// What runs on this loop without anybody else to hold it.
    protocol Work: AnyObject {
        func stop()
    }

    package init(_ filler: CacheFiller, upstream: UpstreamClient, loop: EventLoop) {
        (self.filler, self.loop, origins) = (filler, loop, LoopOrigins(filler, upstream, loop))
        let bound = LoopBound(self, on: loop)
        filler.balance.register(loop.index) { order in bound.post { $0.run(order) } }
    }

    /// Opens a resource: finds out what it is by fetching the wanted part. Requests that arrive meanwhile join.
    /// - Parameters:
    ///   - validated: the stored generation; the same request revalidates it, once for all who wait.
    ///   - alone: do not join and do not store, because what a joined request found cannot be shared, or because the
    ///     stored generation cannot be read.
    /// - Returns: nil if another generation has become known meanwhile.
    func open(
        _ resource: OpenResource, _ demand: Demand, validating validated: Generation? = nil, follower: FollowerID,
        alone: Bool
    ) -> (SharedFetch, isCollapsed: Bool)? {
        let span = openingSpan(demand.span, of: validated)
        let (range, reach) = (
            Self.expectedRange(span), ResourceState.Reach(window: filler.window(of: demand), furthest: filler.readAhead)
        )
        let requester = Requester(follower: follower, url: demand.address, isAuthorized: demand.isAuthorized)
        let opened =
            alone
            ? (resource.openAlone(follower, at: range.lowerBound, range, reach, requester), isNew: true)
            : resource.open(follower, validating: validated, range, reach, requester)
        guard let (status, isNew) = opened else { return nil }
        if isNew {
            start(
                FetchOrder(
                    status: status,
                    purpose: .opening(span, owner: follower, isShared: !alone, validating: validated), demand: demand,
                    range: range, reason: validated != nil ? .validation : alone ? .bypass : .uriMiss,
                    isForDownload: follower.kind == .download, home: loop.index)
            )
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
            self.start(
                FetchOrder(
                    status: SharedFetch(resource: resource, id: id), purpose: .gap(generation), demand: demand,
                    range: gap, reason: .gap, isMidway: isMidway, isForDownload: follower.kind == .download,
                    home: loop.index))
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
        start(
            FetchOrder(
                status: fetch, purpose: .bypass(generation, owner: follower), demand: demand, range: range,
                reason: .bypass, isMidway: isMidway, isForDownload: follower.kind == .download, home: loop.index))
        return fetch
    }

    private func start(_ order: FetchOrder) {
        if let elsewhere = filler.balance.place(order) { elsewhere(order) } else { run(order) }
    }

    private func run(_ order: FetchOrder) {
        let fetch = Fetch(order, origins) { [self] in ended($0) }
        fetches[ObjectIdentifier(fetch)] = fetch
        filler.metrics.openFetches.add(1)
        let bound = LoopBound(fetch, on: loop)
        let standing = fetch.status.begin { notice in bound.post { $0.hear(notice) } }
        fetch.start(order.reason, standing)
        // All followers may have left before the fetch got to this loop.
        if standing.isAbandoned { fetch.considerStopping() }
        if isShutDown { fetch.abort() }
    }

    private func ended(_ fetch: Fetch) {
        guard fetches.removeValue(forKey: ObjectIdentifier(fetch)) != nil else { return }
        filler.metrics.openFetches.add(-1)
        filler.balance.ended(on: loop.index, from: fetch.order.home)
    }

    /// Ends all transfers; their followers get an error.
    package func shutdown() {
        isShutDown = true
        for document in Array(documents.values) { document.cancel() }
        for work in Array(work.values) { work.stop() }
        for fetch in Array(fetches.values) { fetch.abort() }
        origins.upstream.shutdown()
    }

    /// Adds the running fetches at this moment; if there are very many, those that began first. Of feeds,
    /// few are checked at once.
    package func addSamples(to samples: inout ActivitySamples) {
        let most = ActivitySamples.mostOfALoop
        let shown =
            fetches.count > most
            ? Array(fetches.values.sorted { $0.began < $1.began }.prefix(most)) : Array(fetches.values)
        samples.fetches += shown.compactMap { FetchSample($0) }
        samples.hiddenFetches +|= fetches.count - shown.count
        samples.fetches += documents.values.prefix(most).map(\.sample)
    }

    /// Holds what runs in the background, until `letGo`.
    func keep(_ work: any Work) { self.work[ObjectIdentifier(work)] = work }

    func letGo(_ work: any Work) { self.work[ObjectIdentifier(work)] = nil }

    // MARK: The first request

    /// Rounds out to chunks, so that everything that comes can be stored. Of a stored generation that ends before what
    /// is wanted, its beginning is requested: a 416 to a range beyond its end would say nothing about it.
    private func openingSpan(_ span: ByteRangeSpec?, of validated: Generation?) -> UpstreamRequest.Span? {
        let geometry = filler.store.configuration.geometry
        switch span {
        case .bounded(let first, _), .from(let first):
            guard let length = validated?.length, first >= length else { break }
            return length > 0 ? .bounded(0..<geometry.chunkSize) : nil
        case nil, .suffix: break
        }
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
