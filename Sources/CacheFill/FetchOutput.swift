import CachePolicy
import DiskCache
import HTTPModel

/// Where what a fetch receives goes: into a generation, by way of staging buffers. Bound to the fetch's loop.
///
///     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓[ staging ]░░░░░░░░░░░░░░░│
///     held for readers      ▲         ▲              end
///                        position  received
///
/// It says when something is to be written (`take`), what (`nextWrite`), and what follows from how that went (`wrote`);
/// the fetch does it. Where the store has no room, it is to make some, and then `roomMade`.
struct FetchOutput {
    /// When what was taken in is to be written.
    enum Urgency {
        case now
        /// Now, and then others have their turn: it is what somebody waits for first.
        case first
        /// When the transfer's callback is over: the fetch sees to that, and says `flushed`.
        case afterCallback
        /// With what comes next, or when that callback is over.
        case later
    }

    /// The first bytes of a buffer, on their way into the generation.
    struct Write {
        let writer: ChunkWriter
        let buffer: StagingBuffer
        /// Bytes.
        let count: Int
        /// Whether another thread is to do it.
        let isLong: Bool

        func run() -> ChunkWriter.Outcome {
            writer.append(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
        }

        /// Writes on another thread, and delivers there.
        func run(then deliver: @escaping @Sendable (ChunkWriter.Outcome) -> Void) {
            writer.append(buffer, count: count, then: deliver)
        }
    }

    /// What follows from a write.
    enum Step {
        /// There is more to come.
        case more
        /// All that is wanted is there.
        case complete
        /// So it is, and the answer goes on.
        case beyond
        /// It has come to what is there, or to what another one is writing.
        case met
        /// Nothing is taken in until the store has made room (`roomMade`).
        case noRoom
        case failed(StoreError)
        /// Closed while it was being written.
        case closed
    }

    /// How an answer has ended that did not break off.
    enum AnswerEnd: Equatable {
        /// It had no head that told where its bytes belong.
        case noHead
        case complete
        /// The origin sends less at a time than was asked for: the rest is to be asked for at once.
        case inPart
        /// The body is so many bytes shorter than was told.
        case short(by: Int64)
    }

    let status: SharedFetch
    let filler: CacheFiller
    let demand: Demand
    var writer: ChunkWriter?
    /// Where the next byte goes.
    private(set) var position: Int64
    /// Past the last byte that is wanted; `Int64.max` while unknown.
    private(set) var end: Int64
    /// Bytes that have been written, whatever they were asked for again.
    private(set) var brought: Int64 = 0
    /// Nothing is taken in until there is room.
    private(set) var isWaitingForRoom = false
    var held = HeldExtents()
    /// What the answer that is coming in brings, by its own account; without an upper end where it is the whole.
    private var answered: Range<Int64> = 0..<Int64.max
    /// Bytes ahead in the response that are not wanted: before the first whole chunk, or sent again.
    private var surplus: Int64 = 0
    private var staging = Staging()
    private var isFlushDue = false
    /// What somebody waits for first has been written.
    private var hasBegun = false
    private var isClosed = false

    /// Written as soon as there are so many bytes; while they are, about twice as many are received in advance.
    private static let stagingBytes = 256 << 10
    /// Beyond this the disk might make the loop wait, and a switch of threads is cheap beside the write.
    private static let onLoopBytes = 64 << 10

    init(_ range: Range<Int64>, _ status: SharedFetch, _ filler: CacheFiller, _ demand: Demand) {
        (self.status, self.filler, self.demand) = (status, filler, demand)
        (position, end) = (range.lowerBound, range.upperBound)
    }

    /// What it goes into; nil before the origin has said what comes.
    var generation: Generation? { writer?.generation }

    /// What is yet to come.
    var wanted: Range<Int64> { position..<max(position, end) } // no trap: at least position

    /// Up to where bytes were taken in.
    var received: Int64 { position +| Int64(staging.count) }

    var isWriting: Bool { staging.isWriting }

    // MARK: Answers

    /// Bytes come for a generation.
    /// - Parameters:
    ///   - start: of a chunk; nil for where this is.
    ///   - end: past the last byte that is wanted; nil for what was wanted before.
    ///   - surplus: bytes that come before these, and are not wanted.
    mutating func begin(
        _ generation: Generation, at start: Int64? = nil, upTo end: Int64? = nil, surplus: Int64 = 0,
        stopsAtPresent: Bool
    ) {
        position = start ?? position
        self.end = end ?? self.end
        self.surplus = surplus
        writer = filler.store.writer(generation, at: position, stopsAtPresent: stopsAtPresent)
    }

    /// Another answer goes on with the same bytes.
    /// - Parameter surplus: bytes that come before these, and are here already.
    mutating func resume(surplus: Int64) { self.surplus = surplus }

    /// The origin is asked: nothing is known of its answer.
    mutating func beginAnswer() { answered = 0..<Int64.max }

    /// The answer says that it brings this.
    mutating func expect(_ range: Range<Int64>) { answered = range }

    /// Whether all has come that the answer was to bring: what comes beyond that is of no use.
    var isAnswered: Bool { received >= answered.upperBound }

    /// The answer has ended, and all that it has brought is written.
    func answerEnded() -> AnswerEnd {
        guard let writer else { return .noHead }
        if end == .max {
            // Without a length the end of the body is the end of the resource.
            writer.finish()
            return .complete
        }
        if position >= end { return .complete }
        // Unless what has come is next to nothing.
        let isEnough = position == answered.upperBound && position -| answered.lowerBound >= Int64(Self.onLoopBytes)
        return isEnough ? .inPart : .short(by: end -| position)
    }

