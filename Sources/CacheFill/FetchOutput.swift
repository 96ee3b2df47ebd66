import Activity
import CachePolicy
import DiskCache
import HTTPModel

/// Writes a fetch's bytes into a generation by way of staging buffers. Bound to the fetch's loop.
///
///     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓[ staging ]░░░░░░░░░░░░░░░│
///     held for readers      ▲         ▲              end
///                        position  received
///
/// It decides when to write (`take`), what (`nextWrite`), and what follows from the result (`wrote`); the fetch does
/// the writing. If the store has no room, the fetch asks it to make some and reports the result (`roomMade`).
struct FetchOutput: ~Copyable {
    /// When to write the bytes just taken in.
    enum Urgency {
        case now
        /// Now, and then give other connections a turn: these are the first bytes that somebody waits for.
        case first
        /// After the transfer's callback; the fetch then calls `flushed`.
        case afterCallback
        /// With the bytes that come next, or after the callback that is already planned.
        case later
        /// Not at all: the answer does not continue the bytes that were received before.
        case contradicted
    }

    /// The first bytes of a buffer, to be written into the generation.
    struct Write {
        let writer: ChunkWriter
        let buffer: StagingBuffer
        /// In bytes.
        let count: Int
        /// Whether another thread does the writing.
        let isLong: Bool

        func run() -> ChunkWriter.Outcome {
            writer.append(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
        }

        /// Writes on another thread and delivers the result there.
        func run(then deliver: @escaping @Sendable (ChunkWriter.Outcome) -> Void) {
            writer.append(buffer, count: count, then: deliver)
        }
    }

    /// The consequence of a write.
    enum Step {
        /// More bytes are wanted.
        case more
        /// Everything wanted has arrived.
        case complete
        /// Everything wanted has arrived, and the answer still continues.
        case beyond
        /// It has reached chunks that are present, or that another fetch is writing.
        case met
        /// Nothing can be taken in until the store has made room (`roomMade`).
        case noRoom
        case failed(StoreError)
        /// The output was closed during the write.
        case closed
    }

    /// How an answer ended that did not break off.
    enum AnswerEnd: Equatable {
        /// No header said where its bytes belong.
        case noHead
        case complete
        /// The origin sends less at a time than was requested: request the rest at once.
        case inPart
        /// The body is this many bytes shorter than announced.
        case short(by: Int64)
    }

    let status: SharedFetch
    let filler: CacheFiller
    let demand: Demand
    /// Writes its generation; nil before the origin has stated what it sends.
    var writer: ChunkWriter?
    /// The offset of the next byte to write.
    private(set) var position: Int64
    /// The end of what is wanted; `Int64.max` while unknown.
    private(set) var end: Int64
    /// Bytes written so far, those written again included.
    private(set) var delivered: Int64 = 0
    /// Nothing is taken in until there is room.
    private(set) var isWaitingForRoom = false
    var held = HeldExtents()
    /// The range that the current answer announces; without an upper end if it is the whole.
    private var answered: Range<Int64> = 0..<Int64.max
    /// The position when the current answer began.
    private var answerStart: Int64 = 0
    /// Leading bytes of the answer to drop: they lie before the first whole chunk, or were received before.
    private var surplus: Int64 = 0
    /// Shows that another answer continues bytes without a strong validator; nil where that is not needed.
    private var continuity: Continuity?
    /// Collects the body, where the response is to become a short one; nil otherwise.
    var short: ShortResponse.Intake?
    private(set) var staging = Staging()
    private var isFlushDue = false
    /// Where the follower that is furthest behind was when the last bytes came; nil without followers.
    private var neededFrom: Int64?
    /// The position, if followers learn it only with the end.
    private(set) var unreported: Int64?
    /// Whether the first bytes that somebody waits for have been written.
    private var hasBegun = false
    private var isClosed = false
    private let origin: OriginCounters.Origin
    /// What waits for the disk, or passes through memory, of the bytes in transit; nil while little does.
    private var transit: ProxyMetrics.Transit.Share?

    /// Write as soon as this many bytes are staged; during a write, about twice as many are received in advance.
    private static let stagingBytes = 256 << 10
    /// Longer writes go to another thread: the disk might block the loop, and beside the write a switch of threads is
    /// cheap.
    private static let onLoopBytes = 64 << 10

