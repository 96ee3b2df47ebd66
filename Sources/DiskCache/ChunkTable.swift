import CachePolicy

/// Which chunks of a generation are in its file, who fills them and who needs them, and what that takes on the disk: a
/// value, without lock, clock or disk. `Generation` is its lock.
///
/// - *present*: the whole chunk is in the file. *Claimed*: a writer is filling it; readers may follow up to its
///   *frontier*. *Residue*: it has blocks without being present.
/// - *leased*: the extent must stay; the evictor passes it by.
///
/// Sizes and offsets are bytes, times are microseconds since 1970.
struct ChunkTable: Sendable {
    let geometry: ChunkGeometry
    /// Whether the chunks are on the disk; else they pass through memory, where nothing of them is counted or saved.
    let isStored: Bool
    /// nil until the end of a body of unknown length is seen.
    private(set) var length: Int64?
    private(set) var extents: ExtentTable
    private var claims: [Int: Claim] = [:]
    private var lastWriter = 0
    /// Chunks of the length that are not present; 0 means complete. Meaningless while the length is unknown.
    private(set) var absentCount = 0
    /// Bytes of blocks that the ledger counts for this generation.
    private(set) var allocated: Int64
    /// Of these, what the file takes beside its chunks: at least `CapacityLedger.fileOverhead`.
    private(set) var overhead: Int64
    /// Of these, what `discard` has yet to give back.
    private var discarded: Int64 = 0
    /// How often chunks that were present have turned out not to be what they should.
    private(set) var losses = 0
    /// Whether the file was as this store had left it when it was opened; else it is sealed only when all of it is
    /// verified.
    private var wasSealed: Bool

    /// What a writer fills at this moment.
    private struct Claim {
        var chunk: Int
        var frontier: Int64
    }

