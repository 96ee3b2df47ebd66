import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import Logging
import Playlists

/// Playlists as one loop serves them: each version is read once, and put on the shelf that all loops share.
/// Loop-bound.
package final class PlaylistLibrary {
    /// What a generation turns out to be.
    package enum Outcome: Sendable {
        case document(PlaylistDocument)
        /// It is none that can be read: these bytes are to go out as they came.
        case refused([UInt8], String)
        case failed(FillError)
    }

    package let shelf: PlaylistShelf
    package let ahead: SegmentAhead
    private let loop: LoopFiller
    private var waiting: [GenerationID: [(Outcome) -> Void]] = [:]
    /// What is no playlist, although it looks like one.
    private var refused: Set<GenerationID> = []
    private static let mostRefused = 1024
    /// What a live playlist's delivery directives have asked for last.
    private var delivered: [CacheKey: (resource: OpenResource, generation: Generation)] = [:]

    package init(_ shelf: PlaylistShelf, _ ahead: SegmentAhead, on loop: LoopFiller) {
        (self.shelf, self.ahead, self.loop) = (shelf, ahead, loop)
    }

    // MARK: What is one

    /// The document of a generation, where it has been read.
    package func document(of generation: Generation, at url: OriginURL) -> PlaylistDocument? {
        let document = shelf.document(documentKey(generation.key, url))
        return document?.generation == generation.id ? document : nil
    }

    /// Whether a generation is to be answered as a playlist, as far as that can be told without waiting: by its type,
    /// or by what it begins with.
    package func isPlaylist(_ generation: Generation, _ view: Generation.Snapshot) -> Bool {
        if let length = view.length, length > PlaylistLimits.bytes { return false }
        guard !view.head.isCertainPlaylist else { return !refused.contains(generation.id) }
        if generation.beginning == .unknown, generation.isStored { lookAtBeginning(of: generation, view.length) }
        guard generation.beginning == .text, !refused.contains(generation.id) else { return false }
        return ContentEncoding.isUncoded(view.head.fields) && sniff(generation, view.length)
    }

    /// Whether the first bytes of an answer, which were not there before, are those of one.
    package func isPlaylist(_ beginning: UnsafeRawBufferPointer, of generation: Generation) -> Bool {
        guard let first = beginning.first, PlaylistKind.mayBegin(with: first), !refused.contains(generation.id) else {
            return false
        }
        return ContentEncoding.isUncoded(generation.head.fields) && PlaylistKind.sniff(beginning) != nil
    }

    private func lookAtBeginning(of generation: Generation, _ length: Int64?) {
        withBeginning(of: generation, length, count: 1) { if let byte = $0.first { generation.begins(with: byte) } }
    }

    private func sniff(_ generation: Generation, _ length: Int64?) -> Bool {
        var isPlaylist = false
        withBeginning(of: generation, length, count: PlaylistKind.sniffedBytes) {
            isPlaylist = PlaylistKind.sniff($0) != nil
        }
        return isPlaylist
    }

    /// Not where that would take time.
    private func withBeginning(
        of generation: Generation, _ length: Int64?, count: Int, _ look: (UnsafeRawBufferPointer) -> Void
    ) {
        let count = Int(min(Int64(count), length ?? 0))
        guard count > 0, generation.isStored else { return }
        var lease: ExtentLease?
        guard case .bytes(let until) = generation.acquire(at: 0, limit: Int64(count), lease: &lease), until > 0 else {
            return
        }
        withUnsafeTemporaryAllocation(byteCount: Int(min(until, Int64(count))), alignment: 16) { buffer in
            if generation.readAtOnce(into: buffer, at: 0) { look(UnsafeRawBufferPointer(buffer)) }
        }
        lease = nil
    }

    // MARK: Reading

    /// Reads a generation as a playlist, once for all who ask.
    /// - Parameters:
    ///   - status: a fetch that `follower` follows already: it is left in any case.
    ///   - end: called once, perhaps before this returns.
    package func read(
        _ generation: Generation, of resource: OpenResource, _ demand: Demand, follower: FollowerID,
        following status: SharedFetch?, then end: @escaping (Outcome) -> Void
    ) {
        if waiting[generation.id] != nil {
            status?.leave(follower)
            waiting[generation.id]?.append(end)
            return
        }
        let reader = CacheReader(
            generation, from: 0, to: generation.length, resource: resource, demand: demand.ofWhole, filler: loop,
            follower: follower, following: status)
        read(generation, of: resource, at: demand.url, by: reader, after: [], then: end)
    }

    /// The same where a reader of the whole has found what it begins with.
    /// - Parameters:
    ///   - reader: is finished here.
    ///   - beginning: what it has given.
    package func read(
        _ generation: Generation, of resource: OpenResource, at url: OriginURL, by reader: CacheReader,
        after beginning: [UInt8], then end: @escaping (Outcome) -> Void
    ) {
        if waiting[generation.id] != nil {
            reader.finish()
            waiting[generation.id]?.append(end)
            return
        }
        waiting[generation.id] = [end]
        let reading = PlaylistReading(
            generation, as: documentKey(generation.key, url), at: url, by: reader, after: beginning, on: loop,
            importing: shelf.parent(of: url)?.variables)
        reading.start { [self] outcome in
            take(outcome, generation, resource)
            for tell in waiting.removeValue(forKey: generation.id) ?? [] { tell(outcome) }
        }
    }

    private func take(_ outcome: Outcome, _ generation: Generation, _ resource: OpenResource) {
        switch outcome {
        case .document(let document): put(document, generation, resource)
        case .refused(_, let why):
            if refused.count >= Self.mostRefused { refused = [] }
            refused.insert(generation.id)
            loop.filler.logger.info("not read as a playlist: \(why)", metadata: ["resource": "\(generation.key.text)"])
        case .failed: break
        }
    }

    private func put(_ document: PlaylistDocument, _ generation: Generation, _ resource: OpenResource) {
        let former = shelf.document(document.key), now = Duration.seconds(loop.filler.now())
        let (whole, joined) = shelf.put(document, at: now)
        ahead.renewed(document.key, at: now)
        if whole != document.key { join([generation.key], to: whole) }
        join(joined, to: whole)
        if let former, document.isLive { demote(document.left(since: former, at: now)) }
        guard generation.key != document.key, generation.isStored else { return }
        // One state of a stream: nobody asks for it when the next is there.
        if let last = delivered[document.key], last.generation !== generation, former != nil {
            loop.filler.discard(last.generation, of: last.resource)
        }
        if delivered.count >= Self.mostRefused { delivered = [:] }
        delivered[document.key] = (resource, generation)
    }

    // MARK: What belongs together

    /// Something of a presentation is stored that was not known to belong to it.
    package func join(_ keys: [CacheKey], to whole: CacheKey) {
        perform(keys, "note what belongs to \(whole.text)") { store, keys throws(StoreError) in
            try store.join(keys, to: whole)
        }
    }

    /// A live stream has left these segments behind.
    private func demote(_ segments: [MediaSegment]) {
        let policy = loop.filler.policy.value
        // A file of which other ranges are listed stays.
        let keys = segments.filter { $0.range == nil }.compactMap(\.url).map { policy.resolve($0).key }
        perform(keys, "evict first what a stream has left") { store, keys throws(StoreError) in
            try store.demote(keys)
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

    /// Of what asks for one state of a live playlist, the playlist's.
    private func documentKey(_ key: CacheKey, _ url: OriginURL) -> CacheKey {
        let plain = url.withoutDeliveryDirectives
        return plain == url ? key : loop.filler.policy.value.resolve(plain).key
    }

    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as PlaylistError: error.description
        case ContentCoding.Problem.unknown(let coding): "its content coding \(coding.prefix(20)) is not known"
        case ContentCoding.Problem.tooLong: "it is longer than \(PlaylistLimits.bytes >> 20) MiB"
        default: "its content coding is broken"
        }
    }
}