    /// - Parameter origin: the counters of its origin.
    init(
        _ range: Range<Int64>, _ status: SharedFetch, _ filler: CacheFiller, _ demand: Demand,
        _ origin: OriginCounters.Origin
    ) {
        (self.status, self.filler, self.demand, self.origin) = (status, filler, demand, origin)
        (position, end) = (range.lowerBound, range.upperBound)
    }

    /// The range still to come.
    var wanted: Range<Int64> { position..<max(position, end) } // no trap: at least position

    /// The end of the bytes taken in so far.
    var received: Int64 { position +| Int64(staging.count) }

    // MARK: Answers

    /// Starts writing a generation.
    /// - Parameters:
    ///   - start: the chunk boundary to start at; nil for the current position.
    ///   - end: the end of what is wanted; nil to keep the current one.
    ///   - surplus: how many leading bytes of the answer to drop.
    mutating func begin(
        _ generation: Generation, at start: Int64? = nil, upTo end: Int64? = nil, surplus: Int64 = 0,
        stopsAtPresent: Bool
    ) {
        position = start ?? position
        self.end = end ?? self.end
        self.surplus = surplus
        answerStart = position
        writer = ChunkWriter(generation, at: position, stopsAtPresent: stopsAtPresent, in: filler.store)
        let isCertain = !demand.resolvedRule.mayMove || generation.head.rangeCondition != nil
        continuity = isCertain ? nil : Continuity()
    }

    /// Continues the same bytes with another answer.
    /// - Parameter surplus: how many leading bytes of the answer were received before.
    mutating func resume(surplus: Int64) {
        self.surplus = surplus
        answerStart = position
        continuity?.beginComparing()
    }

    /// How many of the bytes before the position another answer has to repeat; 0 if a validator shows its version.
    var overlap: Int64 { continuity?.length ?? 0 }

    /// Forgets the last answer's range: a new request goes out.
    mutating func beginAnswer() { answered = 0..<Int64.max }

    /// Records the range that the answer announces.
    mutating func expect(_ range: Range<Int64>) { answered = range }

    var isAnswered: Bool { received >= answered.upperBound }

    /// Whether nothing of the answer has been written.
    var isAnswerEmpty: Bool { position == answerStart }

    /// Call when the answer has ended and all its bytes are written.
    mutating func answerEnded() -> AnswerEnd {
        guard let writer else { return .noHead }
        if end == .max, answered.upperBound == .max {
            // Without a length, the end of the body is the end of the resource. That of a part is not.
            keepShort()
            writer.finish()
            return .complete
        }
        if position >= end { return .complete }
        // An answer that delivered next to nothing counts as cut short. What it repeats is nothing.
        let isEnough = position == answered.upperBound && position -| answerStart >= Int64(Self.onLoopBytes)
        return isEnough ? .inPart : .short(by: (end == .max ? answered.upperBound : end) -| position)
    }

    // MARK: Taking in

    /// What can be done with further bytes of the answer.
    enum Readiness {
        /// Something must be written before more can be taken in.
        case full
        /// The whole announced range has been received; they are dropped.
        case answered
        /// They can be taken in, after those up to `received`, of which those up to `position` are written.
        /// - window: how far the bytes in transit let it go past its reader, where these are in memory.
        case open(received: Int64, position: Int64, window: Int64)
    }

    /// - Parameter isLast: whether only the chunk in progress is still wanted.
    func readiness(isLast: Bool) -> Readiness {
        if isFull || isLast && isChunkComing { return .full }
        return isAnswered ? .answered : .open(received: received, position: position, window: window)
    }

    /// Whether something must be written before more can be taken in.
    var isFull: Bool {
        isWaitingForRoom || staging.isWriting && staging.next.count >= 2 * Self.stagingBytes
            || staging.isWriting && transit.map { Int64(staging.next.count) >= $0.window } == true
    }

    private var window: Int64 { writer?.generation.isStored == false ? transit?.window ?? .max : .max }

    mutating func countTransit() -> ProxyMetrics.Transit.Share {
        let share = transit ?? filler.metrics.transit.share(of: demand.client)
        transit = share
        return share
    }

    /// Whether another transfer can go on where this one ends.
    var canBeContinued: Bool {
        guard let generation = writer?.generation, generation.isStored, !generation.isRetired, end < .max else {
            return false
        }
        return generation.head.rangeCondition != nil && status.read(\.isUnresumable) == false
    }