    /// - Parameters:
    ///   - extents: those that the index knows.
    ///   - overhead: what the file takes beside its chunks.
    init(
        _ geometry: ChunkGeometry, length: Int64?, isStored: Bool, extents: ExtentTable = ExtentTable(),
        overhead: Int64 = CapacityLedger.fileOverhead, wasSealed: Bool = true
    ) {
        (self.geometry, self.length, self.isStored) = (geometry, length, isStored)
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

    /// What some of the chunks of each extent take on the disk.
    private func blockBytes(_ chunks: (Extent) -> Presence) -> Int64 {
        extents.entries.reduce(0) { $0 + geometry.blockBytes(of: chunks($1.1), inExtent: $1.0, length: length) }
    }

    // MARK: What is there

    /// Whether all is present, and the end known.
    var isComplete: Bool { length != nil && absentCount == 0 }

    /// Whether nothing is present.
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

    /// How many bytes of a range are present, in whole chunks.
    func presentBytes(of range: Range<Int64>) -> Int64 {
        if let length, absentCount == 0 { return Int64(range.clamped(to: 0..<length).count) }
        return runs(within: geometry.chunks(touching: range)).reduce(0) {
            $0 + Int64(geometry.bytes(ofChunks: $1, length: length).clamped(to: range).count)
        }
    }

    /// What is present, in order; nil while the length is unknown.
    var presentRanges: (length: Int64, present: [Range<Int64>])? {
        length.map { length in
            let runs = runs(within: 0..<geometry.chunkCount(length: length))
            return (length, runs.map { geometry.bytes(ofChunks: $0, length: length) })
        }
    }

    /// The first absent run that begins at or after the start of a range and touches it, in whole chunks; nil where all
    /// is present.
    func gap(in range: Range<Int64>) -> Range<Int64>? {
        let chunks = geometry.chunks(touching: range)
        let first = extents.nextAbsent(from: chunks.lowerBound, limit: chunks.upperBound)
        guard first < chunks.upperBound else { return nil }
        let end = extents.nextPresent(from: first, limit: chunks.upperBound)
        let bytes = geometry.chunkStart(first)..<geometry.chunkStart(end)
        return length.map { bytes.clamped(to: 0..<$0) } ?? bytes
    }

    // MARK: Reading

    /// Looks what can be read at `offset`, and notes that it is read.
    /// - Parameters:
    ///   - leases: whether the reader has no lease of this extent yet; it has one where there are bytes.
    ///   - now: when it is read.
    mutating func acquire(at offset: Int64, leases: Bool, now: Int64) -> Availability {
        let ordinal = geometry.extent(at: offset)
        let found = available(at: offset, in: extents[ordinal])
        if case .bytes = found { extents[ordinal].wasRead(at: now, isLeased: leases) }
        return found
    }

    private func available(at offset: Int64, in extent: Extent) -> Availability {
        guard !extent.isEvicting else { return .absent }
        let chunk = geometry.chunk(at: offset), bit = geometry.bit(ofChunk: chunk)
        guard extent.present.contains(bit) else {
            let claim = claims.values.first { $0.chunk == chunk && $0.frontier > offset }
            return claim.map { .bytes(until: $0.frontier) } ?? .absent
        }
        let run = extent.present.subtracting(extent.unverified).runOfPresent(from: bit)
        guard run > 0 else { return .unverified }
        return .bytes(until: geometry.chunkBytes(chunk + run - 1, length: length).upperBound)
    }

    /// Takes a lease of an extent; `endLease` gives it back.
    mutating func lease(_ ordinal: Int) { extents[ordinal].leases += 1 }

    mutating func endLease(_ ordinal: Int) { extents[ordinal].leases -= 1 }

    /// Whether some extent is leased.
    var isLeased: Bool { extents.values.contains { $0.leases > 0 } }

    /// Whether chunks of an extent were found in memory a moment ago.
    func areResident(_ chunks: Presence, inExtent ordinal: Int, now: Int64) -> Bool {
        extents[ordinal].residentUntil > now && extents[ordinal].resident.isSuperset(of: chunks)
    }

    /// Chunks of an extent were found in memory. The first ones say for how long that is believed of all.
    mutating func noteResident(_ chunks: Presence, inExtent ordinal: Int, now: Int64, until end: Int64) {
        let known = extents[ordinal].residentUntil > now ? extents[ordinal].resident : Presence()
        extents[ordinal].resident = known.union(chunks)
        if known.isEmpty { extents[ordinal].residentUntil = end }
    }

    /// An extent was read.
    mutating func touch(_ ordinal: Int, at time: Int64) {
        extents[ordinal].lastAccess = time
        extents[ordinal].isTouched = true
    }

    /// All that is present was read.
    mutating func touchAll(at time: Int64) {
        for ordinal in extents.ordinals where !extents[ordinal].present.isEmpty { touch(ordinal, at: time) }
    }

    // MARK: Filling

    /// A number for a writer, by which it claims chunks.
    mutating func makeWriter() -> Int {
        lastWriter += 1
        return lastWriter
    }

    var hasClaims: Bool { !claims.isEmpty }

    enum ClaimResult {
        case claimed
        /// Blocks must be reserved, then `claimWithBlocks`.
        case needsBlocks(Int64)
        case present
        /// Another writer fills it.
        case taken
        /// Its extent's hole is being punched.
        case evicting
    }

    /// Asks for a chunk. It is claimed at once where it has blocks already (an interrupted write).
    mutating func claim(_ chunk: Int, by writer: Int) -> ClaimResult {
        let extent = extents[geometry.extent(ofChunk: chunk)], bit = geometry.bit(ofChunk: chunk)
        if extent.present.contains(bit) { return .present }
        if isClaimed(chunk) { return .taken }
        if extent.isEvicting { return .evicting }
        guard extent.residue.contains(bit) else {
            return .needsBlocks(geometry.blockBytes(ofChunk: chunk, length: length))
        }
        enter(chunk, by: writer)
        return .claimed
    }

    /// Claims a chunk whose blocks the caller has reserved.
    /// - Returns: false where someone else was quicker; the reservation is the caller's again.
    mutating func claimWithBlocks(_ chunk: Int, by writer: Int, bytes: Int64) -> Bool {
        let extent = extents[geometry.extent(ofChunk: chunk)]
        guard !extent.isEvicting, !extent.hasBlocks.contains(geometry.bit(ofChunk: chunk)), !isClaimed(chunk) else {
            return false
        }
        allocated += bytes
        enter(chunk, by: writer)
        return true
    }

    private func isClaimed(_ chunk: Int) -> Bool { claims.values.contains { $0.chunk == chunk } }

    /// A claimed chunk has blocks, so it counts as residue until it is complete; and its extent is leased.
    private mutating func enter(_ chunk: Int, by writer: Int) {
        let ordinal = geometry.extent(ofChunk: chunk)
        claims[writer] = Claim(chunk: chunk, frontier: geometry.chunkStart(chunk))
        extents[ordinal].residue.insert(geometry.bit(ofChunk: chunk))
        extents[ordinal].leases += 1
    }

    mutating func advance(_ writer: Int, to frontier: Int64) { claims[writer]?.frontier = frontier }

    /// The whole chunk is in the file: from now on readers find it.
    mutating func complete(_ chunk: Int, by writer: Int, checksum: UInt64, now: Int64) {
        claims[writer] = nil
        absentCount -= 1
        extents[geometry.extent(ofChunk: chunk)].complete(
            geometry.bit(ofChunk: chunk), checksum: isStored ? checksum : nil, now: now)
    }

    /// The writer leaves an incomplete chunk.
    mutating func abandon(_ chunk: Int, by writer: Int) {
        claims[writer] = nil
        extents[geometry.extent(ofChunk: chunk)].leases -= 1
    }

    /// The end of a body of unknown length was seen.
    /// - Returns: what had been counted for its last chunk, which was reserved as a whole, and is not needed.
    mutating func end(at length: Int64) -> Int64 {
        self.length = length
        countAbsent(of: length)
        guard isStored, length % geometry.chunkSize != 0 else { return 0 }
        let surplus = geometry.chunkSize - geometry.blockBytes(ofChunk: geometry.chunk(at: length), length: length)
        allocated -= surplus
        return surplus
    }

    // MARK: What goes

    /// Forgets the extents before one, once their holes can be punched: `endDiscard` follows.
    /// - Returns: which they are; nil where there are none, or somebody needs one of them.
    mutating func discard(before end: Int) -> Range<Int>? {
        let passed = extents.entries.prefix { $0.0 < end }.drop { $0.1.hasBlocks.isEmpty }
        // A writer that is in the middle of a chunk there, or a reader that has not yet said how far it is.
        guard let first = passed.first?.0, passed.allSatisfy({ $0.1.leases == 0 }) else { return nil }
        for (ordinal, extent) in passed {
            if isStored { discarded += geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: length) }
            extents[ordinal] = Extent()
        }
        return first..<end
    }

