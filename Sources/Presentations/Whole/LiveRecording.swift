import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Playlists

/// The recording of a live stream that was ordered.
package struct RecordingOrder: Sendable {
    package let name: RecordingName
    /// Seconds since 1970: segments that appear from then on are not recorded.
    package let end: Int64

    package init(began: Int64, seconds: Int64) { (name, end) = (RecordingName(began: began), began +| seconds) }
}

/// Records a live stream: requests its playlists as a player does, fetches new segments, and writes playlists of
/// those that have arrived. Loop-bound.
///
///     ask ── read ── fetch new segments ── write, every 10 s ───┐
///      ▲────────────── wait (RefreshRule) ──────────────────────┤ both at once
///                                     its time is over, or the stream ends ──▶ write, finish
///
/// The written playlists always have an end: the recording plays while it is made, and after a kill. The next
/// process reads them and continues.
final class LiveRecording {
    enum End {
        case completed
        case failed(PresentationFault)
    }

    private let document: PlaylistDocument
    private let order: RecordingOrder
    private unowned let fill: PresentationFill
    private var onEnd: ((End) -> Void)?
    private var renditions: [RecordedRendition] = []
    /// New items that have not arrived yet.
    private var pending: [PresentationItem] = []
    /// Keys and initialization sections that have arrived, or are pending.
    private var companions: Set<PresentationItem> = []
    private var group: PrefetchGroup?
    private lazy var timer = LoopTimer(on: fill.loop.loop) { [unowned self] in requestList() }
    /// How long to wait before the playlists are requested again, in seconds.
    private var interval = 2.0
    private var hasStreamEnded = false
    /// The number of consecutive failed requests, and when the first of them failed, in seconds since 1970.
    private var failures = (count: 0, since: 0 as Int64)
    private static let mostFailures = 5
    /// In seconds.
    private static let patience: Int64 = 30
    private var writing = RecordingWriting.State()

    /// - Parameter end: called once, on the loop, unless `stop` was called before.
    init(
        _ document: PlaylistDocument, _ order: RecordingOrder, _ fill: PresentationFill,
        onEnd end: @escaping (End) -> Void
    ) {
        (self.document, self.order, self.fill, onEnd) = (document, order, fill, end)
    }

    func stop() {
        onEnd = nil
        timer.cancel()
        group?.stop()
        group = nil
    }

    // MARK: Earlier recordings

    /// Completes a recording whose time passed while no process ran: the segments that had arrived are all of it,
    /// whatever has become of the stream.
    static func takeUp(_ recording: RecordingOrder, by fill: PresentationFill) {
        let url = recording.name.url(of: fill.order.url), whole = fill.loop.filler.policy.value.resolve(url).key
        fill.offLoop { stored throws(PresentationFault) in
            guard case .playlist = try stored.content(of: whole, url) else { return [IndexParts.Part]?.none }
            do throws(StoreError) { return try stored.store.parts.cached(of: whole) } catch {
                throw .cache("\(error)")
            }
        } then: { fill, parts in
            guard let parts else { return fill.fail(.notRecordable(nothing)) }
            fill.state.beginSegments()
            fill.state.came(segments: Int64(parts.count), bytes: parts.reduce(0) { $0 +| $1.cached })
            fill.state.expect(nil, note: note(url))
            fill.complete()
        }
    }

    func start() {
        guard case .hls(let playlist) = document.content else {
            return finish(.failed(.notRecordable("only HLS can be recorded, and this is DASH: leave out --for")))
        }
        let (document, order, name, policy) = (document, fill.order, order.name, fill.loop.filler.policy)
        let (state, renditions) = (fill.state, fill.renditions)
        fill.offLoop { stored throws(PresentationFault) in
            let plan = try PresentationPlan(document, renditions)
            state.expect(nil, note: plan.note())
            let playlists = playlist.media != nil ? [order.url] : plan.playlists
            guard ([order.url] + playlists).allSatisfy({ name.url(of: $0) != $0 }) else {
                throw .notRecordable("its URL is too long to name a recording")
            }
            let whole = policy.value.resolve(name.url(of: order.url)).key
            do throws(StoreError) {
                state.came(
                    segments: 0, bytes: try stored.store.parts.cached(of: whole).reduce(0) { $0 +| $1.cached })
            } catch { throw .cache("\(error)") }
            return try playlists.map { url throws(PresentationFault) in
                let recorded = name.url(of: url), key = policy.value.resolve(recorded).key
                guard case .playlist(let document) = try stored.content(of: key, recorded),
                    let segments = document.media
                else { return RecordedRendition(url) }
                return RecordedRendition(
                    url, continuingAfter: Array(segments.all), next: RecordingText.next(in: document.text))
            }
        } then: { fill, renditions in
            fill.recording?.go(on: renditions)
        }
    }