    /// Takes in bytes of the answer. Call only if it is `open`.
    /// - Parameters:
    ///   - offset: of the follower that is furthest behind; nil without followers.
    ///   - isLast: whether only the chunk in progress is still wanted.
    mutating func take(_ bytes: UnsafeRawBufferPointer, neededFrom offset: Int64?, isLast: Bool) -> Urgency {
        neededFrom = offset
        let wanted = Int(min(answered.upperBound -| received, Int64(bytes.count)))
        let dropped = Int(min(surplus, Int64(bytes.count)))
        surplus -= Int64(dropped) // no trap: not more than it
        guard continuity?.continues(with: UnsafeRawBufferPointer(rebasing: bytes[..<dropped])) ?? true else {
            return .contradicted
        }
        let taken = UnsafeRawBufferPointer(rebasing: bytes[dropped...].prefix(wanted))
        staging.next.append(taken)
        if short != nil { collect(taken) }
        if staging.next.count >= Self.stagingBytes || isLast && bytesToChunkEnd <= Int64(staging.count) { return .now }
        if !hasBegun, end -| position > Int64(Self.onLoopBytes), let offset,
            offset < position +| Int64(staging.next.count)
        {
            hasBegun = true
            return .first
        }
        guard !isFlushDue else { return .later }
        isFlushDue = true
        return .afterCallback
    }

    /// The callback after which a write was planned is over.
    mutating func flushed() { isFlushDue = false }

    /// Drops unwritten bytes of a broken answer: they will be sent again.
    mutating func dropStaged() { staging.next.removeAll() }

    /// Frees the buffers of a paused transfer.
    mutating func releaseMemory() {
        staging.release()
        if let generation = writer?.generation, !generation.isStored {
            discardPassed(of: generation)
        } else if !staging.isWriting {
            transit = nil
        }
    }

    // MARK: Writing

    /// The next write, if one is due. Curl delivers small pieces, and the file system takes large ones better; while
    /// another thread writes, the next bytes are received.
    /// - Parameter isLast: whether only the chunk in progress is still wanted.
    mutating func nextWrite(isLast: Bool) -> Write? {
        guard !isClosed, !isWaitingForRoom, !staging.isWriting, let writer, !staging.next.isEmpty else { return nil }
        let count = isLast ? upToChunkEnd(wantedOfNext) : wantedOfNext
        hold(position..<position +| Int64(max(count, 1))) // no trap: its end is above
        let isLong = (count > Self.onLoopBytes || writer.fillsGaps) && writer.generation.isStored
        if isLong { countTransit().hold(Int64(staging.capacity)) }
        return Write(writer: writer, buffer: isLong ? staging.handOver() : staging.next, count: count, isLong: isLong)
    }

    /// Takes the result of a write.
    mutating func wrote(_ outcome: ChunkWriter.Outcome, _ write: Write) -> Step {
        if write.isLong { staging.handedBack() }
        switch outcome {
        case .taken(let count), .noRoom(let count), .met(let count):
            continuity?.note(UnsafeRawBufferPointer(rebasing: write.buffer.bytes[..<count]))
            let isLast = if case .taken = outcome { position +| Int64(count) >= end } else { false }
            advance(by: count, isLast: isLast)
        case .failed(let error):
            filler.store.reportDisk(
                "write fetched bytes, so responses continue uncached", error, label: "disk-write")
        }
        if isClosed {
            writer?.close()
            return .closed
        }
        switch outcome {
        case .taken(let count):
            staging.wrote(count, of: write.buffer)
            return position < end ? .more : staging.next.isEmpty ? .complete : .beyond
        case .met: return .met
        case .noRoom(let count):
            staging.wrote(count, of: write.buffer)
            isWaitingForRoom = true
            return .noRoom
        case .failed(let error):
            staging.wrote(0, of: write.buffer)
            return spill("the disk failed") ? .more : .failed(error)
        }
    }

    /// - Parameter isLast: whether the fetch ends now, which wakes the followers.
    private mutating func advance(by count: Int, isLast: Bool) {
        guard count > 0 else { return }
        position +|= Int64(count)
        delivered +|= Int64(count)
        filler.metrics.upstreamBytes.add(Int64(count))
        origin.received.add(Int64(count))
        guard !isClosed else { return }
        if isLast { unreported = position } else { status.ring { $0.wrote(upTo: position) } }
        letPass()
    }

