import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Metrics
import Upstream

/// One gap being filled: a transfer, retried from its frontier, into a generation. Loop-bound.
///
///     frontier ──┐          ┌── end (the next chunk that is there, or what was asked for)
///     ▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░░│▓▓▓
///     in the file   to come    present before
package final class Fetch: TransferDelegate {
    enum Purpose: Sendable {
        /// Find out what the resource is, or whether it still is what is stored.
        case opening(UpstreamRequest.Span?, owner: FollowerID, isShared: Bool, validating: Generation?)
        /// Fill a gap of a generation that is known.
        case gap(Generation)
        /// Bring bytes of a known generation past the cache.
        case bypass(Generation, owner: FollowerID)
    }

    let status: SharedFetch
    let owner: LoopFiller
    /// The loop whose request asked for it.
    let home: Int
    let purpose: Purpose
    let demand: Demand
    var transfer: Transfer?
    var writer: ChunkWriter?
    /// Where the next byte goes.
    var position: Int64
    /// Past the last byte that is wanted; `Int64.max` while unknown.
    var end: Int64
    /// What the answer that is coming in brings, by its own account; without an upper end where it is the whole.
    var answered: Range<Int64> = 0..<Int64.max
    /// Bytes ahead in the response that are not wanted: before the first whole chunk, or sent again.
    var surplus: Int64 = 0
    var staging = Staging()
    private var isFlushDue = false
    /// What somebody waits for first has been written.
    private var hasBegun = false
    private var isWaitingForRoom = false
    /// The transfer is paused until what was received is written.
    var isHeldBack = false
    /// The transfer has ended, but not all that it brought is written.
    private var transferEnd: TransferEnd?
    private struct TransferEnd { let error: UpstreamError? }
    /// Written as soon as there are so many bytes; while they are, about twice as many are received in advance.
    private static let stagingBytes = 256 << 10
    /// Beyond this the disk might make the loop wait, and a switch of threads is cheap beside the write.
    private static let onLoopBytes = 64 << 10
    private var attempt = 0
    /// When the origin was asked last, in seconds since 1970.
    private(set) var requestedAt: Int64 = 0
    /// What is stored is asked for as if it were not there: the origin has answered about another version.
    var asksUnconditionally = false
    /// Seconds that it waits at most for a host that wants to be left alone.
    private var patience: Double
    private(set) var askedURL = ""
    /// Where the first one redirected to refuses by now (signed URLs expire), the first is asked again.
    var asksFirstURL = false
    /// Each answer is another version: only the whole, in one, is one.
    var asksWhole = false
    /// Whether the resource's play counts this transfer.
    var isOfPlay = false
    var hasEnded = false
    /// Nobody followed it when it was last looked.
    var isLingering = false
    var isStopping = false
    private var retryTimer: LoopTimer?
    var stopTimer: LoopTimer?
    /// The extents between the slowest follower and the frontier: they must not be evicted before they are read.
    var heldExtents: [HeldLease] = []

    init(
        _ status: SharedFetch, _ owner: LoopFiller, home: Int, _ purpose: Purpose, _ demand: Demand,
        _ range: Range<Int64>, isMidway: Bool
    ) {
        self.status = status
        self.owner = owner
        self.home = home
        self.purpose = purpose
        self.demand = demand
        (position, end) = (range.lowerBound, range.upperBound)
        let settings = owner.filler.settings
        patience = status.isForDownloads ? 0 : isMidway ? settings.longestMidwayWait : settings.longestWait
        // Who has a stored response is not kept waiting.
        if case .opening(_, _, _, .some) = purpose { patience = 0 }
        status.attach(LoopBound(self, on: owner.loop))
    }

    var resource: OpenResource { status.resource }
    var filler: CacheFiller { owner.filler }
    var store: CacheStore { owner.filler.store }

    func start(_ reason: FetchReason) {
        // A broken transfer does not go on either.
        guard !owner.isOffline else { return finish(.failed(.offline)) }
        let request = request()
        let wait = filler.backoff.wait(before: request.url)
        guard wait == 0 else {
            guard wait <= patience else { return fail(.busy(retryAfter: Int64(wait.rounded(.up)))) }
            return startLater(reason, afterSeconds: Self.spread(wait))
        }
        filler.metrics.upstreamReasons[reason].add()
        if reason == .resume { filler.metrics.resumedTransfers.add() }
        askedURL = request.url
        answered = 0..<Int64.max
        requestedAt = filler.now()
        transfer = owner.upstream.start(request, delegate: self)
    }

    package func transfer(_ transfer: Transfer, isIn phase: UpstreamError.Phase) { status.isIn(phase) }

    /// Its followers have come or gone.
    func hear(_ notice: ResourceState.Notice) {
        switch notice {
        case .goOn: resume()
        case .hurry: transfer?.hurry()
        case .considerStopping: considerStopping()
        case .endLinger: endLinger()
        }
    }

    /// Leaves the answer that has begun, and asks once more.
    func askAgain() {
        transfer?.cancel()
        transfer = nil
        start(.validation)
    }

    private func startLater(_ reason: FetchReason, afterSeconds seconds: Double) {
        let timer = LoopTimer(on: owner.loop) { [unowned self] in start(reason) }
        retryTimer = timer
        timer.schedule(afterSeconds: seconds)
    }

    /// Those who wait for one host do not all come at once.
    private static func spread(_ wait: Double) -> Double { wait + .random(in: 0...min(1, wait / 10)) }

    private func request() -> UpstreamRequest {
        let url = knownGeneration.map(urlOfGaps) ?? sourceOfPlay ?? demand.url.absolute
        var fields = knownGeneration == nil ? demand.openingFields(to: url) : demand.fields(to: url)
        var span: UpstreamRequest.Span?
        if let generation = knownGeneration {
            // RFC 9110 §13.1.5: with If-Range the origin sends the whole where the part would be another version's.
            if let condition = generation.head.rangeCondition { fields.append("If-Range", condition) }
            span = end == .max ? .from(position) : .bounded(position..<end)
        } else if case .opening(let wanted, _, _, let validated) = purpose {
            span = asksWhole ? nil : wanted
            // RFC 9110 §13.2.2: the condition is looked at before the range; the part comes only where it is of another
            // version.
            if let validated, !asksUnconditionally {
                fields.lines += Freshening.conditions(for: validated.head.fields)?.lines ?? []
            }
        }
        var request = UpstreamRequest(url: url, method: .get, span: span, fields: fields, confined: demand.confined)
        request.priority = status.isForDownloads ? .download : .playback
        return request
    }

    /// Origins that stitch each answer anew do so behind a redirect: the gaps come from where the rest came from.
    private func urlOfGaps(_ generation: Generation) -> String {
        asksFirstURL ? demand.url.absolute : redirected(to: generation.head.finalURL) ?? demand.url.absolute
    }

    /// A URL, if it is where the demanded one redirects to.
    func redirected(to final: String) -> String? {
        guard final != demand.url.absolute, let finalURL = try? OriginURL(url: final) else { return nil }
        // No redirect, but another URL of the same key, by which somebody else asked: perhaps with a token that has
        // expired.
        let policy = filler.policy.value
        return policy.resolve(finalURL).key == policy.resolve(demand.url).key ? nil : final
    }

    /// The generation whose bytes have to come; nil until an opening fetch knows.
    var knownGeneration: Generation? {
        switch purpose {
        case .gap(let generation), .bypass(let generation, _): generation
        case .opening: writer?.generation
        }
    }

    /// The stored generation that its origin is asked about.
    var validated: Generation? { if case .opening(_, _, _, let validated) = purpose { validated } else { nil } }

    // MARK: The transfer

    package func transfer(_ transfer: Transfer, receivedHead head: UpstreamHead) {
        guard !hasEnded else { return }
        status.answered(head.status)
        filler.backoff.note(head, asking: askedURL)
        do throws(FillError) {
            try accept(head)
        } catch {
            failOrRetry(error, isTransient: Self.isTransient(head))
        }
    }

    package func transfer(_ transfer: Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        guard !hasEnded else {
            // More than was asked for.
            transfer.cancel()
            owner.ended(self)
            return true
        }
        if isWaitingForRoom || staging.isWriting && staging.next.count >= 2 * Self.stagingBytes {
            isHeldBack = true
            return false
        }
        let received = position + Int64(staging.count)
        guard received < answered.upperBound else { return endAnswer(transfer) }
        guard isStopping || !status.pauseIfFarAhead(received: received, writtenTo: position) else {
            // A paused transfer holds no memory.
            staging.release()
            return false
        }
        let dropped = min(surplus, Int64(bytes.count))
        surplus -= dropped
        staging.next.append(
            UnsafeRawBufferPointer(
                rebasing: bytes[Int(dropped)...].prefix(Int(min(answered.upperBound - received, Int64(bytes.count))))))
        if staging.next.count >= Self.stagingBytes || isStopping && bytesToChunkEnd <= Int64(staging.count) {
            flush()
        } else if !hasBegun, end - position > Int64(Self.onLoopBytes), let wanted = status.slowestFollower,
            wanted < position + Int64(staging.next.count)
        {
            hasBegun = true
            flush()
            yieldTurn()
        } else if !isFlushDue {
            isFlushDue = true
            owner.loop.afterCallback { [self] in
                isFlushDue = false
                flush()
            }
        }
        return true
    }

    /// What comes beyond the end that the answer itself has told is of no use.
    private func endAnswer(_ transfer: Transfer) -> Bool {
        transfer.cancel()
        self.transfer = nil
        transferEnd = TransferEnd(error: nil)
        owner.loop.afterCallback { [self] in goOn() }
        return true
    }

    /// Curl reads on for as long as there is something, up to a hundred buffers, and nobody else on this loop gets a
    /// turn.
    private func yieldTurn() {
        guard !hasEnded, home == owner.loop.index else { return }
        isHeldBack = true
        transfer?.pause()
        owner.loop.afterCallback { [self] in goOn() }
    }

    /// Writes what came in. Curl hands bytes over in small pieces; the file system takes large ones better, and while
    /// another thread is at it the next ones come in.
    private func flush() {
        guard !hasEnded, !isWaitingForRoom, !staging.isWriting, let writer, !staging.next.isEmpty else { return }
        let count = isStopping ? upToChunkEnd(wantedOfNext) : wantedOfNext
        hold(through: position)
        hold(through: position + Int64(max(count, 1)) - 1)
        guard count > Self.onLoopBytes, writer.generation.isStored else {
            let outcome = writer.append(UnsafeRawBufferPointer(rebasing: staging.next.bytes[..<count]))
            return written(outcome, of: staging.next)
        }
        let buffer = staging.handOver()
        let bound = LoopBound(self, on: owner.loop)
        writer.append(buffer, count: count) { [bound] outcome in
            bound.post { fetch in
                fetch.staging.handedBack()
                fetch.written(outcome, of: buffer)
            }
        }
    }

    private func written(_ outcome: ChunkWriter.Outcome, of buffer: StagingBuffer) {
        switch outcome {
        case .taken(let count):
            advance(by: count)
            staging.wrote(count, of: buffer)
            guard !hasEnded else { break }
            if position < end {
                stopAtChunkEnd()
            } else if staging.next.isEmpty {
                complete()
            } else {
                finish(.completed)
            }
        case .met(let count):
            advance(by: count)
            finish(.stopped)
        case .noRoom(let count):
            advance(by: count)
            staging.wrote(count, of: buffer)
            if !hasEnded { makeRoom() }
        case .failed(let error):
            store.reportDisk("write what was fetched, so responses go on without the cache", error, label: "disk-write")
            staging.wrote(0, of: buffer)
            if !hasEnded, !spill("it could not be written") { finish(.failed(.notStored("\(error)"))) }
        }
        // Ended by someone else while another thread was writing.
        if hasEnded { writer?.close() } else { goOn() }
    }

    /// There is room, or something has been written: what waited for that.
    private func goOn() {
        flush()
        guard !hasEnded, !isWaitingForRoom else { return }
        if isHeldBack {
            isHeldBack = false
            transfer?.resume()
        }
        if transfer?.isPaused == true { staging.release() }
        if !staging.isWriting, let end = transferEnd {
            transferEnd = nil
            transferEnded(end.error)
        }
    }

    private var wantedOfNext: Int {
        end == .max ? staging.next.count : Int(max(0, min(Int64(staging.next.count), end - position)))
    }

    /// What is yet to be written of the chunk in progress.
    private var bytesToChunkEnd: Int64 {
        guard let generation = writer?.generation else { return .max }
        return generation.geometry.chunkBytes(generation.geometry.chunk(at: position), length: generation.length)
            .upperBound - position
    }

    /// Of so many bytes, those that end with a chunk; all, where the chunk's end is not among them.
    private func upToChunkEnd(_ count: Int) -> Int {
        guard let geometry = writer?.generation.geometry else { return count }
        let boundary = geometry.chunkStart(geometry.chunk(at: position + Int64(count)))
        return boundary > position ? Int(boundary - position) : count
    }

    private func advance(by count: Int) {
        guard count > 0 else { return }
        position += Int64(count)
        attempt = 0
        filler.metrics.upstreamBytes.add(Int64(count))
        guard !hasEnded else { return }
        status.published(position)
        letPass()
    }

    private func makeRoom() {
        isWaitingForRoom = true
        isHeldBack = true
        transfer?.pause()
        let bound = LoopBound(self, on: owner.loop)
        store.makeRoom { [bound] found in
            bound.post { $0.roomMade(found) }
        }
    }

    private func roomMade(_ found: Bool) {
        guard !hasEnded else { return }
        if !found, status.isAbandoned { stopIfAbandoned() }
        guard !hasEnded else { return }
        guard found || makeRoomBehind() || spill("the cache has no room") else {
            return finish(.failed(.notStored("nothing in the cache can be evicted")))
        }
        isWaitingForRoom = false
        goOn()
    }

    package func transfer(_ transfer: Transfer, finishedWith error: UpstreamError?) {
        self.transfer = nil
        if let error { filler.backoff.note(error, asking: askedURL) }
        guard !hasEnded else { return owner.ended(self) }
        transferEnd = TransferEnd(error: error)
        goOn()
    }

    private func transferEnded(_ error: UpstreamError?) {
        guard !hasEnded else { return }
        // What breaks after all that is wanted has come is of no account.
        if let error, position < end { return failOrRetry(.upstream(error), isTransient: error.isTransient) }
        guard let writer else { return finish(.failed(.unusable("it has no head"))) }
        if end == .max {
            // Without a length the end of the body is the end of the resource.
            writer.finish()
            return finish(.completed)
        }
        // The origin sends less at a time than was asked for; the rest is asked for at once, unless that is next to
        // nothing.
        if position < end, position == answered.upperBound, position - answered.lowerBound >= Self.onLoopBytes {
            return start(.resume)
        }
        guard position >= end else {
            return failOrRetry(
                .upstream(.broken(detail: "the body is \(end - position) bytes short")), isTransient: true)
        }
        finish(.completed)
    }

    // MARK: Going on

    /// What a follower resumes after the window.
    private func resume() {
        guard !hasEnded else { return }
        transfer?.resume()
    }

    /// A broken transfer goes on from its frontier, if that can be the same generation's; the client does not notice.
    func failOrRetry(_ error: FillError, isTransient: Bool) {
        transfer?.cancel()
        transfer = nil
        staging.next.removeAll()
        if leavePlay() { asksFirstURL = true }
        attempt += 1
        if case .originStatus(let status) = error, (400..<500).contains(status), status != 429, !asksFirstURL,
            let generation = knownGeneration,
            urlOfGaps(generation) != demand.url.absolute
        {
            asksFirstURL = true
            return start(.resume)
        }
        if status.isAbandoned {
            filler.logger.info(
                "not fetched further, as nobody waits for it: \(error)",
                metadata: ["resource": "\(resource.key.text)", "offset": "\(position)"])
            stopIfAbandoned()
            guard !hasEnded else { return }
        }
        let canGoOn =
            knownGeneration == nil
            || knownGeneration?.head.rangeCondition != nil && (knownGeneration?.head.status ?? 200) == 200
        // Who has a stored response is not kept waiting.
        let isWaitedFor = validated == nil || knownGeneration != nil
        guard isTransient, canGoOn, isWaitedFor, !status.isForDownloads,
            let backoff = filler.settings.retry.delay(attempt: attempt, random: .random(in: 0..<1))
        else {
            return fail(error)
        }
        patience = filler.settings.longestMidwayWait
        let wait = filler.backoff.wait(before: askedURL)
        guard wait <= patience else { return fail(.busy(retryAfter: Int64(wait.rounded(.up)))) }
        let delay = max(backoff, wait > 0 ? Self.spread(wait) : 0)
        filler.logger.info(
            "fetching again in \(delay) s: \(error)",
            metadata: ["resource": "\(resource.key.text)", "offset": "\(position)"])
        startLater(.resume, afterSeconds: delay)
    }

    private func fail(_ error: FillError) {
        if case .originStatus(let code) = error, Reuse.isGone(status: code), let generation = knownGeneration,
            generation.isStored, !status.isForDownloads
        {
            filler.discard(generation, of: resource)
        }
        filler.metrics.errors.add(error.kind.rawValue)
        filler.logger.info(
            "not fetched: \(error)",
            metadata: [
                "failure": "\(error.kind.rawValue)", "resource": "\(resource.key.text)", "offset": "\(position)",
            ])
        finish(.failed(error))
    }

    // MARK: Ending

    func abort() {
        transfer?.cancel()
        finish(.failed(.upstream(.broken(detail: "the proxy is shutting down"))))
        owner.ended(self)
    }

    /// All is there. The transfer ends by itself, so that its connection can be used again.
    func complete() {
        guard let transfer, !transfer.isPaused else { return finish(.completed) }
        settle(.completed)
    }

    func finish(_ result: FetchEnd) {
        guard !hasEnded else { return }
        transfer?.cancel()
        transfer = nil
        settle(result)
        owner.ended(self)
    }

    private func settle(_ result: FetchEnd) {
        if demand.resolvedRule.pins, let generation = writer?.generation, generation.isStored {
            filler.pin(generation, of: resource)
        }
        hasEnded = true
        endPlay()
        endLingering()
        retryTimer?.cancel()
        stopTimer?.cancel()
        if !staging.isWriting { writer?.close() }
        abandonIncomplete(result)
        heldExtents = []
        status.ended(result)
    }

    /// What no other transfer can complete is not kept: of unknown length, or without a validator.
    private func abandonIncomplete(_ result: FetchEnd) {
        if case .completed = result { return }
        guard let generation = writer?.generation, generation.isStored,
            generation.length == nil || generation.head.rangeCondition == nil
        else { return }
        resource.invalidate(generation)
        store.retire(generation)
    }

    // MARK: What must stay

    private func hold(through offset: Int64) {
        guard let generation = writer?.generation, generation.isStored, let reader = status.slowestFollower else {
            return
        }
        let ordinal = generation.geometry.extent(at: offset)
        guard !heldExtents.contains(where: { $0.lease.ordinal == ordinal }) else { return }
        let slowest = generation.geometry.extent(at: max(reader, 0))
        heldExtents.removeAll { $0.lease.ordinal < slowest }
        // One slow reader among fast ones must not hold the whole cache.
        if heldExtents.count > Int(filler.window(of: demand).limit / generation.geometry.extentSize) + 1 {
            heldExtents.removeFirst()
        }
        heldExtents.append(HeldLease(generation.leaseForWriting(ordinal)))
    }
}