    private func go(on renditions: [RecordedRendition]) {
        self.renditions = renditions
        companions = Set(renditions.flatMap { $0.segments.flatMap(\.companions) })
        let isNew = renditions.allSatisfy(\.segments.isEmpty)
        guard !isNew || document.isLive || document.listsRenditions else {
            return finish(.failed(Self.isOver))
        }
        fill.state.came(segments: renditions.reduce(0) { $0 +| Int64($1.segments.count) })
        requestList()
    }

    private static let isOver = PresentationFault.notRecordable(
        "it is not a live stream, but a complete one: leave out --for to download all of it")

    // MARK: New segments

    private func requestList() {
        guard onEnd != nil else { return }
        guard fill.loop.filler.now() < order.end, !writing.isFull else { return conclude() }
        var keys: [OriginURL: CacheKey] = [:]
        let playlists = renditions.map { PresentationItem(kind: .playlist, url: $0.url) }
        run(PresentationParts(playlists), isCounted: false) { item in
            Prefetch.Order(url: item.url, isPinned: false, keeps: false, isFresh: true)
        } came: { item, part in
            keys[item.url] = part.key
        } onEnd: { [self] end in
            switch end {
            case .completed: read(keys)
            case .failed(let item, let error): missed(item, error)
            }
        }
    }

    /// Retries after a failure: a stream that is unreachable for a moment continues.
    private func missed(_ item: PresentationItem, _ error: PrefetchError) {
        let now = fill.loop.filler.now()
        failures = (failures.count + 1, failures.count == 0 ? now : failures.since)
        guard failures.count >= Self.mostFailures, now -| failures.since >= Self.patience else {
            return timer.schedule(afterSeconds: max(1, interval))
        }
        write { $0.finish(.failed(.away(item.url, error))) }
    }

    private func read(_ keys: [OriginURL: CacheKey]) {
        let variables = document.variables
        fill.offLoop { stored throws(PresentationFault) in
            var documents: [OriginURL: Listed] = [:]
            for (url, key) in keys {
                do throws(PresentationFault) {
                    if case .playlist(let document) = try stored.content(of: key, url, importing: variables) {
                        documents[url] = (document, document.media)
                    }
                } catch .unreadable {
                    // As when a page came in its place: the next request may get all of it.
                    continue
                }
            }
            return documents
        } then: { fill, documents in
            fill.recording?.take(documents)
        }
    }

    /// A playlist, and the segments in it.
    private typealias Listed = (document: PlaylistDocument, segments: MediaPlaylistSegments?)

    private func take(_ documents: [OriginURL: Listed]) {
        if let other = renditions.first(where: { documents[$0.url] == nil }) {
            return missed(PresentationItem(kind: .playlist, url: other.url), .notStorable(.page))
        }
        failures.count = 0
        let isFirst = renditions.allSatisfy(\.segments.isEmpty)
        hasStreamEnded = documents.values.allSatisfy { !$0.document.isLive }
        if isFirst, hasStreamEnded { return finish(.failed(Self.isOver)) }
        for place in renditions.indices {
            guard let segments = documents[renditions[place].url]?.segments else { continue }
            let new = renditions[place].take(segments)
            for segment in new {
                pending += segment.companions.filter { companions.insert($0).inserted }
                segment.url.map {
                    pending.append(PresentationItem(kind: .segment, url: $0, range: segment.range, segments: 1))
                }
            }
        }
        let waits = documents.values.compactMap { $0.document.refreshRule?.freshFor.seconds }
        interval = max(0.2, waits.min() ?? interval)
        fetch()
    }

