import CachePolicy
import Glibc
import HTTPModel
import Synchronization

/// What is known of a generation besides its bytes. Another one takes its place when the origin says that the generation still holds.
package final class GenerationHead: Sendable, Equatable {
    /// The status that a plain GET answers with: 200, or the origin's own where this is its error page.
    package let status: Int
    /// The origin's header fields worth keeping.
    package let fields: FieldLines
    /// The request fields by which the origin chose it.
    package let selecting: SelectingFields
    /// Where the bytes came from, after redirects.
    package let finalURL: String
    /// Whether they came from a public address. What did not is shown to no page of another site.
    package let isPublic: Bool
    /// Seconds since 1970.
    package let storedAt: Int64
    /// From when its age counts.
    package let times: ResponseTimes

    /// `fields` as they go out, each line ended by CRLF; those that speak for the origin as a site are apart.
    package let fieldBytes: [UInt8]
    package let siteBytes: [UInt8]
    /// What a browser can do with it.
    package let safety: ContentSafety
    /// Whether `Date` is among them.
    package let hasDate: Bool
    /// As it was when its age began to count: what is reckoned from its fields is reckoned once.
    private let freshnessAtFirst: Freshness
    package let validators: RepresentationValidators
    package let cacheControl: CacheControl
    /// The value for `If-Range` by which a gap of this very generation is asked for.
    package let rangeCondition: String?

    /// - Parameter times: nil where it was new when it was stored.
    package init(
        status: Int, fields: FieldLines, selecting: SelectingFields = SelectingFields(), finalURL: String, isPublic: Bool = false, storedAt: Int64,
        times: ResponseTimes? = nil
    ) {
        self.status = status
        self.fields = fields
        self.selecting = selecting
        self.finalURL = finalURL
        self.isPublic = isPublic
        self.storedAt = storedAt
        self.times = times ?? ResponseTimes(validatedAt: storedAt)
        fieldBytes = Self.rendered(fields.lines.filter { !SiteFields.isOfOrigin($0.name) })
        siteBytes = Self.rendered(fields.lines.filter { SiteFields.isOfOrigin($0.name) })
        safety = ContentSafety(fields)
        validators = RepresentationValidators(
            etag: fields["ETag"].flatMap { EntityTag(parsing: $0) }, lastModified: fields["Last-Modified"].flatMap { HTTPDate.parse($0) })
        cacheControl = CacheControl(parsing: fields.combined("Cache-Control"))
        rangeCondition = Combining.condition(for: fields)
        hasDate = fields["Date"] != nil
        freshnessAtFirst = .of(fields, self.times, ttl: nil, now: self.times.validatedAt)
    }

    private static func rendered(_ lines: [FieldLines.Line]) -> [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            for text in [line.name, ": ", line.value, "\r\n"] { bytes += text.utf8 }
        }
        return bytes
    }

    /// How long it is fresh yet.
    /// - Parameters:
    ///   - ttl: what a rule says.
    ///   - now: seconds since 1970.
    package func freshness(ttl: Int64?, now: Int64) -> Freshness {
        guard ttl == nil else { return .of(fields, times, ttl: ttl, now: now) }
        let first = freshnessAtFirst
        return Freshness(lifetime: first.lifetime, age: times.age(at: now), source: first.source, isAskedEachTime: first.isAskedEachTime)
    }

    /// The age that it is given out with (RFC 9111 §1.2.2, §5.1).
    package func age(at now: Int64) -> Int64 { min(times.age(at: now), 1 << 31) }

    /// The head that takes its place when there is reason to doubt it: stale until its origin is asked.
    package var doubted: GenerationHead {
        GenerationHead(
            status: status, fields: fields, selecting: selecting, finalURL: finalURL, isPublic: isPublic, storedAt: storedAt,
            times: ResponseTimes(validatedAt: 1, initialAge: .max))
    }

    /// The head that takes its place when its origin has said, in an answer with such fields, that it still holds.
    package func freshened(by newer: FieldLines, isPublic: Bool, times: ResponseTimes) -> GenerationHead {
        GenerationHead(
            status: status, fields: Freshening.updated(fields, with: newer).worthKeeping, selecting: selecting, finalURL: finalURL, isPublic: self.isPublic && isPublic,
            storedAt: storedAt, times: times)
    }

    package static func == (a: GenerationHead, b: GenerationHead) -> Bool {
        a.status == b.status && a.fields == b.fields && a.selecting == b.selecting && a.finalURL == b.finalURL && a.isPublic == b.isPublic
            && a.storedAt == b.storedAt && a.times == b.times
    }
}

