import CachePolicy
import Glibc
import HTTPModel

/// Why a resource cannot be imported.
package enum ImportError: Error, Sendable, CustomStringConvertible {
    /// Part of the resource is cached already.
    case exists
    /// There is no room for it: everything else is pinned or in use.
    case noRoom
    /// The import had more or fewer bytes than announced.
    case wrongLength(expected: Int64, got: Int64)
    /// It exceeds `ChunkGeometry.longestBody`.
    case tooLong
    case store(StoreError)

    package var description: String {
        switch self {
        case .exists: "it is cached already, at least in part"
        case .noRoom: "the cache has no room for it, because everything in it is pinned or in use"
        case .wrongLength(let expected, let got): "expected \(expected) bytes, but got \(got)"
        case .tooLong: "it is longer than a cache can handle"
        case .store(let error): "\(error)"
        }
    }
}

/// An import, hidden from look-ups until it is finished. An unfinished import is discarded.
///
/// `@unchecked Sendable` because its single user makes the next call only after the last one has returned.
package final class Importer: @unchecked Sendable {
    private let generation: Generation
    private let writer: ChunkWriter
    private let store: CacheStore
    private let length: Int64
    private let replaces: Bool
    private var isOver = false

    /// - Parameters:
    ///   - fields: the header fields of its responses, such as `Content-Type`.
    ///   - replaces: whether to replace a cached resource; otherwise that is an error (`ImportError.exists`).
    package init(_ key: CacheKey, length: Int64, fields: HeaderFields, replaces: Bool, in store: CacheStore)
        throws(ImportError)
    {
        generation = try Self.generation(key, length: length, fields: fields, replaces: replaces, store)
        self.length = length
        self.replaces = replaces
        self.store = store
        writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: store)
    }

    /// - Returns: a hidden generation, which `finish` reveals.
    private static func generation(
        _ key: CacheKey, length: Int64, fields: HeaderFields, replaces: Bool, _ store: CacheStore
    ) throws(ImportError) -> Generation {
        let core = store.core
        guard (0...ChunkGeometry.longestBody).contains(length) else { throw .tooLong }
        do throws(StoreError) {
            // Fail before evicting everything in vain.
            guard length <= core.ledger.attainable(beside: try core.index.pins.pinnedBytes()) else {
                throw .system(operation: "reserve space for", path: key.text, code: ENOSPC)
            }
            let isOpen = core.open.newest(of: key) != nil, isIndexed = try core.index.listing.own(key) != nil
            if replaces || !isOpen && !isIndexed {
                let now = AccessClock.now() / 1_000_000
                let head = GenerationHead(
                    status: 200, fields: Self.fresh(fields, now: now), finalURL: key.text, storedAt: now)
                return try store.loader.make(key, head: head, length: length, isHidden: true)
            }
        } catch {
            if error.isShortageOfRoom { throw .noRoom }
            throw .store(error)
        }
        throw .exists
    }

    /// Keeps an import fresh for a year unless its fields say otherwise: the owner of the cache wants this file to be
    /// played.
    private static func fresh(_ fields: HeaderFields, now: Int64) -> HeaderFields {
        var fields = fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(now)) }
        if fields["Cache-Control"] == nil { fields.append("Cache-Control", "max-age=31536000, immutable") }
        return fields
    }

    deinit { cancel() }

    /// Writes the next bytes. Blocks until there is room for them.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(ImportError) {
        guard writer.position + Int64(bytes.count) <= length else {
            throw .wrongLength(expected: length, got: writer.position + Int64(bytes.count))
        }
        var taken = 0
        while taken < bytes.count {
            switch writer.append(UnsafeRawBufferPointer(rebasing: bytes[taken...])) {
            case .taken(let count): taken += count
            // Nobody else finds the file; if somebody did, this would wait for ever.
            case .met: throw .store(.system(operation: "write", path: generation.file.path, code: EBUSY))
            case .noRoom(let count):
                taken += count
                guard store.queue.sync({ $0.evictor.makeRoom() }) else { throw .noRoom }
            case .failed(let error): throw .store(error)
            }
        }
    }

    /// Completes the import: from now on requests find it.
    /// - Parameter isByHand: whether a person imports it: then no download that ends in vain takes it away.
    package func finish(isByHand: Bool = false) throws(ImportError) -> CachedResource {
        guard writer.position == length else { throw .wrongLength(expected: length, got: writer.position) }
        isOver = true
        do throws(ImportError) {
            let report = try store.queue.sync { work throws(ImportError) in try publish(work) }
            if isByHand {
                store.core.faults.report("note an import") { () throws(StoreError) in
                    try store.core.index.pins.noteByHand(generation.key)
                }
            }
            return report
        } catch {
            store.retire(generation)
            throw error
        }
    }

    /// Replaces the cached generation, once the import is durable. On the store's queue.
    private func publish(_ work: StoreWork) throws(ImportError) -> CachedResource {
        let previous = store.core.open.newest(of: generation.key)
        do throws(StoreError) {
            let isIndexed = try store.core.index.listing.own(generation.key) != nil
            if replaces || previous == nil && !isIndexed { return try publish(work, replacing: previous) }
        } catch { throw .store(error) }
        throw .exists
    }

    private func publish(_ work: StoreWork, replacing previous: Generation?) throws(StoreError) -> CachedResource {
        generation.state.withLock { $0.isHidden = false }
        _ = store.core.unsaved.add(generation)
        store.core.open.setNewest(generation.id, of: generation.key)
        work.checkpointer.checkpoint()
        guard generation.state.withLock({ $0.isSaved && $0.chunks.isComplete }),
            let report = try store.core.index.listing.resource(generation.key),
            try store.core.index.listing.own(generation.key)?.isComplete == true
        else {
            store.core.open.setNewest(previous?.id, of: generation.key)
            throw .index(detail: "the import could not be saved: see the log")
        }
        if let previous { store.retire(previous) }
        store.core.listeners.notifyChanged(generation.key, previous)
        store.core.listeners.notifyChangedByHand([generation.key])
        return report
    }

    /// Discards an unfinished import.
    package func cancel() {
        guard !isOver else { return }
        isOver = true
        writer.close()
        store.retire(generation)
    }
}