    // MARK: Taking in

    /// Whether nothing more can be taken in before something is written.
    var isFull: Bool {
        isWaitingForRoom || staging.isWriting && staging.next.count >= 2 * Self.stagingBytes
    }

    /// Takes what has come of the answer. Neither `isFull` nor `isAnswered`.
    /// - Parameter isLast: whether no more is wanted than the chunk in progress.
    mutating func take(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> Urgency {
        let wanted = Int(min(answered.upperBound -| received, Int64(bytes.count)))
        let dropped = Int(min(surplus, Int64(bytes.count)))
        surplus -= Int64(dropped) // no trap: not more than it
        staging.next.append(UnsafeRawBufferPointer(rebasing: bytes[dropped...].prefix(wanted)))
        if staging.next.count >= Self.stagingBytes || isLast && bytesToChunkEnd <= Int64(staging.count) { return .now }
        if !hasBegun, end -| position > Int64(Self.onLoopBytes), let needed = status.slowestFollower,
            needed < position +| Int64(staging.next.count)
        {
            hasBegun = true
            return .first
        }
        guard !isFlushDue else { return .later }
        isFlushDue = true
        return .afterCallback
    }

    /// The callback after which something was to be written is over.
    mutating func flushed() { isFlushDue = false }

    /// What a broken answer has brought is not wanted: it comes once more.
    mutating func dropStaged() { staging.next.removeAll() }

    /// A paused transfer holds no memory.
    mutating func releaseMemory() { staging.release() }

    // MARK: Writing

    /// What is to be written now, if anything is. Curl hands bytes over in small pieces; the file system takes large
    /// ones better, and while another thread is at it the next ones come in.
    /// - Parameter isLast: whether no more is wanted than the chunk in progress.
    mutating func nextWrite(isLast: Bool) -> Write? {
        guard !isClosed, !isWaitingForRoom, !staging.isWriting, let writer, !staging.next.isEmpty else { return nil }
        let count = isLast ? upToChunkEnd(wantedOfNext) : wantedOfNext
        hold(position..<position +| Int64(max(count, 1))) // no trap: its end is above
        let isLong = count > Self.onLoopBytes && writer.generation.isStored
        return Write(writer: writer, buffer: isLong ? staging.handOver() : staging.next, count: count, isLong: isLong)
    }

    /// A write is over.
    mutating func wrote(_ outcome: ChunkWriter.Outcome, _ write: Write) -> Step {
        if write.isLong { staging.handedBack() }
        switch outcome {
        case .taken(let count), .noRoom(let count), .met(let count): advance(by: count)
        case .failed(let error):
            filler.store.reportDisk(
                "write what was fetched, so responses go on without the cache", error, label: "disk-write")
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
            return spill("it could not be written") ? .more : .failed(error)
        }
    }

    private mutating func advance(by count: Int) {
        guard count > 0 else { return }
        position +|= Int64(count)
        brought +|= Int64(count)
        filler.metrics.upstreamBytes.add(Int64(count))
        guard !isClosed else { return }
        status.published(position)
        letPass()
    }

    /// The store has looked for room.
    /// - Parameter found: whether there is some now.
    /// - Returns: whether it goes on, there or elsewhere.
    mutating func roomMade(_ found: Bool) -> Bool {
        guard found || makeRoomBehind() || spill("the cache has no room") else { return false }
        isWaitingForRoom = false
        return true
    }

    /// Nothing more is written, once what is being written is.
    mutating func close() {
        isClosed = true
        if !staging.isWriting { writer?.close() }
        held.releaseAll()
    }

    private mutating func hold(_ range: Range<Int64>) {
        guard let generation, generation.isStored, let reader = status.slowestFollower else { return }
        // One more than the window, as it begins and ends within an extent.
        let most = Int(filler.window(of: demand).limit / generation.geometry.extentSize) +| 2 // no trap: above 0
        held.hold(range, of: generation, readFrom: reader, atMost: most)
    }

    private var wantedOfNext: Int {
        end == .max ? staging.next.count : Int(max(0, min(Int64(staging.next.count), end -| position)))
    }

    // MARK: The chunk in progress

    /// Whether something of it has come.
    var isInChunk: Bool {
        guard let geometry = generation?.geometry else { return false }
        return geometry.chunkStart(geometry.chunk(at: position)) != position
    }

    /// Whether what is missing of it costs less than to ask for all of it again.
    var isChunkWorthFinishing: Bool {
        guard let generation else { return false }
        let chunk = generation.geometry.chunkBytes(generation.geometry.chunk(at: position), length: generation.length)
        return LeftChunk.isWorthFinishing(received: received -| chunk.lowerBound, of: Int64(chunk.count))
    }

    /// What is yet to be written of it.
    private var bytesToChunkEnd: Int64 {
        guard let generation else { return .max }
        return generation.geometry.chunkBytes(generation.geometry.chunk(at: position), length: generation.length)
            .upperBound -| position
    }

    /// Of so many bytes, those that end with a chunk; all, where the chunk's end is not among them.
    private func upToChunkEnd(_ count: Int) -> Int {
        guard let geometry = generation?.geometry else { return count }
        let boundary = geometry.chunkStart(geometry.chunk(at: position +| Int64(count)))
        return boundary > position ? Int(boundary -| position) : count
    }
}
