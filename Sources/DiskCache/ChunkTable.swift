import CachePolicy
import HTTPModel

/// Tracks the chunks of a generation: which are in its file, who fills and who needs them, and their disk usage. A
/// value without lock, clock or disk; `Generation` holds the lock.
///
/// - *present*: the whole chunk is in the file. *Claimed*: a writer is filling it, and readers may follow up to its
///   *frontier*. *Residue*: it has blocks without being present.
/// - *leased*: the extent must stay, and the evictor skips it.
///
/// Sizes and offsets are in bytes, times in microseconds since 1970.
struct ChunkTable: Sendable {
    let geometry: ChunkGeometry
    /// Whether the chunks are on the disk. Otherwise they pass through memory, and are neither counted nor saved.
    let isStored: Bool
    /// Whether absent chunks before others take no blocks.
    private let keepsHoles: Bool
    /// nil until the end of a body of unknown length is known.
    private(set) var length: Int64?
    private(set) var extents: ExtentTable
    /// One for each writer at work; most files have one at a time.
    private var claims: [Claim] = []
    private var lastWriter = 0
    /// The number of absent chunks; 0 means complete. Meaningless while the length is unknown.
    private(set) var absentCount = 0
    /// The bytes that the ledger counts for this generation.
    private(set) var allocated: Int64
    /// Of these, the file's overhead beside its chunks: at least `CapacityLedger.fileOverhead`.
    private(set) var overhead: Int64
    /// Of these, the bytes that `discard` has yet to give back.
    private var discarded: Int64 = 0
    /// How often present chunks turned out to be damaged.
    private(set) var losses = 0
    /// Whether the file was unchanged since this store sealed it when it was opened. If not, it is sealed only once all
    /// of it is verified.
    private var wasSealed: Bool

    /// The chunk that a writer is filling.
    private struct Claim {
        let writer: Int
        let chunk: Int
        var frontier: Int64
        /// Whether the disk may have lost what was written of it.
        var isLost = false
    }

    /// - Parameters:
    ///   - extents: those that the index knows.
    ///   - overhead: the file's overhead beside its chunks.
    init(
        _ geometry: ChunkGeometry, length: Int64?, isStored: Bool, extents: ExtentTable = ExtentTable(),
        overhead: Int64 = CapacityLedger.fileOverhead, wasSealed: Bool = true, keepsHoles: Bool = true
    ) {
        (self.geometry, self.length, self.isStored, self.keepsHoles) = (geometry, length, isStored, keepsHoles)
        (self.extents, self.wasSealed) = (extents, wasSealed)
        self.overhead = isStored ? overhead : 0
        allocated = self.overhead
        guard let length else { return }
        allocated += blockBytes(\.hasBlocks)
        countAbsent(of: length)
    }

    private mutating func countAbsent(of length: Int64) {
        absentCount = geometry.chunkCount(length: length) - extents.values.reduce(0) { $0 + $1.present.count }
    }

    /// The disk usage of selected chunks of all extents.
    private func blockBytes(_ chunks: (Extent) -> Presence) -> Int64 {
        extents.entries.reduce(0) { $0 + geometry.blockBytes(of: chunks($1.1), inExtent: $1.0, length: length) }
    }

    // MARK: Presence

    /// Whether the length is known and all chunks are present.
    var isComplete: Bool { length != nil && absentCount == 0 }

    /// Whether no chunk is present.
    var isEmpty: Bool { extents.values.allSatisfy(\.present.isEmpty) }

    func coverage(of range: Range<Int64>) -> Generation.Coverage {
        guard !range.isEmpty, !isComplete else { return .whole }
        let chunks = geometry.chunks(touching: range), end = chunks.upperBound
        guard extents.nextPresent(from: chunks.lowerBound, limit: end) < end else { return .none }
        return extents.nextAbsent(from: chunks.lowerBound, limit: end) == end ? .whole : .part
    }

    /// The maximal runs of present chunks within a run of the resource's chunks, in order.
    private func runs(within chunks: Range<Int>) -> some Sequence<Range<Int>> {
        sequence(state: chunks.lowerBound) { chunk -> Range<Int>? in
            let first = extents.nextPresent(from: chunk, limit: chunks.upperBound)
            guard first < chunks.upperBound else { return nil }
            chunk = extents.nextAbsent(from: first, limit: chunks.upperBound)
            return first..<chunk
        }
    }

    /// The number of present bytes in a range, counted in whole chunks.
    func presentBytes(of range: Range<Int64>) -> Int64 {
        if let length, absentCount == 0 { return Int64(range.clamped(to: 0..<length).count) }
        return runs(within: geometry.chunks(touching: range)).reduce(0) {
            $0 + Int64(geometry.bytes(ofChunks: $1, length: length).clamped(to: range).count)
        }
    }

