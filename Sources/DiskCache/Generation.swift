import CachePolicy
import Glibc
import HTTPModel
import Synchronization

/// One version of a resource's bytes: which chunks are in its file, who needs them, who writes them.
///
/// - *present*: the whole chunk is in the file. *Claimed*: a writer is filling it; readers may follow up to its
///   *frontier*.
/// - *leased*: the extent must stay; the evictor passes it by.
///
/// Loops and the store's queue use it at once: the state is inside the mutex; nothing is called and no disk is touched
/// under it.
package final class Generation: Sendable {
    package let id: GenerationID
    package let key: CacheKey
    package let geometry: ChunkGeometry
    let file: any GenerationBytes
    /// Whether this generation is kept on disk; else it is a buffer in memory, for bytes that pass through.
    package let isStored: Bool
    let ledger: CapacityLedger
    /// Whether somebody had pinned or downloaded its resource when it was opened.
    private let wasKept: Bool
    let state: Mutex<State>

    struct State {
        /// nil until the end of a body of unknown length is seen.
        var length: Int64?
        var extents = ExtentTable()
        /// Claimed chunk and frontier, by writer.
        var writers: [Int: Claim] = [:]
        var nextWriter = 0
        /// Readers and writers that have it in hand, whether or not they need bytes just now.
        var users = 0
        /// Of these, those that give it to players.
        var readers = 0
        /// How many want the index to know soon what has come.
        var eager = 0
        /// Chunks of the length that are not present; 0 means complete. Meaningless while the length is unknown.
        var absentChunks = 0
        /// Whether the index has this generation's row.
        var isIndexed = false
        /// Replaced by another generation: it is not given to new readers, and its file goes when nobody has it open.
        var isRetired = false
        var unsavedHits: Int64 = 0
        /// Bytes of blocks that the ledger counts for this generation.
        var allocated: Int64 = 0
        /// Of these, what the file takes beside its chunks: at least `CapacityLedger.fileOverhead`. And what the index
        /// knows of it.
        var overhead: Int64 = 0
        var savedOverhead: Int64 = 0
        /// Of these, what `discard` has yet to give back.
        var discarded: Int64 = 0
        /// Whether this session's list of unfinished files names it.
        var isListed = false
        var head: GenerationHead
        /// Whether the index has yet to be told of `head`.
        var isHeadUnsaved = false
        /// Whoever has been told the file's name: until they have done, it keeps that, and nothing of it is evicted.
        var holds = 0
        /// How often chunks that were present have turned out not to be what they should.
        var losses = 0
        /// Whether the file was as this store had left it when it was opened; else it is sealed only when all of it is
        /// verified.
        var wasSealed = true
        /// Whether somebody has pinned or downloaded its resource; nil where nothing was said of that since it was
        /// opened.
        var isKept: Bool?
        /// Whether its file's name is durable.
        var isNameSynced = false
        /// Not to be found before it is finished: it comes in from elsewhere.
        var isHidden = false
    }

    struct Claim {
        var chunk: Int
        var frontier: Int64
    }

    init(
        id: GenerationID, key: CacheKey, head: GenerationHead, length: Int64?, geometry: ChunkGeometry,
        file: any GenerationBytes, isStored: Bool,
        ledger: CapacityLedger, extents: ExtentTable = ExtentTable(), isIndexed: Bool = false,
        overhead: Int64 = CapacityLedger.fileOverhead, isHidden: Bool = false, wasSealed: Bool = true,
        isKept: Bool = false
    ) {
        self.id = id
        self.key = key
        self.geometry = geometry
        self.file = file
        self.isStored = isStored
        self.ledger = ledger
        wasKept = isKept
        var state = State(head: head)
        state.length = length
        state.isIndexed = isIndexed
        state.overhead = isStored ? overhead : 0
        state.savedOverhead = overhead
        state.allocated = state.overhead
        state.isListed = !isIndexed
        state.isNameSynced = isIndexed
        state.isHidden = isHidden
        state.wasSealed = wasSealed
        state.extents = extents
        if let length {
            state.absentChunks =
                geometry.chunkCount(length: length) - extents.values.reduce(0) { $0 + $1.present.count }
            for (ordinal, extent) in extents.entries {
                state.allocated += geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: length)
            }
        }
        self.state = Mutex(state)
    }

    /// Larger ones are not kept, and not passed on through memory: their numbers would not be believed.
    package static let longest: Int64 = 1 << 40

    /// Whether nobody will find it again once it is closed.
    var isLeftover: Bool {
        state.withLock {
            $0.isRetired || $0.isHidden || $0.length == nil || $0.extents.values.allSatisfy { $0.present.isEmpty }
        }
    }

    /// What the ledger counts for it.
    var allocated: Int64 { state.withLock { $0.allocated } }

    /// Whether all that is present is known to be what was written.
    var isTrusted: Bool {
        state.withLock { state in state.wasSealed || state.extents.values.allSatisfy { $0.unverified.isEmpty } }
    }

    /// What the file takes beside its chunks is counted by what it really takes: how finely it is divided shows only
    /// then. On the store's queue.
    /// - Parameter isClosing: nobody writes any more. What has blocks without being present is counted here from now
    ///   on.
    func countOverhead(isClosing: Bool = false) {
        // Asked first: what is reserved meanwhile then makes it seem less, never more.
        let taken = file.allocatedBytes
        let more = state.withLock { state in
            var chunks = state.allocated - state.overhead
            if isClosing {
                chunks = state.extents.entries.reduce(0) {
                    $0 + geometry.blockBytes(of: $1.1.present, inExtent: $1.0, length: state.length)
                }
            }
            state.overhead = max(CapacityLedger.fileOverhead, taken + CapacityLedger.blockSize - chunks)
            let more = chunks + state.overhead - state.allocated
            state.allocated += more
            return more
        }
        if more != 0 { ledger.adjust(by: more) }
    }

    /// Gives back the blocks of chunks that were begun and will not be finished: before closing, when nothing is
    /// written any more.
    func releaseResidue() {
        let left = state.withLock { state in
            let left = state.extents.entries.filter { !$0.1.residue.isEmpty && !$0.1.isEvicting }.map {
                ($0.0, $0.1.residue)
            }
            for (ordinal, _) in left { state.extents[ordinal].residue = Presence(bits: 0) }
            return left
        }
        for (ordinal, residue) in left { punch(residue, ofExtent: ordinal, length) }
    }

    private func punch(_ residue: Presence, ofExtent ordinal: Int, _ length: Int64?) {
        for run in residue.runs {
            let first = ordinal * ChunkGeometry.chunksPerExtent
            let bytes =
                geometry.chunkStart(
                    first + run.lowerBound)..<geometry.chunkBytes(first + run.upperBound - 1, length: length).upperBound
            guard (try? file.punchHole(bytes)) != nil else { continue }
            let freed = geometry.blockBytes(of: Presence(bits: Presence.mask(run)), inExtent: ordinal, length: length)
            state.withLock { $0.allocated -= freed }
            ledger.release(freed)
        }
    }

    package var head: GenerationHead { state.withLock { $0.head } }

    /// The origin has said something of it. The index is told at the next checkpoint.
    /// - Parameter change: makes the head that takes the place of the one that it gets.
    package func freshen(_ change: (GenerationHead) -> GenerationHead) {
        state.withLock { state in
            state.head = change(state.head)
            state.isHeadUnsaved = true
        }
    }

    /// Whether somebody has pinned or downloaded its resource.
    package var isKept: Bool { state.withLock { $0.isKept } ?? wasKept }

    func setKept(_ isKept: Bool) { state.withLock { $0.isKept = isKept } }

    /// What the index had just after it was registered; what was said meanwhile is newer.
    func startKept(_ isKept: Bool) { state.withLock { $0.isKept = $0.isKept ?? isKept } }

    /// In bytes; nil while unknown.
    package var length: Int64? { state.withLock { $0.length } }

    package var isRetired: Bool { state.withLock { $0.isRetired } }

    /// How much of a range is present.
    package enum Coverage: Sendable { case whole, part, none }

    package func coverage(of range: Range<Int64>) -> Coverage {
        guard !range.isEmpty else { return .whole }
        return state.withLock { state in
            if state.length != nil && state.absentChunks == 0 { return .whole }
            let chunks = geometry.chunks(touching: range)
            guard state.extents.nextPresent(from: chunks.lowerBound, limit: chunks.upperBound) < chunks.upperBound
            else { return .none }
            return state.extents.nextAbsent(from: chunks.lowerBound, limit: chunks.upperBound) == chunks.upperBound
                ? .whole : .part
        }
    }

    /// How many bytes of a range are present, in whole chunks.
    package func presentBytes(of range: Range<Int64>) -> Int64 {
        guard !range.isEmpty else { return 0 }
        return state.withLock { state in
            if let length = state.length, state.absentChunks == 0 { return Int64(range.clamped(to: 0..<length).count) }
            var (bytes, chunk) = (Int64(0), geometry.chunk(at: range.lowerBound))
            let limit = geometry.chunks(touching: range).upperBound
            while chunk < limit {
                let first = state.extents.nextPresent(from: chunk, limit: limit)
                guard first < limit else { break }
                chunk = state.extents.nextAbsent(from: first, limit: limit)
                let run = geometry.chunkStart(first)..<geometry.chunkBytes(chunk - 1, length: state.length).upperBound
                bytes += Int64(run.clamped(to: range).count)
            }
            return bytes
        }
    }

    /// The first absent run that begins at or after the start of a range and touches it, in whole chunks; nil where all
    /// is present.
    package func gap(in range: Range<Int64>) -> Range<Int64>? {
        state.withLock { state in
            let chunks = geometry.chunks(touching: range)
            let first = state.extents.nextAbsent(from: chunks.lowerBound, limit: chunks.upperBound)
            guard first < chunks.upperBound else { return nil }
            let end = state.extents.nextPresent(from: first, limit: chunks.upperBound)
            let bytes = geometry.chunkStart(first)..<geometry.chunkStart(end)
            return state.length.map { bytes.clamped(to: 0..<$0) } ?? bytes
        }
    }

    /// From here to `endUse` somebody reads or fills it: it is not given up even when all of it is evicted.
    package func beginUse() { state.withLock { $0.users += 1 } }

    package var isInUse: Bool { state.withLock { $0.users > 0 } }

    package func endUse() { state.withLock { $0.users -= 1 } }

    /// The same for who gives it to a player.
    package func beginReading() {
        state.withLock { state in
            state.users += 1
            state.readers += 1
        }
    }

    package func endReading() {
        state.withLock { state in
            state.users -= 1
            state.readers -= 1
        }
    }

    /// About what it holds in memory: its head, several times, and what is known of its extents.
    package var memoryBytes: Int {
        state.withLock { state in
            let lines = state.head.fields.lines.count, text = state.head.fieldBytes.count + state.head.siteBytes.count
            return 2048 + 3 * text + 160 * lines + state.extents.values.count * 2 * MemoryLayout<Extent>.stride
        }
    }

    /// Counts a request that was answered from here.
    package func countHit() {
        state.withLock { $0.unsavedHits += 1 }
    }
}

extension ChunkGeometry {
    /// The bits of an extent that belong to a run of chunks.
    func mask(of chunks: Range<Int>, inExtent ordinal: Int) -> UInt64 {
        let first = ordinal * Self.chunksPerExtent
        let part = chunks.clamped(to: first..<first + Self.chunksPerExtent)
        return part.isEmpty ? 0 : Presence.mask(part.lowerBound - first..<part.upperBound - first)
    }

    /// What chunks take on the disk.
    func blockBytes(of bits: Presence, inExtent ordinal: Int, length: Int64?) -> Int64 {
        bits.runs.reduce(0) { sum, run in
            run.reduce(sum) { $0 + blockBytes(ofChunk: ordinal * Self.chunksPerExtent + $1, length: length) }
        }
    }

    func blockBytes(ofChunk chunk: Int, length: Int64?) -> Int64 {
        let bytes = chunkBytes(chunk, length: length)
        return CapacityLedger.rounded(bytes.upperBound - bytes.lowerBound)
    }
}

/// Wall-clock time in microseconds: the order of last reads, across restarts.
enum AccessClock {
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}
