import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Playlists

/// Reads a whole playlist or feed into memory, and parses it on another thread; once for all waiters on its loop, and
/// no longer than one of them waits.
/// Loop-bound.
final class PlaylistReading {
    private let generation: Generation
    private let key: CacheKey
    private let url: OriginURL
    private let shelf: PlaylistShelf
    private let reader: CacheReader
    private let loop: LoopFiller
    private var bytes: [UInt8]
    /// How many of them are not held here, but are read from the disk once all are there.
    private var left = 0
    /// Counts what is held, beyond a little.
    private lazy var share = loop.filler.metrics.transit.share(of: reader.demand.client)
    private let budget = WorkBudget(bytes: 0)
    private var onNews: ((News) -> Void)?
    private var onEnd: ((PlaylistLibrary.Outcome) -> Void)?

    /// - Parameters:
    ///   - key: the cache key of the document.
    ///   - reader: reads the whole, and has delivered `beginning`; it is finished here.
    ///   - shelf: the shelf that it is put on.
    init(
        _ generation: Generation, as key: CacheKey, at url: OriginURL, by reader: CacheReader,
        after beginning: [UInt8], on loop: LoopFiller, shelf: PlaylistShelf
    ) {
        (self.generation, self.key, self.url, self.shelf) = (generation, key, url, shelf)
        (self.reader, self.loop, bytes) = (reader, loop, beginning)
    }

    /// - Parameters:
    ///   - news: called once it is on the shelf, also if nothing waits for it any longer.
    ///   - end: called once, perhaps before this returns if the text cannot be read; not after `cancel`.
    func start(news: @escaping (News) -> Void, end: @escaping (PlaylistLibrary.Outcome) -> Void) {
        (onNews, onEnd) = (news, end)
        reader.onReady = { [self] in proceed() }
        proceed()
    }

    /// Cancels the reading, as nothing waits for it any longer.
    func cancel() {
        onEnd = nil
        budget.cancel()
        reader.finish()
    }

    private func proceed() {
        while onEnd != nil {
            switch reader.next(limit: 256 << 10, copies: true) {
            case .bytes(let piece, _, _):
                // Memory grows with the received bytes, up to the limit, and not with the announced length.
                guard left + bytes.count + piece.count <= PlaylistLimits.bytes else {
                    return end(.refused(nil, .init(reason: "it is longer than \(PlaylistLimits.bytes >> 20) MiB")))
                }
                guard take(piece) else {
                    return end(.refused(nil, .init(reason: "there is no memory for it now", isPassing: true)))
                }
            case .wait: return
            case .end: return read()
            case .failed(let error): return end(.failed(error))
            }
        }
    }

    /// A document may be long, and wait for its last bytes or for its turn: only a little of it is held meanwhile if it
    /// is stored.
    /// - Returns: whether there is room for it.
    private func take(_ piece: UnsafeRawBufferPointer) -> Bool {
        if left == 0 { bytes += piece } else { left += piece.count }
        guard bytes.count > Self.mostHeld else { return true }
        // What may stop being stored midway, or could not be requested again, stays in memory.
        let isKept = generation.isStored && generation.length != nil && generation.head.rangeCondition != nil
        if isKept, !generation.isRetired, !reader.account.hasLeftDisk, !reader.account.lacksRoom {
            (left, bytes) = (bytes.count, [])
            return true
        }
        share.hold(Int64(bytes.count))
        return Int64(bytes.count) <= share.window *| 8
    }

    private static let mostHeld = 256 << 10

    /// What a document implies for other resources, determined on the thread that parsed it.
    struct News: Sendable {
        let document: PlaylistDocument
        /// The presentation that it belongs to, and the resources that turned out to belong to it.
        let whole: CacheKey
        let joined: [CacheKey]
        /// Segments that have left a live stream.
        let left: [MediaSegment]
        /// Whether it lists what its origin has, now or until a moment ago, and not the parts of a film.
        let changesByItself: Bool
    }

    private func read() {
        reader.finish()
        // Lost meanwhile, it is requested again.
        guard left == 0 || !reader.account.hasLeftDisk && !reader.account.lacksRoom else {
            return end(.failed(.changed))
        }
        let (held, left, generation, key, whole) = (bytes, left, generation, key, generation.whole)
        let (head, id) = (generation.head, generation.id)
        let base = (try? OriginURL(url: head.finalURL)) ?? url
        let (url, shelf, now) = (url, shelf, Duration.seconds(loop.filler.now()))
        // However short it is: what it costs to parse does not follow from its length alone.
        let bound = LoopBound(self, on: loop.loop)
        let store = loop.filler.store
        let isRun = store.performOnText(of: url.host) { [budget] in
            guard !budget.isCancelled else { return }
            var outcome: PlaylistLibrary.Outcome, news: News?
            var bytes: [UInt8]? = held
            do {
                if left > 0 { bytes = try? FileHold.bytes(first: left, of: generation) }
                guard let bytes else { return bound.post { $0.end(.failed(.changed)) } }
                let text = try ContentCoding.decoded(bytes, head.fields)
                budget.earn(text.count)
                let type = head.fields["Content-Type"]
                let document =
                    if PlaylistKind.sniff(text) == nil, FeedRecognition.isFeed(text, type: type) {
                        try PlaylistDocument(
                            feed: text, type: type, key: key, url: url, base: base, generation: id, within: budget)
                    } else {
                        try PlaylistDocument(
                            text, key: key, url: url, base: base, generation: id,
                            importing: shelf.parent(of: url)?.variables, within: budget)
                    }
                store.readings[id] = document
                news = Self.put(document, partOf: whole, on: shelf, at: now, within: budget)
                outcome = .document(document)
            } catch { (outcome, news) = (.refused(bytes, PlaylistLibrary.refusal(error)), nil) }
            let result = (outcome, news)
            bound.post { reading in
                if let news = result.1 { reading.onNews?(news) }
                reading.end(result.0)
            }
        }
        if !isRun { end(.failed(.offline)) }
    }

    private static func put(
        _ document: PlaylistDocument, partOf whole: CacheKey?, on shelf: PlaylistShelf, at now: Duration,
        within budget: WorkBudget
    ) -> News {
        if !document.order.forms.isEmpty || document.isFeed { shelf.feeds.put(document) }
        guard !document.isFeed else {
            return News(document: document, whole: document.key, joined: [], left: [], changesByItself: true)
        }
        let before = shelf.document(document.key), former = document.isLive ? before : nil
        let changesByItself = !document.isOfFilm || before?.isLive == true
        let (whole, joined) = shelf.put(document, partOf: whole, at: now, within: budget)
        let left = former.flatMap { try? document.left(since: $0, at: now, within: budget) } ?? []
        return News(
            document: document, whole: whole, joined: joined, left: left, changesByItself: changesByItself)
    }

    private func end(_ outcome: PlaylistLibrary.Outcome) {
        guard let report = onEnd else { return }
        onEnd = nil
        reader.finish()
        report(outcome)
    }
}