    /// The present ranges, in order; nil while the length is unknown.
    var presentRanges: (length: Int64, present: [Range<Int64>])? {
        length.map { length in
            let runs = runs(within: 0..<geometry.chunkCount(length: length))
            return (length, runs.map { geometry.bytes(ofChunks: $0, length: length) })
        }
    }

    /// The first run of absent chunks that begins at or after the start of a range and touches it; nil if all are
    /// present.
    func gap(in range: Range<Int64>) -> Range<Int64>? {
        let chunks = geometry.chunks(touching: range)
        let first = extents.nextAbsent(from: chunks.lowerBound, limit: chunks.upperBound)
        guard first < chunks.upperBound else { return nil }
        let end = extents.nextPresent(from: first, limit: chunks.upperBound)
        let bytes = geometry.chunkStart(first)..<geometry.chunkStart(end)
        return length.map { bytes.clamped(to: 0..<$0) } ?? bytes
    }

    // MARK: Reading

    /// Finds the bytes that can be read at `offset`, and counts the extent as read.
    /// - Parameters:
    ///   - leases: whether to take a lease of the extent, if there are bytes.
    ///   - now: the time of the read.
    mutating func acquire(at offset: Int64, leases: Bool, now: Int64) -> ExtentLease.Availability {
        let ordinal = geometry.extent(at: offset)
        let found = available(at: offset, in: extents[ordinal])
        if case .bytes = found { extents[ordinal].wasRead(at: now, isLeased: leases) }
        return found
    }

    // Inlined, as otherwise the table and the extent are copied for it.
    @inline(__always)
    private func available(at offset: Int64, in extent: Extent) -> ExtentLease.Availability {
        guard !extent.isEvicting else { return .absent }
        let chunk = geometry.chunk(at: offset), bit = geometry.bit(ofChunk: chunk)
        guard extent.present.contains(bit) else {
            let claim = claims.first { $0.chunk == chunk && $0.frontier > offset }
            return claim.map { .bytes(until: $0.frontier) } ?? .absent
        }
        let run = extent.present.subtracting(extent.unverified).runOfPresent(from: bit)
        guard run > 0 else { return .unverified }
        return .bytes(until: geometry.chunkBytes(chunk + run - 1, length: length).upperBound)
    }

    /// Takes a lease of an extent; `endLease` gives it back.
    mutating func lease(_ ordinal: Int) { extents[ordinal].leases += 1 }

    mutating func endLease(_ ordinal: Int) { extents[ordinal].leases -= 1 }

    /// Whether any extent is leased.
    var isLeased: Bool { extents.values.contains { $0.leases > 0 } }

    /// Whether chunks of an extent were in memory when last asked, a short time ago.
    /// - Parameter now: by the monotonic clock.
    func areResident(_ chunks: Presence, inExtent ordinal: Int, now: Int64) -> Bool {
        let extent = extents[ordinal]
        return extent.residentUntil > now && extent.resident.isSuperset(of: chunks)
    }

    /// Records chunks of an extent that are in memory. The first ones determine until when this is believed of all.
    mutating func noteResident(_ chunks: Presence, inExtent ordinal: Int, now: Int64, until end: Int64) {
        let known = extents[ordinal].residentUntil > now ? extents[ordinal].resident : Presence()
        extents[ordinal].resident = known.union(chunks)
        if known.isEmpty { extents[ordinal].residentUntil = end }
    }

    /// Counts an extent as read.
    mutating func touch(_ ordinal: Int, at time: Int64) {
        extents[ordinal].wasRead(at: time, isLeased: false)
    }

    /// Counts all present chunks as read.
    mutating func touchAll(at time: Int64) {
        for ordinal in extents.ordinals where !extents[ordinal].present.isEmpty { touch(ordinal, at: time) }
    }

    /// The clock was set back: nothing was read in the future.
    mutating func endFuture(at now: Int64) {
        for ordinal in extents.ordinals where extents[ordinal].lastAccess > now { extents[ordinal].lastAccess = now }
    }

    // MARK: Filling

    /// A number by which a writer claims chunks.
    mutating func makeWriter() -> Int {
        lastWriter += 1
        return lastWriter
    }

    var hasClaims: Bool { !claims.isEmpty }

    enum ClaimResult {
        case claimed
        /// It takes so many bytes of blocks, which the caller must reserve for `claimWithBlocks`.
        case needsBlocks(Int64)
        case present
        /// Another writer is filling it.
        case taken
        /// Its extent is being evicted.
        case evicting
    }