/// One version of a resource's bytes: which chunks are in its file, who needs them, who writes them.
///
/// - *present*: the whole chunk is in the file. *Claimed*: a writer is filling it; readers may follow up to its *frontier*.
/// - *leased*: the extent must stay; the evictor passes it by.
///
/// Loops and the store's queue use it at once: the state is inside the mutex; nothing is called and no disk is touched under it.
package final class Generation: Sendable {
    package let id: GenerationID
    package let key: CacheKey
    package let geometry: ChunkGeometry
    let file: any GenerationBytes
    /// Whether this generation is kept on disk; else it is a window in memory, for bytes that pass through.
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
        /// Of these, what the file takes beside its chunks: at least `CapacityLedger.fileOverhead`. And what the index knows of it.
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
        /// Whether the file was as this store had left it when it was opened; else it is sealed only when all of it is verified.
        var wasSealed = true
        /// Whether somebody has pinned or downloaded its resource; nil where nothing was said of that since it was opened.
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
        id: GenerationID, key: CacheKey, head: GenerationHead, length: Int64?, geometry: ChunkGeometry, file: any GenerationBytes, isStored: Bool,
        ledger: CapacityLedger, extents: ExtentTable = ExtentTable(), isIndexed: Bool = false,
        overhead: Int64 = CapacityLedger.fileOverhead, isHidden: Bool = false, wasSealed: Bool = true, isKept: Bool = false
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
            state.absentChunks = geometry.chunkCount(length: length) - extents.values.reduce(0) { $0 + $1.present.count }
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
        state.withLock { $0.isRetired || $0.isHidden || $0.length == nil || $0.extents.values.allSatisfy { $0.present.isEmpty } }
    }

    /// What the ledger counts for it.
    var allocated: Int64 { state.withLock { $0.allocated } }

    /// Whether all that is present is known to be what was written.
    var isTrusted: Bool { state.withLock { state in state.wasSealed || state.extents.values.allSatisfy { $0.unverified.isEmpty } } }

    /// What the file takes beside its chunks is counted by what it really takes: how finely it is divided shows only then.
    /// On the store's queue.
    /// - Parameter isClosing: nobody writes any more. What has blocks without being present is counted here from now on.
    func countOverhead(isClosing: Bool = false) {
        // Asked first: what is reserved meanwhile then makes it seem less, never more.
        let taken = file.allocatedBytes
        let more = state.withLock { state in
            var chunks = state.allocated - state.overhead
            if isClosing {
                chunks = state.extents.entries.reduce(0) { $0 + geometry.blockBytes(of: $1.1.present, inExtent: $1.0, length: state.length) }
            }
            state.overhead = max(CapacityLedger.fileOverhead, taken + CapacityLedger.blockSize - chunks)
            let more = chunks + state.overhead - state.allocated
            state.allocated += more
            return more
        }
        if more != 0 { ledger.adjust(by: more) }
    }

    /// Gives back the blocks of chunks that were begun and will not be finished: before closing, when nothing is written any more.
    func releaseResidue() {
        let left = state.withLock { state in
            let left = state.extents.entries.filter { !$0.1.residue.isEmpty && !$0.1.isEvicting }.map { ($0.0, $0.1.residue) }
            for (ordinal, _) in left { state.extents[ordinal].residue = Presence(bits: 0) }
            return left
        }
        for (ordinal, residue) in left { punch(residue, ofExtent: ordinal, length) }
    }

    private func punch(_ residue: Presence, ofExtent ordinal: Int, _ length: Int64?) {
        for run in residue.runs {
            let first = ordinal * ChunkGeometry.chunksPerExtent
            let bytes = geometry.chunkStart(first + run.lowerBound)..<geometry.chunkBytes(first + run.upperBound - 1, length: length).upperBound
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
            guard state.extents.nextPresent(from: chunks.lowerBound, limit: chunks.upperBound) < chunks.upperBound else { return .none }
            return state.extents.nextAbsent(from: chunks.lowerBound, limit: chunks.upperBound) == chunks.upperBound ? .whole : .part
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

    /// The first absent run that begins at or after the start of a range and touches it, in whole chunks; nil where all is present.
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
