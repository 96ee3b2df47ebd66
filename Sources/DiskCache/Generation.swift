import CachePolicy
import HTTPModel
import Synchronization

/// One version of a resource's bytes: a file, and what is known of its chunks (`ChunkTable`).
///
/// Loops and the store's threads use it at once: what changes is inside its lock, and in values that know no lock. No
/// other lock is taken, nothing is called and no disk is touched under it.
package final class Generation: Sendable {
    package let id: GenerationID
    package let key: CacheKey
    package let geometry: ChunkGeometry
    let file: any GenerationBytes
    /// Whether this generation is kept on disk; else it is a buffer in memory, for bytes that pass through.
    package let isStored: Bool
    private let ledger: CapacityLedger
    /// Whether somebody had pinned or downloaded its resource when it was opened.
    private let wasKept: Bool
    private let state: Mutex<GenerationState>
    private let firstByte = Atomic<Beginning>(.unknown)

    /// - Parameters:
    ///   - chunks: what is there of it.
    ///   - isIndexed: whether the index has its row.
    ///   - isHidden: whether nobody is to find it before it is finished.
    ///   - isKept: whether somebody has pinned or downloaded its resource.
    ///   - whole: the presentation that its resource is a part of.
    init(
        id: GenerationID, key: CacheKey, head: GenerationHead, chunks: ChunkTable, file: any GenerationBytes,
        ledger: CapacityLedger, isIndexed: Bool = false, isHidden: Bool = false, isKept: Bool = false,
        whole: CacheKey? = nil
    ) {
        (self.id, self.key, self.file, self.ledger) = (id, key, file, ledger)
        (geometry, isStored, wasKept) = (chunks.geometry, chunks.isStored, isKept)
        state = Mutex(
            GenerationState(
                chunks: chunks, news: .init(isIndexed: isIndexed, savedOverhead: chunks.overhead), head: head,
                isHidden: isHidden, whole: whole, isListed: !isIndexed, isNameSynced: isIndexed))
    }

    /// Larger ones are not kept, and not passed on through memory: their numbers would not be believed.
    package static let longest: Int64 = 1 << 40

    // MARK: What it is

    /// What an answer has to know of a generation, as it was at one moment.
    package struct Snapshot: Sendable {
        package let head: GenerationHead
        /// In bytes; nil while unknown.
        package let length: Int64?
        package let isRetired: Bool
        /// Whether somebody has pinned or downloaded its resource.
        package let isKept: Bool
    }

    /// All that an answer asks, at the cost of one question.
    package var snapshot: Snapshot { state.withLock { snapshot(of: $0) } }

    private func snapshot(of state: borrowing GenerationState) -> Snapshot {
        Snapshot(
            head: state.head, length: state.chunks.length, isRetired: state.isRetired,
            isKept: state.isKept ?? wasKept)
    }

    package var head: GenerationHead { state.withLock { $0.head } }

    /// In bytes; nil while unknown.
    package var length: Int64? { state.withLock { $0.chunks.length } }

    package var isRetired: Bool { state.withLock { $0.isRetired } }

    /// Whether somebody has pinned or downloaded its resource.
    package var isKept: Bool { state.withLock { $0.isKept } ?? wasKept }

    func setKept(_ isKept: Bool) { state.withLock { $0.isKept = isKept } }

    /// What the index had just after it was registered; what was said meanwhile is newer.
    func startKept(_ isKept: Bool) { state.withLock { $0.isKept = $0.isKept ?? isKept } }

    /// The presentation that its resource is a part of, as far as that is known: the cache key of its first playlist.
    package var whole: CacheKey? { state.withLock { $0.whole } }

    func setWhole(_ whole: CacheKey) { state.withLock { $0.whole = whole } }

    /// The origin has said something of it. The index is told at the next checkpoint.
    /// - Parameter change: makes the head that takes the place of the one that it gets.
    package func freshen(_ change: (GenerationHead) -> GenerationHead) {
        state.withLock { state in
            state.head = change(state.head)
            state.news.isHeadChanged = true
        }
    }

    /// What its bytes, or the generation before it, have told of it: nothing that the index keeps.
    package func setHead(_ change: (GenerationHead) -> GenerationHead) {
        state.withLock { $0.head = change($0.head) }
    }

    /// What its first byte tells: a text, such as a playlist, or what cannot be one.
    package enum Beginning: UInt8, Sendable, AtomicRepresentable { case unknown, text, other }

    /// Known once the first byte has been written or looked at.
    package var beginning: Beginning { firstByte.load(ordering: .relaxed) }

    /// - Parameter byte: its first.
    package func begins(with byte: UInt8) {
        firstByte.store(PlaylistKind.mayBegin(with: byte) ? .text : .other, ordering: .relaxed)
    }

    /// What is known of its chunks at this moment.
    var chunks: ChunkTable { state.withLock { $0.chunks } }

    /// About what it holds in memory.
    package var memoryBytes: Int { state.withLock { $0.memoryBytes } }

    // MARK: What is there

    /// How much of a range is present.
    package enum Coverage: Sendable { case whole, part, none }

    package func coverage(of range: Range<Int64>) -> Coverage { state.withLock { $0.chunks.coverage(of: range) } }

    /// How many bytes of a range are present, in whole chunks.
    package func presentBytes(of range: Range<Int64>) -> Int64 {
        state.withLock { $0.chunks.presentBytes(of: range) }
    }

    /// The first absent run that begins at or after the start of a range and touches it, in whole chunks; nil where all
    /// is present.
    package func gap(in range: Range<Int64>) -> Range<Int64>? { state.withLock { $0.chunks.gap(in: range) } }

    var isComplete: Bool { state.withLock { $0.chunks.isComplete } }

    /// What is present, in order; nil while the length is unknown.
    var presentRanges: (length: Int64, present: [Range<Int64>])? { state.withLock { $0.chunks.presentRanges } }

    // MARK: Who has it in hand

    /// From here to `endUse` somebody reads or fills it: it is not given up even when all of it is evicted.
    package func beginUse() { state.withLock { $0.usage.users += 1 } }

    package var isInUse: Bool { state.withLock { $0.usage.users > 0 } }

    package func endUse() { state.withLock { $0.usage.users -= 1 } }

    /// The same for who gives it to a player.
    /// - Returns: how it is from here on.
    @discardableResult
    package func beginReading() -> Snapshot {
        state.withLock { state in
            state.usage.users += 1
            state.usage.readers += 1
            return snapshot(of: state)
        }
    }

    package func endReading() {
        state.withLock { state in
            state.usage.users -= 1
            state.usage.readers -= 1
        }
    }

    /// Whether it is being given to a player.
    var isBeingRead: Bool { state.withLock { $0.usage.readers > 0 } }

    /// The same for who is told its file's name.
    func beginHold() {
        state.withLock { state in
            state.usage.users += 1
            state.usage.holds += 1
        }
    }

    func endHold() {
        state.withLock { state in
            state.usage.users -= 1
            state.usage.holds -= 1
        }
    }

    /// Whether somebody has been told its file's name.
    var isHeld: Bool { state.withLock { $0.usage.holds > 0 } }

    /// Whether somebody reads or fills it.
    var isNeeded: Bool { state.withLock { $0.isNeeded } }

    // MARK: Reading

    /// Looks what can be read at `offset`, and takes the lease that keeps it there.
    /// - Parameters:
    ///   - limit: the answer goes no further.
    ///   - lease: the lease held so far; replaced when the offset is in another extent and something is there.
    package func acquire(at offset: Int64, limit: Int64, lease: inout ExtentLease?) -> Availability {
        let ordinal = geometry.extent(at: offset), holds = lease?.ordinal == ordinal, now = AccessClock.now()
        let found = state.withLock { $0.chunks.acquire(at: offset, leases: !holds, now: now) }
        guard case .bytes(let end) = found else { return found }
        // The old lease ends here, outside of the lock that its end takes.
        if !holds { lease = ExtentLease(self, ordinal) }
        return .bytes(until: min(end, limit))
    }

    /// Takes a lease for a writer that is about to fill chunks of an extent. Its hold counts until the value ends.
    package func leaseForWriting(_ ordinal: Int) -> ExtentLease {
        state.withLock { $0.chunks.lease(ordinal) }
        return ExtentLease(self, ordinal)
    }

    /// For `ExtentLease` alone.
    func endLease(_ ordinal: Int) { state.withLock { $0.chunks.endLease(ordinal) } }

    /// The bytes around an offset that `acquire` found, for the kernel only.
    package func mapping(at offset: Int64) throws(StoreError) -> MappedBytes { try file.mapping(at: offset) }

    /// As `mapping`; nil the first time that something is wanted there: `readAtOnce` costs less then.
    package func mappingOfSecondUse(at offset: Int64) throws(StoreError) -> MappedBytes? {
        try file.mappingOfSecondUse(at: offset)
    }

    /// Copies bytes that `acquire` found, where that takes no time.
    /// - Returns: whether it did.
    package func readAtOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Bool {
        file.readAtOnce(into: buffer, at: offset)
    }

    /// Of its file; nil for a buffer in memory.
    package var descriptor: Int32? { file.descriptor }

    /// Whether a range of one extent can be sent without waiting for the disk. The system is asked for each chunk every
    /// few seconds only.
    package func isResident(_ range: Range<Int64>) -> Bool {
        guard isStored else { return true }
        let touched = geometry.chunks(touching: range), ordinal = geometry.extent(ofChunk: touched.lowerBound)
        let part = geometry.part(of: touched, inExtent: ordinal), now = AccessClock.now()
        if state.withLock({ $0.chunks.areResident(part, inExtent: ordinal, now: now) }) { return true }
        guard file.isResident(range) else { return false }
        state.withLock { state in
            // Noted only where the range is made of whole chunks: of others a part is known.
            guard geometry.roundedOut(range, length: state.chunks.length) == range else { return }
            state.chunks.noteResident(part, inExtent: ordinal, now: now, until: now + Self.residentMicroseconds)
        }
        return true
    }

    private static let residentMicroseconds: Int64 = 5_000_000

    /// Counts a request that was answered from here.
    package func countHit() { state.withLock { $0.news.hits += 1 } }

    /// Counts all that is present as read at a time, in microseconds since 1970.
    func touch(at time: Int64) { state.withLock { $0.chunks.touchAll(at: time) } }

    func touch(_ ordinal: Int, at time: Int64) { state.withLock { $0.chunks.touch(ordinal, at: time) } }

    // MARK: Filling

    /// - Returns: a number by which a writer claims chunks. The writer uses the generation until it says `endUse`.
    func beginWriting() -> Int {
        state.withLock { state in
            state.usage.users += 1
            return state.chunks.makeWriter()
        }
    }

    func claim(_ chunk: Int, by writer: Int) -> ChunkTable.ClaimResult {
        state.withLock { $0.chunks.claim(chunk, by: writer) }
    }

    func claimWithBlocks(_ chunk: Int, by writer: Int, bytes: Int64) -> Bool {
        state.withLock { $0.chunks.claimWithBlocks(chunk, by: writer, bytes: bytes) }
    }

    func advance(_ writer: Int, to frontier: Int64) { state.withLock { $0.chunks.advance(writer, to: frontier) } }

    func complete(_ chunk: Int, by writer: Int, checksum: UInt64) {
        state.withLock { $0.chunks.complete(chunk, by: writer, checksum: checksum, now: AccessClock.now()) }
    }

    func abandon(_ chunk: Int, by writer: Int) { state.withLock { $0.chunks.abandon(chunk, by: writer) } }

    /// The end of a body of unknown length was seen.
    func setLength(_ length: Int64) {
        let surplus = state.withLock { $0.chunks.end(at: length) }
        if surplus > 0 { ledger.release(surplus) }
    }

    // MARK: What goes

    /// Forgets bytes that everyone has passed, of a generation that nobody will find again: a buffer, or a stream
    /// without end.
    /// - Returns: the bytes given back to the ledger.
    @discardableResult
    package func discard(below offset: Int64) -> Int64 {
        precondition(!isStored || isRetired)
        let end = geometry.extent(at: offset)
        let dropped = state.withLock { $0.usage.holds == 0 ? $0.chunks.discard(before: end) : nil }
        // Where the file system cannot do this, the blocks stay counted until the file goes.
        guard let dropped,
            (try? file.punchHole(geometry.extentStart(dropped.lowerBound)..<geometry.extentStart(dropped.upperBound)))
                != nil
        else { return 0 }
        let freed = state.withLock { $0.chunks.endDiscard() }
        if freed > 0 { ledger.release(freed) }
        return freed
    }

    /// - Returns: the extent as it was and the bytes of its blocks; nil where it is leased or being evicted, or the
    ///   file is lent.
    func beginEviction(ofExtent ordinal: Int) -> (Extent, Int64)? {
        state.withLock { $0.usage.holds == 0 ? $0.chunks.beginEviction(ofExtent: ordinal) : nil }
    }

    func cancelEviction(ofExtent ordinal: Int, restoring extent: Extent) {
        state.withLock { $0.chunks.cancelEviction(ofExtent: ordinal, restoring: extent) }
    }

    func endEviction(ofExtent ordinal: Int, bytes: Int64, isPunched: Bool) {
        state.withLock { $0.chunks.endEviction(ofExtent: ordinal, bytes: bytes, isPunched: isPunched) }
    }

    /// - Returns: whether it was not retired before. A buffer never is.
    func retire() -> Bool { isStored && state.withLock { $0.retire() } }

    func retireIfUnused() -> Bool { state.withLock { $0.retireIfUnused() } }

    /// Chunks that cannot be read are absent from now on.
    package func dropChunks(touching range: Range<Int64>) {
        let chunks = geometry.chunks(touching: range)
        for ordinal in Set(chunks.map { geometry.extent(ofChunk: $0) }) {
            _ = drop(geometry.part(of: chunks, inExtent: ordinal), ofExtent: ordinal)
        }
    }

    /// - Returns: how many of the chunks were present, and are no longer.
    func drop(_ chunks: Presence, ofExtent ordinal: Int) -> Int {
        state.withLock { $0.chunks.drop(chunks, ofExtent: ordinal) }
    }

    /// Gives back the blocks of chunks that were begun and will not be finished: before closing, when nothing is
    /// written any more.
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

    /// What the file takes beside its chunks is counted by what it really takes. On the store's queue.
    /// - Parameter isClosing: nobody writes any more.
    func countOverhead(isClosing: Bool = false) {
        // Asked first: what is reserved meanwhile then makes it seem less, never more.
        let taken = file.allocatedBytes
        let more = state.withLock { $0.chunks.countOverhead(taken: taken, isClosing: isClosing) }
        if more != 0 { ledger.adjust(by: more) }
    }

    /// What the ledger counts for it.
    var allocated: Int64 { state.withLock { $0.chunks.allocated } }

    // MARK: Verification

    func unverified(ofExtent ordinal: Int) -> Presence { state.withLock { $0.chunks.unverified(ofExtent: ordinal) } }

    /// The extents that have chunks to be verified, and how often something was lost until now.
    var unverifiedExtents: (ordinals: [Int], losses: Int) {
        state.withLock { ($0.chunks.unverifiedExtents, $0.chunks.losses) }
    }

    func endVerification(of verified: Presence, bad: Presence, inExtent ordinal: Int) -> Int {
        state.withLock { $0.chunks.endVerification(of: verified, bad: bad, inExtent: ordinal) }
    }

    func distrust(_ bad: Presence, ofExtent ordinal: Int) {
        state.withLock { $0.chunks.distrust(bad, ofExtent: ordinal) }
    }

    /// Whether it was replaced, or lost something since `losses` was told.
    func isLost(since losses: Int) -> Bool { state.withLock { $0.isRetired || $0.chunks.losses != losses } }

    /// Whether all that is present is known to be what was written.
    var isTrusted: Bool { state.withLock { $0.chunks.isTrusted } }

    // MARK: What the index is told

    /// Whether nobody will find it again once it is closed.
    var isLeftover: Bool { state.withLock { $0.isLeftover } }

    var isHidden: Bool { state.withLock { $0.isHidden } }

    /// It is finished: it may be found from now on.
    func reveal() { state.withLock { $0.isHidden = false } }

    /// What the index has to be told; taken before the data is synced, so that it speaks of no later chunk.
    func takeUnsaved() -> CacheIndex.Update? {
        guard let update = state.withLock({ $0.takeUpdate(id, key, isSynced: true) }) else { return nil }
        // A row that speaks of no byte would outlive its file.
        return update.extents.isEmpty && !update.wasIndexed ? nil : update
    }

    /// Changed orders of last reads, of a generation that the index knows already.
    func takeTouches() -> CacheIndex.Update? {
        state.withLock { isStored && $0.isTouched ? $0.takeUpdate(id, key, isSynced: false) : nil }
    }

    /// The index could not be told.
    func restore(_ update: CacheIndex.Update) { state.withLock { $0.restore(update) } }

    /// What the file takes beside its chunks, as the index is about to be told.
    func overheadToSave() -> Int64 {
        state.withLock { state in
            state.news.savedOverhead = state.chunks.overhead
            return state.chunks.overhead
        }
    }

    /// The chunks that the index knows, and that are still the same.
    func saved(ofExtent ordinal: Int) -> Presence { state.withLock { $0.chunks.saved(ofExtent: ordinal) } }

    /// Whether the index knows all of it.
    var isSaved: Bool { state.withLock { $0.isSaved && $0.chunks.isComplete } }

    /// Whether the index does not know of all that is present of a range.
    func hasUnsaved(in range: Range<Int64>) -> Bool {
        !range.isEmpty && state.withLock { !$0.news.isIndexed || $0.chunks.hasUnsaved(in: range) }
    }

    /// Whether it is to be saved soon.
    var isEager: Bool { state.withLock { $0.news.eager > 0 } }

    /// - Parameter isWanted: false takes back what was wanted before.
    func saveSoon(_ isWanted: Bool) { state.withLock { $0.news.eager += isWanted ? 1 : -1 } }

    /// Whether this session's list of unfinished files names its file.
    var isListed: Bool { state.withLock { $0.isListed } }

    func noteListed() { state.withLock { $0.isListed = true } }

    /// Whether its file's name is durable.
    var isNameSynced: Bool { state.withLock { $0.isNameSynced } }

    func noteNameSynced() { state.withLock { $0.isNameSynced = true } }
}