    /// Claims a chunk at once if it has blocks already, from an interrupted write.
    mutating func claim(_ chunk: Int, by writer: Int) -> ClaimResult {
        let extent = extents[geometry.extent(ofChunk: chunk)], bit = geometry.bit(ofChunk: chunk)
        if extent.present.contains(bit) { return .present }
        if isClaimed(chunk) { return .taken }
        if extent.isEvicting { return .evicting }
        guard extent.residue.contains(bit) else {
            return .needsBlocks(newBlockBytes(of: chunk))
        }
        enter(chunk, by: writer)
        return .claimed
    }

    /// Claims a chunk whose blocks the caller has reserved.
    /// - Returns: false if it is present, another's, or takes other blocks (`claim` says which); the caller has to give
    ///   the reservation back.
    mutating func claimWithBlocks(_ chunk: Int, by writer: Int, bytes: Int64) -> Bool {
        let extent = extents[geometry.extent(ofChunk: chunk)]
        guard !extent.isEvicting, !extent.hasBlocks.contains(geometry.bit(ofChunk: chunk)), !isClaimed(chunk),
            keepsHoles || newBlockBytes(of: chunk) == bytes
        else { return false }
        allocated += bytes
        for (ordinal, chunks) in gap(before: chunk) { extents[ordinal].residue.formUnion(chunks) }
        enter(chunk, by: writer)
        return true
    }

    /// The disk usage that a chunk without blocks adds, including that of the gap before it.
    private func newBlockBytes(of chunk: Int) -> Int64 {
        gap(before: chunk).reduce(geometry.blockBytes(ofChunk: chunk, length: length)) {
            $0 +| geometry.blockBytes(of: $1.chunks, inExtent: $1.ordinal, length: length)
        }
    }

    /// The chunks between the last one with blocks and this one, which take blocks with it if no holes are kept.
    private func gap(before chunk: Int) -> [(ordinal: Int, chunks: Presence)] {
        guard !keepsHoles, isStored else { return [] }
        let last = extents.entries.reversed().first { !$0.1.hasBlocks.isEmpty }
        let end = last.map { $0.0 * ChunkGeometry.chunksPerExtent +| 64 - $0.1.hasBlocks.bits.leadingZeroBitCount } ?? 0
        guard end < chunk else { return [] }
        return (geometry.extent(ofChunk: end)...geometry.extent(ofChunk: chunk - 1)).map {
            ($0, geometry.part(of: end..<chunk, inExtent: $0))
        }
    }

    /// Absent chunks before the file's end have blocks, as no holes are kept. The index counts these as overhead.
    mutating func noteFilled(upTo end: Int64) {
        guard !keepsHoles, let length else { return }
        let chunks = 0..<(end < length ? geometry.chunk(at: end) : geometry.chunkCount(length: length))
        let filled = (0...geometry.extent(ofChunk: chunks.upperBound)).map {
            (ordinal: $0, chunks: geometry.part(of: chunks, inExtent: $0).subtracting(extents[$0].hasBlocks))
        }
        let bytes = filled.reduce(0) { $0 +| geometry.blockBytes(of: $1.chunks, inExtent: $1.ordinal, length: length) }
        guard bytes <= overhead else { return }
        overhead -= bytes
        for (ordinal, chunks) in filled where !chunks.isEmpty { extents[ordinal].residue.formUnion(chunks) }
    }

    private func isClaimed(_ chunk: Int) -> Bool { claims.contains { $0.chunk == chunk } }

    /// A claimed chunk has blocks, so it counts as residue until it is complete, and its extent is leased.
    private mutating func enter(_ chunk: Int, by writer: Int) {
        let ordinal = geometry.extent(ofChunk: chunk)
        claims.append(Claim(writer: writer, chunk: chunk, frontier: geometry.chunkStart(chunk)))
        extents[ordinal].residue.insert(geometry.bit(ofChunk: chunk))
        extents[ordinal].leases += 1
    }

    mutating func advance(_ writer: Int, to frontier: Int64) {
        guard let place = claims.firstIndex(where: { $0.writer == writer }) else { return }
        claims[place].frontier = frontier
    }

    /// The whole chunk is in the file: readers find it from now on, unless the disk may have lost some of it.
    mutating func complete(_ chunk: Int, by writer: Int, checksum: UInt64, now: Int64) {
        guard !claims.contains(where: { $0.writer == writer && $0.isLost }) else { return abandon(chunk, by: writer) }
        claims.removeAll { $0.writer == writer }
        absentCount -= 1
        extents[geometry.extent(ofChunk: chunk)].complete(
            geometry.bit(ofChunk: chunk), checksum: isStored ? checksum : nil, now: now)
    }

