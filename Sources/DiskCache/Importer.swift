import CachePolicy
import Dispatch

/// Why a resource cannot be taken in from elsewhere.
package enum ImportError: Error, Sendable, CustomStringConvertible {
    /// Something of that resource is cached already.
    case exists
    /// The limit leaves no room for it, as what is there is pinned or in use.
    case noRoom
    /// More or fewer bytes came than were announced.
    case wrongLength(expected: Int64, got: Int64)
    /// More than can be handled.
    case tooLong
    case store(StoreError)

    package var description: String {
        switch self {
        case .exists: "something of it is cached already"
        case .noRoom: "the cache has no room for it, as what is there is pinned or in use"
        case .wrongLength(let expected, let got): "\(expected) bytes were announced, \(got) came"
        case .tooLong: "it is longer than a cache can handle"
        case .store(let error): "\(error)"
        }
    }
}

/// A resource on its way in, found by nobody before it is finished. What is not finished is gone.
///
/// `@unchecked Sendable` because its one user makes the next call only when the last has returned.
package final class Importer: @unchecked Sendable {
    private let generation: Generation
    private let writer: ChunkWriter
    private let store: CacheStore
    private let length: Int64
    private let replaces: Bool
    private var isOver = false

    init(_ generation: Generation, length: Int64, replaces: Bool, _ store: CacheStore) {
        self.generation = generation
        self.length = length
        self.replaces = replaces
        self.store = store
        writer = store.writer(generation, at: 0, stopsAtPresent: false)
    }

    deinit { cancel() }

    /// Takes the next bytes. Blocks until there is room for them.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(ImportError) {
        guard writer.position + Int64(bytes.count) <= length else {
            throw .wrongLength(expected: length, got: writer.position + Int64(bytes.count))
        }
        var taken = 0
        while taken < bytes.count {
            switch writer.append(UnsafeRawBufferPointer(rebasing: bytes[taken...])) {
            case .taken(let count), .met(let count): taken += count
            case .noRoom(let count):
                taken += count
                guard store.queue.sync({ $0.evictor.makeRoom() }) else { throw .noRoom }
            case .failed(let error): throw .store(error)
            }
        }
    }

    /// All bytes have come: from here on requests find it.
    package func finish() throws(ImportError) -> ResourceReport {
        guard writer.position == length else { throw .wrongLength(expected: length, got: writer.position) }
        isOver = true
        do throws(ImportError) {
            return try store.queue.sync { work throws(ImportError) in try publish(work) }
        } catch {
            store.retire(generation)
            throw error
        }
    }

    /// Takes the place of what is there, once all of it is durable. On the store's queue.
    private func publish(_ work: StoreWork) throws(ImportError) -> ResourceReport {
        let previous = store.core.open.newest(of: generation.key)
        do throws(StoreError) {
            let isIndexed = try store.index.listing.own(generation.key) != nil
            if replaces || previous == nil && !isIndexed { return try publish(work, replacing: previous) }
        } catch { throw .store(error) }
        throw .exists
    }

    private func publish(_ work: StoreWork, replacing previous: Generation?) throws(StoreError) -> ResourceReport {
        generation.reveal()
        _ = store.core.unsaved.add(generation)
        store.core.open.setNewest(generation.id, of: generation.key)
        work.checkpointer.checkpoint()
        guard generation.isSaved, let report = try store.index.listing.resource(generation.key),
            try store.index.listing.own(generation.key)?.isComplete == true
        else {
            store.core.open.setNewest(previous?.id, of: generation.key)
            throw .index(detail: "what was taken in could not be saved; the log says why")
        }
        if let previous { store.retire(previous) }
        store.core.listeners.tellChanged(generation.key, previous)
        return report
    }

    /// Not to be finished: its bytes go.
    package func cancel() {
        guard !isOver else { return }
        isOver = true
        writer.close()
        store.retire(generation)
    }
}
