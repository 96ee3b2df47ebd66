import CachePolicy
import Glibc
import HTTPModel

/// How an archive is imported.
package struct ArchiveOptions: Sendable {
    /// Whether what is pinned or downloaded in the archive becomes so here.
    package var keepsPins = true
    /// Whether the whole chunks of a resource stay whose rest does not come, if its validators let another archive
    /// continue them.
    package var keepsParts = false
    /// Whether a download of a resource has not ended.
    package var isBeingDownloaded: @Sendable (CacheKey) -> Bool

    package init(isBeingDownloaded: @escaping @Sendable (CacheKey) -> Bool = { _ in false }) {
        self.isBeingDownloaded = isBeingDownloaded
    }
}

/// Imports an archive that arrives in pieces. A resource of which nothing was cached is hidden until all of it has come;
/// one whose version is cached gets its absent chunks one by one.
///
/// It evicts only what was read before the resource that needs room. Damage ends it: resources before stay. If the
/// archive ends too early, so does what has come of its last resource, if that is wanted (`keepsParts`) and another
/// archive can continue it.
///
/// `@unchecked Sendable` because its single user makes the next call only after the last one has returned.
package final class ArchiveImport: @unchecked Sendable {
    private let store: CacheStore
    private let options: ArchiveOptions
    private let reader = ArchiveReader(now: AccessClock.now())
    private var current = Current.none
    /// Complete, but not visible yet: a checkpoint for each would take too long.
    private var finished = ArchivePublication()
    package private(set) var report = ArchiveReport()

    /// What happens with the resource that is being received.
    private enum Current {
        case none
        case passed
        /// - Parameter replaced: the cached version, which it replaces if that is still the current one by then.
        case hidden(ArchivedResource, ChunkFill, replaced: GenerationID?)
        case extended(ArchivedResource, ChunkFill)
    }

    init(_ store: CacheStore, _ options: ArchiveOptions) { (self.store, self.options) = (store, options) }

    deinit { cancel() }

    /// Takes the next bytes. Blocks. After an error, only `report` may be used.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        do throws(ArchiveError) {
            try reader.append(bytes) { event throws(ArchiveError) in try take(event) }
        } catch {
            end(keepsPart: false)
            throw error
        }
    }

    /// The input has ended.
    package func finish() throws(ArchiveError) -> ArchiveReport {
        do throws(ArchiveError) {
            try reader.finish()
            try publish()
        } catch {
            cancel()
            throw error
        }
        return report
    }

    /// No more will come. What came stays, except what could not be continued of a resource that is not complete.
    package func cancel() { end(keepsPart: options.keepsParts) }

    /// - Parameter keepsPart: whether nothing was wrong with what has come of the resource that is not complete. It counts
    ///   as a resource when its rest comes.
    private func end(keepsPart: Bool) {
        switch current {
        case .hidden(let resource, let fill, nil) where keepsPart && resource.isContinuable && fill.written > 0:
            fill.close()
            finished.add(resource, fill.generation, replaced: nil, bytes: fill.written, isPart: true)
        case .hidden(_, let fill, _): discard(fill)
        case .extended(_, let fill):
            fill.close()
            report.bytes +|= fill.written
        case .none, .passed: break
        }
        current = .none
        try? publish()
    }

    private func discard(_ fill: ChunkFill) {
        fill.close()
        store.retire(fill.generation)
    }

    // MARK: Events

    private func take(_ event: ArchiveReader.Event) throws(ArchiveError) {
        do throws(StoreError) {
            switch event {
            case .resource(let resource): try begin(resource)
            case .chunk(let number, let lastAccess, let bytes): try write(bytes, number, lastAccess)
            case .endOfResource: try end()
            case .end: break
            }
        } catch { throw .store(error) }
        if finished.isLarge { try publish() }
    }

    private func begin(_ resource: ArchivedResource) throws(StoreError) {
        // Only an archive that no export wrote names a resource twice.
        if finished.names(resource.key) { try publishNow() }
        let own = try store.administration.ownVersion(of: resource.key)
        switch ArchiveDecision(resource, own: own, isBeingDownloaded: options.isBeingDownloaded(resource.key)) {
        case .add, .replace: try beginHidden(resource, replaced: own?.id)
        case .extend: try beginExtending(resource)
        case .pass(let reason):
            if reason == .present { finished.keep(resource) }
            pass(reason)
        }
    }

    private func pass(_ reason: ArchiveDecision.Reason) {
        current = .passed
        switch reason {
        case .present: report.present += 1
        case .older: report.older += 1
        case .kept: report.kept += 1
        }
    }

    private func passForLackOfRoom() {
        current = .passed
        report.noRoom += 1
    }

    private func beginHidden(_ resource: ArchivedResource, replaced: GenerationID?) throws(StoreError) {
        guard try store.administration.couldHold(resource.bytesWithOverhead, readBefore: resource.lastAccess) else {
            return passForLackOfRoom()
        }
        // For the file itself, as much as a resource takes beside its chunks.
        let beside = resource.bytesWithOverhead -| resource.cached
        _ = store.queue.sync { $0.evictor.makeRoom(beside, readBefore: resource.lastAccess) }
        do throws(StoreError) {
            let generation = try store.loader.make(
                resource.key, head: resource.head, length: resource.length, isHidden: true, partOf: resource.whole,
                geometry: resource.geometry)
            current = .hidden(
                resource, ChunkFill(generation, resource, store), replaced: replaced)
        } catch {
            // A file system may not take a file of that length.
            guard case .system(_, _, let code) = error, [ENOSPC, EFBIG, EDQUOT].contains(code) else { throw error }
            passForLackOfRoom()
        }
    }

    private func beginExtending(_ resource: ArchivedResource) throws(StoreError) {
        guard let generation = try store.loader.load(resource.key), generation.length == resource.length,
            generation.geometry == resource.geometry
        else { return pass(.kept) }
        current = .extended(resource, ChunkFill(generation, resource, store))
    }

    private func write(_ bytes: UnsafeRawBufferPointer, _ chunk: Int, _ lastAccess: Int64) throws(StoreError) {
        switch current {
        case .none, .passed: return
        case .hidden(_, let fill, _):
            guard try !fill.write(bytes, chunk: chunk, lastAccess: lastAccess) else { return }
            discard(fill)
            passForLackOfRoom()
        case .extended(_, let fill):
            guard try !fill.write(bytes, chunk: chunk, lastAccess: lastAccess) else { return }
            fill.close()
            guard fill.written > 0 else { return passForLackOfRoom() }
            countExtended(fill)
            current = .passed
        }
    }

    private func end() throws(StoreError) {
        switch current {
        case .none, .passed: break
        case .hidden(let resource, let fill, let replaced):
            fill.close()
            // Its chunks may have been evicted after its head was written.
            guard fill.written > 0 else {
                discard(fill)
                break
            }
            finished.add(resource, fill.generation, replaced: replaced, bytes: fill.written)
        case .extended(let resource, let fill):
            fill.close()
            finished.keep(resource)
            countExtended(fill)
        }
        current = .none
    }

    private func countExtended(_ fill: ChunkFill) {
        report.extended += 1
        report.bytes +|= fill.written
    }

    /// Makes what is complete durable and visible.
    private func publish() throws(ArchiveError) {
        do throws(StoreError) { try publishNow() } catch { throw .store(error) }
    }

    private func publishNow() throws(StoreError) {
        var work = finished
        finished = ArchivePublication()
        try work.publish(store, &report)
        if options.keepsPins { try work.keep(store.administration) }
    }
}