    /// The writer gives up an incomplete chunk.
    mutating func abandon(_ chunk: Int, by writer: Int) {
        claims.removeAll { $0.writer == writer }
        extents[geometry.extent(ofChunk: chunk)].leases -= 1
    }

    /// Sets the length of a body of unknown length.
    /// - Returns: the surplus reserved for its last chunk, which was reserved as a whole.
    mutating func end(at length: Int64) -> Int64 {
        self.length = length
        countAbsent(of: length)
        guard isStored, length % geometry.chunkSize != 0 else { return 0 }
        let surplus = geometry.chunkSize - geometry.blockBytes(ofChunk: geometry.chunk(at: length), length: length)
        allocated -= surplus
        return surplus
    }

    // MARK: Discarding and evicting

    /// Forgets the extents before `end`. The caller punches their holes and calls `endDiscard`.
    /// - Returns: these extents; nil if there are none, or one of them is in use.
    mutating func discard(before end: Int) -> Range<Int>? {
        let passed = extents.entries.prefix { $0.0 < end }.drop { $0.1.hasBlocks.isEmpty }
        // A lease belongs to a writer in the middle of a chunk, or to a reader whose position is outdated.
        guard let first = passed.first?.0, passed.allSatisfy({ $0.1.leases == 0 }) else { return nil }
        for (ordinal, extent) in passed {
            if isStored { discarded += geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: length) }
            extents[ordinal] = Extent()
        }
        return first..<end
    }

    /// The holes of discarded extents have been punched.
    /// - Returns: the bytes freed.
    mutating func endDiscard() -> Int64 {
        defer { discarded = 0 }
        allocated -= discarded
        return discarded
    }

    /// - Returns: the extent before the eviction, and the bytes of its blocks; nil if it is leased or already being
    ///   evicted.
    mutating func beginEviction(ofExtent ordinal: Int) -> (Extent, Int64)? {
        let extent = extents[ordinal]
        guard extent.leases == 0, !extent.isEvicting, !extent.hasBlocks.isEmpty else { return nil }
        absentCount += extent.present.count
        extents[ordinal] = Extent(residue: extent.hasBlocks, isEvicting: true)
        return (extent, geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: length))
    }

    mutating func cancelEviction(ofExtent ordinal: Int, restoring extent: Extent) {
        // Keep leases that were taken meanwhile.
        let leases = extents[ordinal].leases
        extents[ordinal] = extent
        extents[ordinal].leases = leases
        absentCount -= extent.present.count
    }

    mutating func endEviction(ofExtent ordinal: Int, bytes: Int64, isPunched: Bool) {
        extents[ordinal].isEvicting = false
        guard isPunched else { return }
        extents[ordinal].residue = Presence()
        allocated -= bytes
    }

    /// Whether it has no blocks, no leases and no eviction.
    var isUnused: Bool { extents.values.allSatisfy { $0.hasBlocks.isEmpty && $0.leases == 0 && !$0.isEvicting } }

    /// Forgets the blocks of unfinished chunks. They stay counted until `freed`.
    mutating func takeResidue() -> [(ordinal: Int, chunks: Presence)] {
        let left = extents.entries.filter { !$0.1.residue.isEmpty && !$0.1.isEvicting }.map { ($0.0, $0.1.residue) }
        for (ordinal, _) in left { extents[ordinal].residue = Presence() }
        return left
    }

    /// Counted blocks have been freed.
    mutating func freed(_ bytes: Int64) { allocated -= bytes }

    /// Drops damaged chunks: they are absent from now on. Their blocks stay counted until they are filled again.
    /// - Returns: how many were present.
    mutating func drop(_ chunks: Presence, ofExtent ordinal: Int) -> Int {
        let dropped = extents[ordinal].present.intersection(chunks)
        guard !dropped.isEmpty else { return 0 }
        extents[ordinal].drop(dropped)
        absentCount += dropped.count
        losses += 1
        return dropped.count
    }

    /// Drops all chunks that the index does not know, as the disk has failed to keep some of what was written. It says
    /// so once: the next `fdatasync` succeeds without those bytes. So chunks in progress are absent at their end, too.
    /// - Returns: how many were present.
    mutating func dropUnsaved() -> Int {
        for place in claims.indices { claims[place].isLost = true }
        var dropped = 0
        for ordinal in extents.ordinals { dropped += drop(extents[ordinal].unsaved, ofExtent: ordinal) }
        return dropped
    }

    // MARK: Verification

    /// Whether all present chunks are known to be as written.
    var isTrusted: Bool { wasSealed || unverifiedExtents.isEmpty }

    /// Extents with unverified chunks, in order.
    var unverifiedExtents: [Int] { extents.entries.filter { !$0.1.unverified.isEmpty }.map(\.0) }

    /// Records the result of a verification, and drops bad chunks.
    /// - Returns: how many were dropped.
    mutating func endVerification(of verified: Presence, bad: Presence, inExtent ordinal: Int) -> Int {
        let dropped = drop(bad, ofExtent: ordinal)
        extents[ordinal].unverified.subtract(verified)
        // The next checkpoint tells the index that this extent is verified, and which chunks remain.
        extents[ordinal].isChanged = true
        return dropped
    }

    /// Keeps damaged chunks where they are, but has them verified again before they are served.
    mutating func distrust(_ bad: Presence, ofExtent ordinal: Int) {
        wasSealed = false
        losses += 1
        extents[ordinal].unverified.formUnion(bad.intersection(extents[ordinal].present))
    }

    // MARK: Disk usage

    /// Measures the file's overhead beside its chunks: only the allocated size shows how fragmented the file is.
    /// - Parameters:
    ///   - taken: the allocated size of the file.
    ///   - isClosing: whether writing has ended; residue then counts as overhead.
    /// - Returns: by how much the counted size grows.
    mutating func countOverhead(taken: Int64, isClosing: Bool) -> Int64 {
        let chunks = isClosing ? blockBytes(\.present) : allocated - overhead
        overhead = max(CapacityLedger.fileOverhead, taken + CapacityLedger.blockSize - chunks)
        let more = chunks + overhead - allocated
        allocated += more
        return more
    }

    // MARK: Saving

    /// Whether the index knows all present chunks.
    var isSaved: Bool { extents.values.allSatisfy(\.unsaved.isEmpty) }

    /// Whether the index lacks present chunks of a range.
    func hasUnsaved(in range: Range<Int64>) -> Bool {
        let chunks = geometry.chunks(touching: range)
        return extents.entries.contains { ordinal, extent in
            !extent.unsaved.intersection(geometry.part(of: chunks, inExtent: ordinal)).isEmpty
        }
    }

    /// Whether extents were changed, other than by new chunks, since the last update of the index.
    var isChanged: Bool { extents.values.contains(where: \.isChanged) }

    /// The latest read of all; nil if no extent is known.
    var lastAccess: Int64? { extents.values.lazy.map(\.lastAccess).max() }

    /// The extents with chunks that the index knows which were read since it was last told, with the times.
    mutating func takeReads() -> [IndexSaving.Touch.Read] {
        var reads: [IndexSaving.Touch.Read] = []
        for ordinal in extents.ordinals where extents[ordinal].isReadUnsaved {
            reads.append(.init(ordinal: ordinal, time: extents[ordinal].lastAccess))
            extents[ordinal].isRead = false
        }
        return reads
    }

    /// Takes back reads that could not be saved.
    mutating func restore(_ reads: [IndexSaving.Touch.Read]) {
        for read in reads where !extents[read.ordinal].isEvicting { extents[read.ordinal].isRead = true }
    }

    /// - Parameter isSynced: whether the data will be made durable before this is saved. Otherwise new chunks are left
    ///   out.
    mutating func takeNews(isSynced: Bool) -> [IndexSaving.ExtentUpdate] {
        var news: [IndexSaving.ExtentUpdate] = []
        for ordinal in extents.ordinals {
            let extent = extents[ordinal]
            guard extent.isChanged || isSynced && !extent.unsaved.isEmpty, !extent.isEvicting else { continue }
            news.append(
                IndexSaving.ExtentUpdate(
                    ordinal: ordinal, present: isSynced ? extent.present : extent.saved,
                    checksums: isSynced ? extent.checksums : [:], lastAccess: extent.lastAccess,
                    isVerified: extent.unverified.isEmpty))
            extents[ordinal].note(ofNewChunks: isSynced)
        }
        return news
    }

    /// Takes back an update that could not be saved.
    mutating func restore(_ news: [IndexSaving.ExtentUpdate]) {
        for saved in news where !extents[saved.ordinal].isEvicting {
            let chunks = Presence(saved.checksums.keys).intersection(extents[saved.ordinal].present)
            extents[saved.ordinal].unsaved.formUnion(chunks)
            extents[saved.ordinal].checksums.merge(saved.checksums) { newer, _ in newer }
            extents[saved.ordinal].isChanged = true
        }
    }
}