    /// The holes of what was discarded are punched.
    /// - Returns: what that has freed.
    mutating func endDiscard() -> Int64 {
        defer { discarded = 0 }
        allocated -= discarded
        return discarded
    }

    /// - Returns: the extent as it was and the bytes of its blocks; nil where it is leased or being evicted.
    mutating func beginEviction(ofExtent ordinal: Int) -> (Extent, Int64)? {
        let extent = extents[ordinal]
        guard extent.leases == 0, !extent.isEvicting, !extent.hasBlocks.isEmpty else { return nil }
        absentCount += extent.present.count
        extents[ordinal] = Extent(residue: extent.hasBlocks, isEvicting: true)
        return (extent, geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: length))
    }

    mutating func cancelEviction(ofExtent ordinal: Int, restoring extent: Extent) {
        // Whoever has come meanwhile stays.
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

    /// Whether nothing of it is left, and nobody fills it.
    var isUnused: Bool { extents.values.allSatisfy { $0.hasBlocks.isEmpty && $0.leases == 0 && !$0.isEvicting } }

    /// Forgets the blocks of chunks that were begun and will not be finished. They stay counted until they are `freed`.
    mutating func takeResidue() -> [(ordinal: Int, chunks: Presence)] {
        let left = extents.entries.filter { !$0.1.residue.isEmpty && !$0.1.isEvicting }.map { ($0.0, $0.1.residue) }
        for (ordinal, _) in left { extents[ordinal].residue = Presence() }
        return left
    }

    /// Blocks are gone that were counted.
    mutating func freed(_ bytes: Int64) { allocated -= bytes }

    /// Chunks turn out not to be what they should: absent from now on. Their blocks stay counted until they are filled
    /// again.
    /// - Returns: how many were dropped.
    mutating func drop(_ chunks: Presence, ofExtent ordinal: Int) -> Int {
        let dropped = extents[ordinal].present.intersection(chunks)
        guard !dropped.isEmpty else { return 0 }
        extents[ordinal].drop(dropped)
        absentCount += dropped.count
        losses += 1
        return dropped.count
    }

    // MARK: What is not believed

    /// Whether all that is present is known to be what was written.
    var isTrusted: Bool { wasSealed || unverifiedExtents.isEmpty }

    /// Extents with chunks to be verified, in order.
    var unverifiedExtents: [Int] { extents.entries.filter { !$0.1.unverified.isEmpty }.map(\.0) }

    func unverified(ofExtent ordinal: Int) -> Presence { extents[ordinal].unverified }

    /// Chunks were compared with their checksums; those that are bad are dropped.
    /// - Returns: how many were dropped.
    mutating func endVerification(of verified: Presence, bad: Presence, inExtent ordinal: Int) -> Int {
        let dropped = drop(bad, ofExtent: ordinal)
        extents[ordinal].unverified.subtract(verified)
        // The next checkpoint tells the index that this extent is verified, and what of it is left.
        extents[ordinal].isTouched = true
        return dropped
    }

    /// Chunks that are damaged are left where they are, but not served before they are verified once more.
    mutating func distrust(_ bad: Presence, ofExtent ordinal: Int) {
        wasSealed = false
        losses += 1
        extents[ordinal].unverified.formUnion(bad.intersection(extents[ordinal].present))
    }

    // MARK: What is counted

    /// What the file takes beside its chunks is counted by what it really takes: how finely it is divided shows only
    /// then.
    /// - Parameters:
    ///   - taken: what the file takes.
    ///   - isClosing: nobody writes any more. What has blocks without being present is counted here from now on.
    /// - Returns: how much more is counted now.
    mutating func countOverhead(taken: Int64, isClosing: Bool) -> Int64 {
        let chunks = isClosing ? blockBytes(\.present) : allocated - overhead
        overhead = max(CapacityLedger.fileOverhead, taken + CapacityLedger.blockSize - chunks)
        let more = chunks + overhead - allocated
        allocated += more
        return more
    }

    // MARK: What the index is told

    /// Whether the index knows of all that is present.
    var isSaved: Bool { extents.values.allSatisfy(\.unsaved.isEmpty) }

    /// Whether the index does not know of all that is present of a range.
    func hasUnsaved(in range: Range<Int64>) -> Bool {
        let chunks = geometry.chunks(touching: range)
        return extents.entries.contains { ordinal, extent in
            !extent.unsaved.intersection(geometry.part(of: chunks, inExtent: ordinal)).isEmpty
        }
    }

    /// Whether extents were read since the index was last told.
    var isTouched: Bool { extents.values.contains(where: \.isTouched) }

    /// The chunks that the index knows, and that are still the same.
    func saved(ofExtent ordinal: Int) -> Presence { extents[ordinal].saved }

    /// - Parameter isSynced: whether the data will be made durable before this is saved; else nothing is said of new
    ///   chunks.
    mutating func takeNews(isSynced: Bool) -> [CacheIndex.ExtentUpdate] {
        var news: [CacheIndex.ExtentUpdate] = []
        for ordinal in extents.ordinals {
            let extent = extents[ordinal]
            guard extent.isTouched || isSynced && !extent.unsaved.isEmpty, !extent.isEvicting else { continue }
            news.append(
                CacheIndex.ExtentUpdate(
                    ordinal: ordinal, present: isSynced ? extent.present : extent.saved,
                    checksums: isSynced ? extent.checksums : [:], lastAccess: extent.lastAccess,
                    isVerified: extent.unverified.isEmpty))
            extents[ordinal].wasTold(ofNewChunks: isSynced)
        }
        return news
    }

    /// The index could not be told.
    mutating func restore(_ news: [CacheIndex.ExtentUpdate]) {
        for saved in news where !extents[saved.ordinal].isEvicting {
            let chunks = Presence(saved.checksums.keys).intersection(extents[saved.ordinal].present)
            extents[saved.ordinal].unsaved.formUnion(chunks)
            extents[saved.ordinal].checksums.merge(saved.checksums) { newer, _ in newer }
            extents[saved.ordinal].isTouched = true
        }
    }
}