    private func fetch() {
        var rest = pending[...]
        run(PresentationParts(next: { rest.popFirst() }, count: nil)) { [self] item in
            fill.partOrder(item, of: whole)
        } came: { [self] item, _ in
            pending.removeAll { $0 == item }
        } onEnd: { [self] end in
            guard case .failed(let item, let error) = end else { return fetched() }
            // Segments that the stream has dropped already are lost; others may still arrive.
            guard error.isAbsence else {
                let fault = PresentationFault.part(name: item.name(of: nil), item.url, error)
                return write { $0.finish(.failed(fault)) }
            }
            pending.removeAll { $0 == item }
            companions.remove(item)
            for place in renditions.indices { renditions[place].lose(item) }
            fetch()
        }
    }

    private func fetched() {
        if hasStreamEnded || fill.loop.filler.now() >= order.end { return conclude() }
        // What the stream lists meanwhile may be gone when the writing ends.
        timer.schedule(afterSeconds: interval)
        let now = MonotonicClock.nanoseconds()
        guard !writing.isRunning, writing.began.map({ now -| $0 >= RecordingWriting.State.interval }) ?? true else {
            return
        }
        writing.began = now
        write(onlyNew: renditions.contains { $0.committed > 0 }) { $0.writing.next?() }
    }

    private func run(
        _ parts: PresentationParts, isCounted: Bool = true,
        order: @escaping (PresentationItem) -> Prefetch.Order,
        came: @escaping (PresentationItem, PrefetchState) -> Void, onEnd end: @escaping (PrefetchGroup.End) -> Void
    ) {
        group = PrefetchGroup(
            on: fill.loop, pace: fill.pace, connections: fill.order.connections,
            state: isCounted ? fill.state : nil, parts, order: order)
        group?.start(came: came) { [self] result in
            group = nil
            end(result)
        }
    }

    // MARK: Writing

    /// The URL where the recording plays.
    private var recordedURL: OriginURL { order.name.url(of: fill.order.url) }

    private var whole: CacheKey { key(recordedURL) }

    private func key(_ url: OriginURL) -> CacheKey { fill.loop.filler.policy.value.resolve(url).key }

    static let nothing = "no segment of the stream arrived during the recording"

    static func note(_ recording: OriginURL) -> String { "it plays at \(recording.absolute)" }

    private func conclude() {
        guard renditions.contains(where: { !$0.segments.isEmpty }) else {
            return finish(.failed(.notRecordable(Self.nothing)))
        }
        let why = writing.isFull ? "its list is as long as one may be, so another has to be ordered; " : ""
        fill.state.note(why + Self.note(recordedURL))
        write { $0.finish(.completed) }
    }

    /// Writes playlists of the segments that have arrived, and makes these parts of the recording; one writing after
    /// the other.
    /// - Parameter onlyNew: whether earlier ones are trusted to be parts still; the last writing makes sure of all.
    private func write(onlyNew: Bool = false, then proceed: @escaping @Sendable (LiveRecording) -> Void) {
        guard !writing.isRunning else { return writing.next = { [unowned self] in write(then: proceed) } }
        writing.isRunning = true
        let work = RecordingWriting(
            store: fill.loop.filler.store, key: { [policy = fill.loop.filler.policy] in policy.value.resolve($0).key },
            name: order.name, document: document, url: fill.order.url, isPinned: fill.order.isPinned,
            isWanted: { [budget = fill.budget] in !budget.isCancelled })
        if !onlyNew { for place in renditions.indices { renditions[place].committed = 0 } }
        let (written, lacking) = (renditions, Set(pending))
        for place in renditions.indices { renditions[place].committed = renditions[place].segments.count }
        fill.offLoop(isLong: true) { _ throws(PresentationFault) in
            try work.write(written.map { $0.without(lacking) }, isBegun: onlyNew)
        } then: { fill, isFull in
            guard let recording = fill.recording, recording.onEnd != nil else { return }
            (recording.writing.isRunning, recording.writing.isFull) = (false, isFull)
            proceed(recording)
        }
    }

    private func finish(_ end: End) {
        let report = onEnd
        stop()
        report?(end)
    }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
