import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import Logging
import Playlists

/// The playlists and feeds that one loop serves: each version is read once, and put on the shelf that all loops share.
/// Loop-bound.
package final class PlaylistLibrary {
    /// The result of reading a generation as a playlist.
    package enum Outcome: Sendable {
        case document(PlaylistDocument)
        /// It is not a readable playlist or feed, and its bytes are to be sent as they arrived. The bytes are nil if
        /// they exceed the size limit of playlists, or if there is no memory for them now.
        case refused([UInt8]?, Refusal)
        case failed(FillError)
    }

    /// Why a text is not read.
    package struct Refusal: Sendable {
        let reason: String
        /// Whether the same text may be read later.
        package var isPassing = false
    }

    package let shelf: PlaylistShelf
    package let ahead: SegmentAhead
    private let loop: LoopFiller
    private var readers: [GenerationID: Readers] = [:]
    private var waiters: UInt64 = 0
    /// Generations that look like playlists or feeds, but are not.
    private var refused: Set<GenerationID> = []
    private static let mostRefused = 1024
    private static let mostDelivered = 64
    /// The last generation that was fetched with delivery directives, for each live playlist.
    private var delivered: [CacheKey: (resource: OpenResource, generation: Generation)] = [:]

    /// The presentation to which a resource was recently joined.
    private var joined: [CacheKey: CacheKey] = [:]

    package init(_ shelf: PlaylistShelf, _ ahead: SegmentAhead, on loop: LoopFiller) {
        (self.shelf, self.ahead, self.loop) = (shelf, ahead, loop)
    }

    // MARK: Recognition

    /// The document of a generation, if it has been read.
    package func document(of generation: Generation, at url: OriginURL) -> PlaylistDocument? {
        let key = documentKey(generation.key, url)
        if let known = shelf.document(key), known.generation == generation.id { return known }
        // A resource may have been a playlist before it became a feed.
        guard let known = shelf.feeds.document(key), known.generation == generation.id else { return nil }
        return known
    }

    /// Whether a generation is to be answered as a playlist or feed: by its type, or by its first bytes if they have
    /// come.
    /// - Parameter beginsAtStart: whether the answer begins with the first byte, which is then examined. If not, XML
    ///   whose beginning has not come has to be read before it is.
    package func isPlaylist(
        _ generation: Generation, _ view: Generation.Snapshot, at url: @autoclosure () -> OriginURL,
        beginsAtStart: @autoclosure () -> Bool
    ) -> Bool {
        if let length = view.length, length > PlaylistLimits.bytes {
            // It is not going to be parsed, so its lifetime is what its origin states.
            if view.head.live != nil { generation.setHead { $0.ofPlaylist(nil) } }
            return false
        }
        guard !view.head.isCertainListing else { return !refused.contains(generation.id) }
        if view.head.isListing, ContentEncoding.isCodedListing(view.head.fields, at: url()) {
            return !refused.contains(generation.id)
        }
        switch generation.beginning {
        case .other: return false
        case .playlist where generation.isStored: break
        case .feed where generation.isStored && !StrayPage.isPage(view.head.fields): break
        case .playlist, .feed: return false
        case .unknown, .text:
            guard !beginsAtStart(), FeedRecognition.mayBe(type: view.head.fields["Content-Type"] ?? "") else {
                return false
            }
        }
        return ContentEncoding.isUncoded(view.head.fields) && !refused.contains(generation.id)
    }

    /// Whether the first bytes of an answer, which were not cached before, are those of a playlist or feed.
    package func isPlaylist(_ beginning: UnsafeRawBufferPointer, of generation: Generation) -> Bool {
        guard let first = beginning.first, Listing.mayBegin(with: first), !refused.contains(generation.id) else {
            return false
        }
        let fields = generation.head.fields
        return ContentEncoding.isUncoded(fields) && Listing.begins(beginning, type: fields["Content-Type"])
    }

    // MARK: Reading

    /// A place among those waiting for a reading.
    package struct Waiter: Hashable, Sendable {
        fileprivate let generation: GenerationID
        fileprivate let number: UInt64
    }

    private struct Readers {
        let reading: PlaylistReading
        var waiting: [Waiter: (Outcome) -> Void] = [:]
    }

    /// Reads a generation as a playlist, once for all waiters.
    /// - Parameters:
    ///   - status: a fetch that `follower` already follows; it is left in any case.
    ///   - end: called once, perhaps before this returns; not after `leave`.
    /// - Returns: the waiter to pass to `leave`; nil if `end` was called.
    package func read(
        _ generation: Generation, of resource: OpenResource, _ demand: Demand, follower: FollowerID,
        following status: SharedFetch?, then end: @escaping (Outcome) -> Void
    ) -> Waiter? {
        if readers[generation.id] != nil {
            status?.leave(follower)
            return wait(for: generation, end)
        }
        let reader = CacheReader(
            generation, from: 0, to: generation.length, resource: resource, host: demand.url.host,
            demand: demand.of(nil), filler: loop,
            follower: follower, following: status)
        reader.count(asSent: false)
        return read(generation, of: resource, at: demand.url.withoutReport, by: reader, after: [], then: end)
    }

    /// Does the same if a reader of the whole has already delivered its beginning.
    /// - Parameters:
    ///   - reader: the reader, which is finished here.
    ///   - beginning: the bytes that it has delivered.
    package func read(
        _ generation: Generation, of resource: OpenResource, at url: OriginURL, by reader: CacheReader,
        after beginning: [UInt8], then end: @escaping (Outcome) -> Void
    ) -> Waiter? {
        if readers[generation.id] != nil {
            reader.finish()
            return wait(for: generation, end)
        }
        // It is of the first who waits, and must not be made when that one has left.
        _ = reader.demand
        let reading = PlaylistReading(
            generation, as: documentKey(generation.key, url), at: url, by: reader, after: beginning, on: loop,
            shelf: shelf)
        readers[generation.id] = Readers(reading: reading)
        let waiter = wait(for: generation, end)
        reading.start(news: { [self] in put($0, generation, resource) }) { [self] outcome in
            take(outcome, generation, resource)
            let waiting = readers.removeValue(forKey: generation.id)?.waiting ?? [:]
            for report in waiting.values { report(outcome) }
        }
        return readers[generation.id] == nil ? nil : waiter
    }

    private func wait(for generation: Generation, _ end: @escaping (Outcome) -> Void) -> Waiter {
        waiters &+= 1
        let waiter = Waiter(generation: generation.id, number: waiters)
        readers[generation.id]?.waiting[waiter] = end
        return waiter
    }

    /// Stops waiting. A reading without waiters is cancelled: the next request starts it again.
    package func leave(_ waiter: Waiter) {
        readers[waiter.generation]?.waiting[waiter] = nil
        guard let left = readers[waiter.generation], left.waiting.isEmpty else { return }
        readers[waiter.generation] = nil
        left.reading.cancel()
    }

    private func take(_ outcome: Outcome, _ generation: Generation, _ resource: OpenResource) {
        guard case .refused(_, let refusal) = outcome else { return }
        loop.filler.logger.info(
            "not read as a playlist or feed: \(refusal.reason)", metadata: ["resource": "\(generation.key.text)"])
        guard !refusal.isPassing else { return }
        if generation.isHidden { loop.filler.succeed(generation, in: resource) }
        if refused.count >= Self.mostRefused { refused = [] }
        refused.insert(generation.id)
        // Its lifetime depends on its fields alone.
        if generation.head.live != nil { generation.setHead { $0.ofPlaylist(nil) } }
    }

    private func put(_ news: PlaylistReading.News, _ generation: Generation, _ resource: OpenResource) {
        let key = news.document.key
        // A film's is renewed with all that it lists; what changes by itself lists what its origin has.
        if generation.isHidden, news.changesByItself { loop.filler.succeed(generation, in: resource) }
        guard !news.document.isFeed else { return }
        ahead.renewed(key, at: .seconds(loop.filler.now()))
        if news.whole != key { join([generation.key], to: news.whole) }
        join(news.joined, to: news.whole)
        demote(news.left)
        guard generation.key != key, generation.isStored else { return }
        // This is one state of a stream, and is not requested again once the next one exists.
        if let last = delivered[key], last.generation !== generation {
            loop.filler.discard(last.generation, of: last.resource)
        }
        if delivered.count >= Self.mostDelivered { delivered = [:] }
        delivered[key] = (resource, generation)
    }

    /// Finds the renditions of a presentation that are completely cached, once for all who wait at a time.
    /// - Parameter answer: called once, on another thread, or at once if the store is being closed.
    package func findKept(
        of whole: CacheKey, _ policy: ProxyPolicy, _ answer: @escaping @Sendable (PlaylistForm.Kept?) -> Void
    ) {
        shelf.kept.find(of: whole, in: loop.filler.store, policy, loop.filler.logger, answer)
    }

    // MARK: Membership

    /// Joins stored resources to the presentation to which they turned out to belong. The store may have recorded
    /// this already, so it is notified once.
    package func join(_ keys: [CacheKey], to whole: CacheKey) {
        let keys = keys.filter { joined[$0] != whole }
        if joined.count + keys.count > Self.mostRefused { joined = [:] }
        for key in keys { joined[key] = whole }
        perform(keys, "add resources to the presentation \(whole.text)") { store, keys throws(StoreError) in
            try store.parts.join(keys, to: whole)
        }
    }

    /// Demotes segments that have left a live stream.
    private func demote(_ segments: [MediaSegment]) {
        let policy = loop.filler.policy.value
        // A file stays if other ranges of it are listed.
        let keys = segments.filter { $0.range == nil }.compactMap(\.url).map { policy.resolve($0).key }
        perform(keys, "demote segments that have left a live stream") { store, keys throws(StoreError) in
            try store.parts.demote(keys)
        }
    }

    private func perform(
        _ keys: [CacheKey], _ what: String,
        _ work: @escaping @Sendable (CacheStore, [CacheKey]) throws(StoreError) -> Void
    ) {
        guard !keys.isEmpty else { return }
        let (store, logger) = (loop.filler.store, loop.filler.logger)
        store.perform {
            do throws(StoreError) { try work(store, keys) } catch { logger.error("could not \(what): \(error)") }
        }
    }

    /// The key of the document; for the URL of one state of a live playlist, the key of the playlist itself.
    private func documentKey(_ key: CacheKey, _ url: OriginURL) -> CacheKey {
        let plain = url.withoutDeliveryDirectives
        return plain == url ? key : loop.filler.policy.value.resolve(plain).key
    }

    static func refusal(_ error: any Error) -> Refusal {
        // The multivariant playlist may be read later, or once more after a restart.
        Refusal(reason: reason(error), isPassing: (error as? PlaylistError)?.kind == .missingImport)
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as PlaylistError: error.description
        case let error as FeedError: error.description
        case ContentCoding.Problem.unknown(let coding): "its content coding \(coding.prefix(20)) is unknown"
        case ContentCoding.Problem.tooLong:
            "it is longer than \(PlaylistLimits.bytes >> 20) MiB, or than 200 times what came"
        default: "its content coding is broken"
        }
    }
}
