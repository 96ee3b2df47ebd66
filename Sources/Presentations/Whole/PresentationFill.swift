import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Playlists

/// Downloads a resource and, if that turns out to be a playlist, everything chosen of its presentation.
/// Loop-bound.
///
///     first resource ── a file ───────────────────────────────────────────────────────────────────▶ completed
///        └── a playlist ── further playlists ── indexes ── items, several at once ── commit ───────────┤
///                                                            ▲────── items that were evicted ──────────┘
///
/// After a pause or a kill, items that arrived before are found in the cache and skipped.
package final class PresentationFill {
    package struct Order: Sendable {
        package let url: OriginURL
        /// How many bytes of its beginning; nil for all. Only for resources that are not playlists.
        package let first: Int64?
        /// What is fetched of it before the rest; nil for all in order. Only for resources that are not playlists, and
        /// without `first`.
        package let ends: HeadAndTail?
        /// The number of simultaneous transfers.
        package let connections: Int
        package let isPinned: Bool
        package let renditions: RenditionChoice
        /// The recording, for a live stream; nil for none.
        package let recording: RecordingOrder?

        package init(
            url: OriginURL, first: Int64? = nil, ends: HeadAndTail? = nil, connections: Int = 1, isPinned: Bool = true,
            renditions: RenditionChoice = RenditionChoice(), recording: RecordingOrder? = nil
        ) {
            self.ends = ends
            (self.url, self.first, self.connections, self.isPinned) = (url, first, connections, isPinned)
            (self.renditions, self.recording) = (renditions, recording)
        }
    }

    package enum End: Sendable {
        /// Everything ordered is in the cache and in the index.
        case completed
        case failed(PresentationFault)
    }

    /// The progress, for any thread.
    package let state = PresentationState()
    let order: Order
    private let key: CacheKey?
    let pace: FillPace
    let loop: LoopFiller
    private var onEnd: ((End) -> Void)?
    /// The running prefetch of the first resource, and the group of further ones.
    private var first: Prefetch?
    private var group: PrefetchGroup?
    private(set) var recording: LiveRecording?
    /// Cancelled when it is over.
    let budget = WorkBudget(bytes: 0)

    private var reading = Reading.notYet
    /// What the first resource is: it is read while the resource is still being saved.
    private enum Reading {
        case notYet, begun
        /// Everything else is there.
        case awaitsFirst
    }
    /// The first playlist, once it has been read.
    private var document: PlaylistDocument?
    private var plan: PresentationPlan?
    private var documents: [OriginURL: PlaylistDocument] = [:]
    private var items = PresentationItems([])
    /// Whether live playlists were requested again: the cached ones may be older than their stream's end.
    private var hasRefreshed = false
    /// How many times items turned out to be missing at the end.
    private var repairs = 0
    /// The segment that was refused when the playlists were requested again for that.
    private var refused: OriginURL?
    private static let mostRepairs = 2

    /// - Parameters:
    ///   - key: the cache key under which its first resource is to be; nil for the URL's own.
    ///   - end: called once, on the loop, unless `stop` was called before.
    package init(
        _ order: Order, key: CacheKey? = nil, pace: FillPace, on loop: LoopFiller, onEnd end: @escaping (End) -> Void
    ) {
        (self.order, self.key, self.pace, self.loop, onEnd) = (order, key, pace, loop, end)
    }

    package func start() {
        guard let recording = order.recording, loop.filler.now() >= recording.end else {
            return fetchFirst(isFresh: order.recording != nil)
        }
        LiveRecording.takeUp(recording, by: self)
    }

    /// Stops, and keeps the bytes that have arrived.
    package func stop() { finish() }

    // MARK: The first resource

    private func fetchFirst(isFresh: Bool) {
        first?.stop()
        documents = [:]
        var wanted = Prefetch.Order(
            // no trap: not below 0
            url: order.url, range: order.first.map { 0..<max(0, $0) }, ends: order.ends,
            connections: order.connections, isPinned: order.isPinned && order.recording == nil,
            keeps: order.recording == nil, isFresh: isFresh)
        wanted.key = key
        let prefetch = Prefetch(wanted, pace: pace, on: loop) { [self] result in
            let state = first?.state
            first = nil
            switch result {
            case .completed where reading == .notYet: state.flatMap(\.key).map(read) ?? complete()
            case .completed: if reading == .awaitsFirst { complete() }
            case .failed(let error): fail(.first(error))
            }
        }
        (first, reading) = (prefetch, .notYet)
        prefetch.onPresent = { [self] in if reading == .notYet { read($0.key) } }
        state.begin(prefetch.state)
        prefetch.start()
    }

    private func read(_ key: CacheKey) {
        reading = .begun
        let (url, renditions, isRecorded) = (order.url, renditions, order.recording != nil)
        typealias Found = (StoredPlaylists.Content, Result<Planned, PresentationFault>?)
        offLoop { stored throws(PresentationFault) -> Found in
            let content = try stored.content(of: key, url)
            guard case .playlist(let document) = content, !document.isLive, !isRecorded else { return (content, nil) }
            return (
                content,
                Result { () throws(PresentationFault) in
                    let plan = try PresentationPlan(document, renditions)
                    // What needs nothing else is not handed over once more.
                    let isAll = plan.playlists.isEmpty && plan.indexes.isEmpty
                    return (plan, isAll ? try plan.found() : nil)
                }
            )
        } then: { fill, found in
            switch found.0 {
            case .file: fill.order.recording == nil ? fill.complete() : fill.fail(.notRecordable(Self.noPlaylist))
            case .playlist(let document): fill.take(document, found.1)
            }
        }
    }

    private typealias Planned = (PresentationPlan, PresentationPlan.Found?)

    private static let noPlaylist = "it is not a playlist, so there is nothing to record: leave out --for"

    private func take(_ document: PlaylistDocument, _ plan: Result<Planned, PresentationFault>?) {
        guard order.first == nil, order.ends == nil else { return fail(.firstBytes) }
        self.document = document
        state.setTitle(document.title)
        if let recorded = order.recording { return record(document, recorded) }
        guard let plan else {
            guard !hasRefreshed else { return fail(.live) }
            hasRefreshed = true
            return fetchFirst(isFresh: true)
        }
        state.beginSegments()
        do throws(PresentationFault) {
            let (plan, items) = try plan.get()
            self.plan = plan
            items.map(fetchItems) ?? fetchPlaylists(plan.playlists, isFresh: false)
        } catch { fail(error) }
    }

    private func record(_ document: PlaylistDocument, _ recorded: RecordingOrder) {
        state.beginSegments()
        let recording = LiveRecording(document, recorded, self) { [self] end in
            self.recording = nil
            switch end {
            case .completed: complete()
            case .failed(let fault): fail(fault)
            }
        }
        self.recording = recording
        recording.start()
    }

    // MARK: Playlists and indexes

    /// The cache key of the presentation's first playlist.
    private var whole: CacheKey { loop.filler.policy.value.resolve(order.url).key }

    /// What is chosen of it, within the limit of a rule.
    var renditions: RenditionChoice {
        RenditionChoice {
            $0 = order.renditions
            $0.limit = loop.filler.policy.value.resolve(order.url).resolvedRule.limit
        }
    }

    private func fetchPlaylists(_ urls: [OriginURL], isFresh: Bool) {
        var keys: [OriginURL: CacheKey] = [:]
        let playlists = urls.map { PresentationItem(kind: .playlist, url: $0) }
        fetch(PresentationParts(playlists), isFresh: isFresh) { item, part in
            keys[item.url] = part.key
        } then: { [self] in
            readPlaylists(keys)
        }
    }

    private func readPlaylists(_ keys: [OriginURL: CacheKey]) {
        guard let (url, key) = keys.first else { return tookPlaylists() }
        let (variables, whole) = (document?.variables, whole)
        // One at a time, so that others of the host have their turn.
        offLoop { stored throws(PresentationFault) in
            // From now on it is kept: players that get another one do not replace it.
            do throws(StoreError) { try stored.store.commit([key], partsOf: whole) } catch { throw .cache("\(error)") }
            guard case .playlist(let document) = try stored.content(of: key, url, importing: variables) else {
                throw .unreadable(url, PlaylistError(.notAPlaylist, "it is not a playlist"))
            }
            return document
        } then: { fill, document in
            fill.documents[url] = document
            guard fill.documents.values.reduce(0, { $0 +| $1.weight }) <= Self.mostBytes else {
                let why = "the playlists together take more than \(Self.mostBytes >> 20) MiB: choose fewer renditions"
                return fill.fail(.unreadable(url, PlaylistError(.tooLarge, why)))
            }
            var rest = keys
            rest[url] = nil
            fill.readPlaylists(rest)
        }
    }

    /// What all playlists of a download may take in memory: a day in thirty renditions takes half of it.
    private static let mostBytes = 256 << 20

    private func tookPlaylists() {
        guard let plan else { return }
        let live = documents.filter { $0.value.isLive }.map(\.key)
        if !live.isEmpty {
            guard !hasRefreshed else { return fail(.live) }
            hasRefreshed = true
            return fetchPlaylists(live, isFresh: true)
        }
        var keys: [MPD.RepresentationID: CacheKey] = [:]
        let ids = Dictionary(plan.indexes.map { ($0.item, $0.id) }) { a, _ in a }
        fetch(PresentationParts(plan.indexes.map(\.item))) { item, part in
            if let id = ids[item] { keys[id] = part.key }
        } then: { [self] in
            makeItems(plan, keys)
        }
    }

    private func makeItems(_ plan: PresentationPlan, _ keys: [MPD.RepresentationID: CacheKey]) {
        let documents = documents
        offLoop { stored throws(PresentationFault) in
            var boxes: [MPD.RepresentationID: SegmentIndexBox] = [:]
            for index in plan.indexes {
                guard let key = keys[index.id] else { continue }
                boxes[index.id] = try stored.index(index.item, key)
            }
            return try plan.found(documents, boxes)
        } then: { fill, found in
            fill.fetchItems(found)
        }
    }

    // MARK: Segments

    private func fetchItems(_ found: PresentationPlan.Found) {
        items = found.items
        state.expect(found.segments, note: found.note)
        var rest = found.items
        fetch(PresentationParts(next: { rest.next() }, count: found.segments)) { _, _ in
        } then: { [self] in
            commit()
        }
    }

    func partOrder(_ item: PresentationItem, of whole: CacheKey? = nil, isFresh: Bool = false) -> Prefetch.Order {
        Prefetch.Order(
            url: item.url, range: item.range, isPinned: false, whole: whole ?? self.whole, keeps: false,
            isFresh: isFresh)
    }

    private func commit() {
        let commitment = Commitment(
            store: loop.filler.store, policy: loop.filler.policy.value, whole: whole, isPinned: order.isPinned,
            isWanted: { [budget] in !budget.isCancelled })
        let (items, playlists) = (items, Array(documents.keys))
        let read = (document.map { [$0] } ?? []) + documents.values
        offLoop(isLong: true) { stored throws(PresentationFault) -> [PresentationItem]? in
            for document in read where try !stored.isAsRead(document) { return nil }
            do throws(StoreError) { return try commitment.commit(items, playlists: playlists) } catch {
                throw .cache("\(error)")
            }
        } then: { fill, missing in
            guard let missing else { return fill.beginAnew() }
            if missing.isEmpty { return fill.complete() }
            fill.repair(missing)
        }
    }

    /// A player has had a playlist renewed meanwhile: what it lists now has to be there.
    private func beginAnew() {
        repairs += 1
        guard repairs <= Self.mostRepairs else {
            return fail(.cache("its playlists were renewed again and again while it was downloaded: try again later"))
        }
        fetchFirst(isFresh: false)
    }

    /// Fetches items that are no longer cached.
    private func repair(_ missing: [PresentationItem]) {
        repairs += 1
        if repairs > Self.mostRepairs, let item = missing.first {
            let error = PrefetchError.noRoom("it was evicted before the rest arrived")
            return fail(.part(name: item.name(of: nil), item.url, error))
        }
        state.lost(segments: missing.reduce(0) { $0 +| $1.segments })
        fetch(PresentationParts(missing)) { _, _ in
        } then: { [self] in
            commit()
        }
    }

    // MARK: Common to all phases

    private func fetch(
        _ parts: PresentationParts, isFresh: Bool = false,
        came: @escaping (PresentationItem, PrefetchState) -> Void, then proceed: @escaping () -> Void
    ) {
        group = PrefetchGroup(on: loop, pace: pace, connections: order.connections, state: state, parts) {
            [self] item in
            partOrder(item, isFresh: isFresh)
        }
        group?.start(came: came) { [self] end in
            group = nil
            switch end {
            case .completed: proceed()
            case .failed(let item, .status(401...403, _)) where refused != item.url && order.recording == nil:
                // What lets in to the parts may come with the playlist: a cookie, or links that have expired.
                refused = item.url
                fetchFirst(isFresh: true)
            case .failed(let item, let error): fail(.part(name: item.name(of: parts.count), item.url, error))
            }
        }
    }

    /// Runs work that waits for the disk, or takes long, off the loop: work on texts on the threads for these.
    func offLoop<Value: Sendable>(
        isLong: Bool = false, _ work: @escaping @Sendable (StoredPlaylists) throws(PresentationFault) -> Value,
        then proceed: @escaping @Sendable (PresentationFill, Value) -> Void
    ) {
        let (store, bound, budget) = (loop.filler.store, LoopBound(self, on: loop.loop), budget)
        let job: @Sendable () -> Void = {
            let result = Result { () throws(PresentationFault) in
                try work(StoredPlaylists(store: store, budget: budget))
            }
            bound.post { fill in
                guard fill.onEnd != nil else { return }
                switch result {
                case .success(let value): proceed(fill, value)
                case .failure(let fault): fill.fail(fault)
                }
            }
        }
        _ = isLong ? store.performLong(job) : store.performOnText(of: order.url.host, job)
    }

    // MARK: The end

    func complete() {
        guard first == nil else { return reading = .awaitsFirst }
        end(.completed)
    }

    func fail(_ fault: PresentationFault) { end(.failed(fault)) }

    private func end(_ end: End) {
        if case .completed = end { state.complete() }
        let report = onEnd
        finish()
        report?(end)
    }

    private func finish() {
        onEnd = nil
        budget.cancel()
        first?.stop()
        group?.stop()
        recording?.stop()
        (first, group, recording) = (nil, nil, nil)
    }
}