    /// The store has tried to make room.
    /// - Parameter found: whether it succeeded.
    /// - Returns: whether the fetch can continue, in the store or in a buffer.
    mutating func roomMade(_ found: Bool) -> Bool {
        guard found || makeRoomBehind() || spill("the cache has no room") else { return false }
        isWaitingForRoom = false
        return true
    }

    /// No follower needs what is held.
    mutating func letGo() {
        held.releaseAll()
        neededFrom = nil
    }

    /// Stops writing, once the write in progress is done.
    mutating func close() {
        isClosed = true
        if !staging.isWriting { writer?.close() }
        held.releaseAll()
    }

    /// Pins what a rule pins, and discards what the origin no longer has and nobody keeps, and what is incomplete and
    /// no other transfer can complete, because it lacks a length or a validator.
    /// - Parameter known: the generation that the bytes had to belong to.
    func conclude(_ end: FetchEnd, _ known: Generation?) {
        if case .failed(.originStatus(let code)) = end, Reuse.isGone(status: code), let known, known.isStored,
            !status.isForDownloads, !known.isKept
        {
            filler.discard(known, of: status.resource)
        }
        if let hidden = writer?.generation ?? known, hidden.isHidden {
            filler.endSuccession(of: hidden, in: status.resource, demand, end)
        }
        guard let generation = writer?.generation, generation.isStored else { return }
        if demand.resolvedRule.pins { filler.pin(generation, of: status.resource) }
        if case .completed = end { return }
        guard generation.length == nil || generation.head.rangeCondition == nil else { return }
        filler.discard(generation, of: status.resource)
    }

    private mutating func hold(_ range: Range<Int64>) {
        guard let generation = writer?.generation, generation.isStored, let reader = neededFrom else { return }
        // One more than fits the window: it begins and ends within an extent.
        let most = Int(filler.window(of: demand).limit / generation.geometry.extentSize) +| 2 // no trap: above 0
        held.hold(range, of: generation, readFrom: reader, atMost: most)
    }

    private var wantedOfNext: Int {
        end == .max ? staging.next.count : Int(max(0, min(Int64(staging.next.count), end -| position)))
    }

    // MARK: The chunk in progress

    /// Whether part of it has been written.
    var isInChunk: Bool {
        guard let geometry = writer?.generation.geometry else { return false }
        return geometry.chunkStart(geometry.chunk(at: position)) != position
    }

    /// Whether its missing bytes cost less than requesting it again.
    var isChunkWorthFinishing: Bool {
        guard let generation = writer?.generation else { return false }
        let chunk = generation.geometry.chunkBytes(generation.geometry.chunk(at: position), length: generation.length)
        return Self.isWorthFinishing(received: received -| chunk.lowerBound, of: Int64(chunk.count))
    }

    /// The cost of another request, expressed in bytes that could have arrived meanwhile.
    private static let requestCost: Int64 = 16 << 10

    /// Whether a chunk's missing bytes cost less than requesting it again; an incomplete chunk is not kept.
    static func isWorthFinishing(received: Int64, of size: Int64) -> Bool {
        received > 0 && size -| received <= received +| requestCost
    }

    /// Its bytes that are not written yet.
    private var bytesToChunkEnd: Int64 {
        guard let generation = writer?.generation else { return .max }
        return generation.geometry.chunkBytes(generation.geometry.chunk(at: position), length: generation.length)
            .upperBound -| position
    }

    /// Whether the write in hand ends with a chunk, or the rest of the chunk that it ends in has come.
    private var isChunkComing: Bool {
        guard staging.isWriting, let geometry = writer?.generation.geometry else { return false }
        return geometry.chunkStart(geometry.chunk(at: received)) >= received -| Int64(staging.next.count)
    }

    /// Shortens a count of bytes so that they end with a chunk; unchanged if no chunk ends among them.
    private func upToChunkEnd(_ count: Int) -> Int {
        guard let geometry = writer?.generation.geometry else { return count }
        let boundary = geometry.chunkStart(geometry.chunk(at: position +| Int64(count)))
        return boundary > position ? Int(boundary -| position) : count
    }
}
