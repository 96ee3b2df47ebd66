import CachePolicy
import Glibc
import HTTPModel
import Synchronization

/// One version of a resource's bytes: a file and the state of its chunks (`ChunkTable`).
///
/// Loops and the store's threads use it concurrently. Its mutable state is behind a lock, in values without locks.
/// Under it, no other lock is taken, nothing is called and no disk is touched.
package final class Generation: Sendable {
    package let id: GenerationID
    package let key: CacheKey
    package let geometry: ChunkGeometry
    /// Where its bytes are. Reading from it is for who has found them by `acquire`.
    package let file: any GenerationBytes
    /// Whether it is stored on disk. Otherwise it is a pass-through buffer in memory.
    package let isStored: Bool
    private let ledger: CapacityLedger
    /// Whether its resource was pinned or downloaded when it was opened, and whether it was made hidden.
    private let wasKept: Bool, wasHidden: Bool
    let state: Mutex<State>
    /// What of the state is read without its lock: whether it is retired, and its length; -1 while unknown.
    private let retired = Atomic(false), knownLength: Atomic<Int64>
    private let knownBeginning = Atomic<Listing.Beginning>(.unknown)
    let unreadable = Atomic(false)

    /// - Parameters:
    ///   - chunks: the known chunks.
    ///   - isIndexed: whether the index has its row.
    ///   - isHidden: whether to hide it from look-ups until it is finished.
    ///   - isKept: whether its resource is pinned or downloaded.
    ///   - whole: the presentation that its resource is a part of.
    init(
        id: GenerationID, key: CacheKey, head: GenerationHead, chunks: ChunkTable, file: any GenerationBytes,
        ledger: CapacityLedger, isIndexed: Bool = false, isHidden: Bool = false, isKept: Bool = false,
        whole: CacheKey? = nil
    ) {
        (self.id, self.key, self.file, self.ledger) = (id, key, file, ledger)
        (geometry, isStored, wasKept, wasHidden) = (chunks.geometry, chunks.isStored, isKept, isHidden)
        knownLength = Atomic(chunks.length ?? -1)
        state = Mutex(
            State(
                chunks: chunks, news: .init(isIndexed: isIndexed, savedOverhead: chunks.overhead), head: head,
                isHidden: isHidden, whole: whole, isListed: !isIndexed, isNameSynced: isIndexed))
    }

    // MARK: State

    /// Reads or changes the state of its chunks.
    func withChunks<Value: Sendable>(_ body: (inout ChunkTable) -> Value) -> Value {
        state.withLock { body(&$0.chunks) }
    }

    /// What a response needs to know of a generation, at one moment.
    package struct Snapshot: Sendable {
        package let head: GenerationHead
        /// In bytes; nil while unknown.
        package let length: Int64?
        package let isRetired: Bool
        /// Whether its resource is pinned or downloaded.
        package let isKept: Bool
        /// Whether its resource is known to be a part of a presentation.
        package let isPart: Bool
    }

    /// Everything that a response needs, under a single lock.
    package var snapshot: Snapshot { state.withLock { snapshot(of: $0) } }

    func snapshot(of state: borrowing State) -> Snapshot {
        Snapshot(
            head: state.head, length: state.chunks.length, isRetired: state.isRetired,
            isKept: state.isKept ?? wasKept, isPart: state.whole != nil)
    }

    package var head: GenerationHead { state.withLock { $0.head } }

    /// In bytes; nil while unknown.
    package var length: Int64? {
        let length = knownLength.load(ordering: .acquiring)
        return length < 0 ? nil : length
    }

    package var isRetired: Bool { retired.load(ordering: .acquiring) }

    /// Whether its resource is pinned or downloaded.
    package var isKept: Bool { state.withLock { $0.isKept } ?? wasKept }

    func setKept(_ isKept: Bool) { state.withLock { $0.isKept = isKept } }

    /// The cache key of the presentation's first playlist, if its resource is known to be a part of one.
    package var whole: CacheKey? { state.withLock { $0.whole } }

    func setWhole(_ whole: CacheKey) { state.withLock { $0.whole = whole } }

    /// Changes the head after an answer from the origin. The next checkpoint saves it.
    /// - Parameter change: returns the new head for the current one.
    package func freshen(_ change: (GenerationHead) -> GenerationHead) {
        state.withLock { state in
            state.head = change(state.head)
            state.news.isHeadChanged = true
        }
    }

    /// Changes what is known from the bytes, or from the previous generation; this is not saved.
    package func setHead(_ change: (GenerationHead) -> GenerationHead) {
        state.withLock { $0.head = change($0.head) }
    }

    /// What the first bytes tell: known since they were written, or the file was opened; unknown if they are absent.
    package var beginning: Listing.Beginning { knownBeginning.load(ordering: .relaxed) }

    func begins(as beginning: Listing.Beginning) { knownBeginning.store(beginning, ordering: .relaxed) }

    /// Reads the first bytes from the file, and notes what they tell. May wait for the disk.
    /// - Parameter end: the end of those that are there.
    func lookAtBeginning(upTo end: Int64) {
        begins(as: file.beginning(upTo: end, isAll: end == length))
    }

    /// Whether the disk could not read some of it: requests go past it until the next start.
    package var isUnreadable: Bool { unreadable.load(ordering: .relaxed) }

    /// A copy of the chunks' state.
    var chunks: ChunkTable { state.withLock { $0.chunks } }

    /// Its memory usage, approximately.
    package var memoryBytes: Int { state.withLock { $0.memoryBytes } }

    // MARK: Presence

    /// How much of a range is present.
    package enum Coverage: Sendable { case whole, part, none }

    package func coverage(of range: Range<Int64>) -> Coverage { state.withLock { $0.chunks.coverage(of: range) } }

    /// The number of present bytes in a range, counted in whole chunks.
    package func presentBytes(of range: Range<Int64>) -> Int64 {
        state.withLock { $0.chunks.presentBytes(of: range) }
    }

    /// The first run of absent chunks that begins at or after the start of a range and touches it; nil if all are
    /// present.
    package func gap(in range: Range<Int64>) -> Range<Int64>? { state.withLock { $0.chunks.gap(in: range) } }

    package var isComplete: Bool { state.withLock { $0.chunks.isComplete } }

    /// Whether it is hidden from look-ups until it is finished.
    package var isHidden: Bool { wasHidden && state.withLock { $0.isHidden } }

    /// The present ranges, in order; nil while the length is unknown.
    var presentRanges: (length: Int64, present: [Range<Int64>])? { state.withLock { $0.chunks.presentRanges } }

    // MARK: Users

    /// Marks it as read or filled until `endUse`: it is not retired even if all of it is evicted.
    package func beginUse() { state.withLock { $0.usage.users += 1 } }

    package var isInUse: Bool { state.withLock { $0.usage.users > 0 } }

    package func endUse() { state.withLock { $0.usage.users -= 1 } }

    /// The same for a user that sends it to a player.
    package func beginReading() { state.withLock { $0.usage.beginReading() } }

    /// - Parameter range: what of it was played; empty for nothing.
    package func endReading(having range: Range<Int64> = 0..<0) {
        state.withLock { state in
            state.usage.endReading()
            state.news.played.insert(range)
        }
    }

    /// Whether it is being sent to a player.
    var isBeingRead: Bool { state.withLock { $0.usage.readers > 0 } }

    /// Whether somebody reads or fills it.
    var isNeeded: Bool { state.withLock { $0.isNeeded } }

    // MARK: Reading

    /// Finds the bytes that can be read at `offset`, and takes the lease that keeps them there.
    /// - Parameters:
    ///   - limit: the end of the result.
    ///   - lease: the current lease; replaced if the offset is in another extent and there are bytes.
    package func acquire(at offset: Int64, limit: Int64, lease: inout ExtentLease?) -> ExtentLease.Availability {
        let ordinal = geometry.extent(at: offset), holds = lease?.ordinal == ordinal, now = AccessClock.now()
        let found = state.withLock { $0.chunks.acquire(at: offset, leases: !holds, now: now) }
        guard case .bytes(let end) = found else { return found }
        // The old lease ends here, outside the lock that its end takes.
        if !holds { lease = ExtentLease(self, ordinal) }
        return .bytes(until: min(end, limit))
    }

    /// Takes a lease for a writer that is about to fill chunks of an extent. It lasts as long as the value.
    package func leaseForWriting(_ ordinal: Int) -> ExtentLease {
        state.withLock { $0.chunks.lease(ordinal) }
        return ExtentLease(self, ordinal)
    }

    /// Whether a range of one extent can be sent without waiting for the disk. The system is asked only every few
    /// seconds for each chunk.
    package func isResident(_ range: Range<Int64>) -> Bool {
        guard isStored else { return true }
        let touched = geometry.chunks(touching: range), ordinal = geometry.extent(ofChunk: touched.lowerBound)
        let part = geometry.part(of: touched, inExtent: ordinal), now = AccessClock.monotonic()
        if state.withLock({ $0.chunks.areResident(part, inExtent: ordinal, now: now) }) { return true }
        guard file.isResident(range) else { return false }
        state.withLock { state in
            // Remember only whole chunks: of others, just a part is known.
            guard geometry.roundedOut(range, length: state.chunks.length) == range else { return }
            state.chunks.noteResident(part, inExtent: ordinal, now: now, until: now + Self.residentMicroseconds)
        }
        return true
    }

    private static let residentMicroseconds: Int64 = 5_000_000

    /// Counts a request answered from here.
    package func countHit() { state.withLock { $0.news.hits += 1 } }

    // MARK: Filling

    /// - Returns: a number by which a writer claims chunks, and whether the file is listed as unfinished. The writer
    ///   uses the generation until it calls `endUse`.
    func beginWriting() -> (writer: Int, isListed: Bool) {
        state.withLock { state in
            state.usage.users += 1
            return (state.chunks.makeWriter(), state.isListed)
        }
    }

    /// Sets the length of a body of unknown length.
    func setLength(_ length: Int64) {
        let surplus = state.withLock { state in
            defer { knownLength.store(state.chunks.length ?? -1, ordering: .releasing) }
            return state.chunks.end(at: length)
        }
        if surplus > 0 { ledger.release(surplus) }
    }

    // MARK: Discarding and evicting

    /// Forgets bytes that all have read. Only for a generation that is not found any more: a buffer, or endless.
    /// - Returns: the bytes given back to the ledger.
    @discardableResult
    package func discard(below offset: Int64) -> Int64 {
        precondition(!isStored || isRetired)
        file.release(before: offset)
        let end = geometry.extent(at: offset)
        let dropped = state.withLock { $0.usage.holds == 0 ? $0.chunks.discard(before: end) : nil }
        // If the file system cannot punch holes, the blocks stay counted until the file is removed.
        guard let dropped,
            (try? file.punchHole(geometry.extentStart(dropped.lowerBound)..<geometry.extentStart(dropped.upperBound)))
                != nil
        else { return 0 }
        let freed = state.withLock { $0.chunks.endDiscard() }
        if freed > 0 { ledger.release(freed) }
        return freed
    }

    /// - Returns: the extent before the eviction, and the bytes of its blocks; nil if it is leased or being evicted,
    ///   the file is held, or a player reads what cannot be requested again (RFC 9110 §13.1.5).
    func beginEviction(ofExtent ordinal: Int) -> (Extent, Int64)? {
        state.withLock { state in
            guard state.usage.holds == 0, state.usage.readers == 0 || state.head.rangeCondition != nil else {
                return nil
            }
            return state.chunks.beginEviction(ofExtent: ordinal)
        }
    }

    /// - Returns: whether it was not retired before. A buffer never is.
    /// - Parameter onlyUnused: whether it stays if it has blocks or users.
    func retire(onlyUnused: Bool = false) -> Bool {
        isStored
            && state.withLock { state in
                defer { retired.store(state.isRetired, ordering: .releasing) }
                return (!onlyUnused || state.usage.users == 0 && state.chunks.isUnused) && state.retire()
            }
    }

    /// Drops what could not be read. Unless the file was cut short, its disk fails. Returns the error to report.
    package func noteUnreadable(_ range: Range<Int64>) -> StoreError {
        dropChunks(touching: range)
        if file.end >= range.upperBound { unreadable.store(true, ordering: .relaxed) }
        return .system(operation: "read", path: file.path, code: EIO)
    }

    /// Drops chunks that cannot be read: they are absent from now on.
    package func dropChunks(touching range: Range<Int64>) {
        let chunks = geometry.chunks(touching: range)
        for ordinal in Set(chunks.map { geometry.extent(ofChunk: $0) }) {
            _ = withChunks { $0.drop(geometry.part(of: chunks, inExtent: ordinal), ofExtent: ordinal) }
        }
    }

    /// Checks that the file still has its bytes up to `offset`. If somebody has cut it short, drops all chunks beyond
    /// its end: the next that is written would extend it, and what is between would be zeros.
    package func checkBytes(upTo offset: Int64) throws(StoreError) {
        let end = file.end
        guard end < offset else { return }
        dropChunks(touching: end..<max(offset, length ?? 0))
        throw .system(operation: "read to the end of", path: file.path, code: EIO)
    }

    /// Frees the blocks of unfinished chunks; only before closing, when nothing is written any more.
    func releaseResidue() {
        let (residue, length) = state.withLock { ($0.chunks.takeResidue(), $0.chunks.length) }
        for (ordinal, chunks) in residue {
            for run in chunks.runs where isPunched(geometry.bytes(of: run, inExtent: ordinal, length: length)) {
                let freed = geometry.blockBytes(of: Presence(run), inExtent: ordinal, length: length)
                state.withLock { $0.chunks.freed(freed) }
                ledger.release(freed)
            }
        }
    }

    private func isPunched(_ range: Range<Int64>) -> Bool { (try? file.punchHole(range)) != nil }

    /// Measures the file's overhead beside its chunks. On the store's queue.
    /// - Parameter isClosing: whether writing has ended.
    func countOverhead(isClosing: Bool = false) {
        // Measure first: chunks reserved meanwhile then make the overhead seem smaller, never larger.
        let taken = file.allocatedBytes
        let more = state.withLock { $0.chunks.countOverhead(taken: taken, isClosing: isClosing) }
        if more != 0 { ledger.adjust(by: more) }
    }

    /// The bytes that the ledger counts for it.
    var allocated: Int64 { state.withLock { $0.chunks.allocated } }

    // MARK: Saving

    /// Turns early checkpoints on or off: with them, less has to be fetched again after a crash.
    /// - Parameter isWanted: false takes back an earlier true.
    package func savesSoon(_ isWanted: Bool) { state.withLock { $0.news.eager += isWanted ? 1 : -1 } }

    /// Whether it cannot be found any more once it is closed.
    var isLeftover: Bool { state.withLock { $0.isLeftover } }

    /// The unsaved state; taken before the data is synced, so that it does not include later chunks.
    func takeUnsaved() -> IndexSaving.Update? {
        guard let update = state.withLock({ $0.takeUpdate(id, key, isSynced: true) }) else { return nil }
        // A row without any bytes would outlive its file.
        return update.extents.isEmpty && !update.wasIndexed ? nil : update
    }

    /// Changes beside new chunks and reads, if the index knows the generation.
    func takeChanges() -> IndexSaving.Update? {
        state.withLock { isStored && $0.isChanged ? $0.takeUpdate(id, key, isSynced: false) : nil }
    }

    /// What was read since the index was last told, if it knows the generation.
    func takeTouch(withResource: Bool) -> IndexSaving.Touch? {
        isStored ? state.withLock { $0.takeTouch(id, withResource: withResource) } : nil
    }

    /// Takes back a touch that could not be saved.
    func restore(_ touch: IndexSaving.Touch) { state.withLock { $0.restore(touch) } }

    /// Takes back an update that could not be saved.
    func restore(_ update: IndexSaving.Update) { state.withLock { $0.restore(update) } }

    /// Whether the index lacks present chunks of a range.
    func hasUnsaved(in range: Range<Int64>) -> Bool {
        !range.isEmpty && state.withLock { !$0.news.isIndexed || $0.chunks.hasUnsaved(in: range) }
    }
}
