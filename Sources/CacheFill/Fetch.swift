import Activity
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Logging
import Upstream

/// Fills one gap of a generation: one transfer, and further ones from the frontier where it breaks off. Loop-bound.
///
///     waiting ── asked ──▶ receiving ◀──▶ heldBack
///        ▲                    │ the answer has ended
///        │                    ▼
///        └── tried again ── received ── all is written ──▶ ended
///
/// `FetchRequest` and `FetchRetry` decide what is requested and when, `AnswerIntake` judges the answers, and
/// `FetchOutput` takes the bytes.
package final class Fetch: TransferDelegate {
    /// The fetch's progress.
    enum Phase {
        /// To be sent: at once, or when the timer fires.
        case waiting(LoopTimer?)
        case receiving(any Transfer)
        /// The transfer is paused until the received bytes are written.
        case heldBack(any Transfer)
        /// The transfer has ended, perhaps with an error; not all of its bytes are written yet.
        case received(UpstreamError?)
        /// The fetch is over. A remaining transfer runs to its end, so that its connection can be reused.
        case ended((any Transfer)?)
    }

    let status: SharedFetch
    let resource: OpenResource
    let origins: LoopOrigins
    let filler: CacheFiller
    /// The loop whose request started the fetch.
    let home: Int
    let purpose: FetchOrder.Purpose
    let demand: Demand
    var request: FetchRequest
    var output: FetchOutput
    var phase = Phase.waiting(nil)
    private var retry: FetchRetry
    /// What the redirects before the answer set for the client.
    var redirectCookies: [String] = []
    /// An answer whose first bytes decide what it is.
    private var examined: (head: UpstreamHead, bytes: [UInt8])?
    var leaving = Leaving.not
    /// Runs while a parent is asked that has not answered.
    var parentTimer: LoopTimer?
    /// Why it contacts the origin; nil until it does so for the first time.
    private(set) var reason: FetchReason?
    /// Unique among the fetches of its loop.
    let number: UInt64
    /// Monotonic, in nanoseconds.
    let began = MonotonicClock.nanoseconds()
    /// Called when it and its transfer are over, perhaps more than once.
    private let onEnd: (Fetch) -> Void

    init(_ order: FetchOrder, _ origins: LoopOrigins, onEnd: @escaping (Fetch) -> Void) {
        (status, resource) = (order.status, order.status.resource)
        (self.origins, filler, self.onEnd) = (origins, origins.filler, onEnd)
        (home, purpose, demand) = (order.home, order.purpose, order.demand)
        number = origins.numberOfNextFetch()
        let settings = filler.settings
        request = FetchRequest(purpose, demand, resource, filler)
        output = FetchOutput(order.range, status, filler, demand)
        retry = FetchRetry(
            settings.retry, FetchRetry.Patience(first: settings.longestWait, midway: settings.longestMidwayWait),
            for: order.audience)
        if case .opening(_, let client, _, _) = purpose {
            let requester = Requester(follower: client, url: demand.address, isAuthorized: demand.isAuthorized)
            status.note { $0.requester = requester }
        }
        let bound = LoopBound(self, on: origins.loop)
        resource.change { $0.loops[status.id] = { notice in bound.post { $0.hear(notice) } } }
    }

    /// The current transfer; nil if none runs.
    var transfer: (any Transfer)? {
        switch phase {
        case .receiving(let transfer), .heldBack(let transfer): transfer
        case .waiting, .received: nil
        case .ended(let transfer): transfer
        }
    }

    var hasEnded: Bool { if case .ended = phase { true } else { false } }

    var isHeldBack: Bool { if case .heldBack = phase { true } else { false } }

    /// The generation that the bytes must belong to; nil until an opening has found it.
    var knownGeneration: Generation? { purpose.generation ?? output.writer?.generation }

    // MARK: Requests

    func start(_ reason: FetchReason) {
        self.reason = reason
        // This also stops the continuation of a broken transfer.
        guard !origins.isOffline else { return fail(.offline) }
        guard isLocated(before: reason) else { return }
        var next = request.make(for: knownGeneration, output.wanted, overlap: output.overlap)
        next.priority = status.isForDownloads ? .download : .playback
        // An origin in back-off is not contacted, but a parent may have the bytes.
        let wait = next.parent == nil ? filler.backoff.wait(before: next.url) : 0
        switch retry.turn(wait: wait, random: filler.settings.random()) {
        case .now: break
        case .later(let seconds): return self.wait(seconds, then: reason)
        case .busy(let seconds): return fail(.busy(retryAfter: seconds))
        }
        filler.metrics.upstreamReasons[reason].add()
        if reason == .resume { filler.metrics.resumedTransfers.add() }
        request.requested(next, at: filler.now())
        redirectCookies = []
        examined = nil
        output.beginAnswer()
        phase = .receiving(origins.upstream.start(next, delegate: self))
        watchParent()
    }

    /// Drops the current answer and sends another request.
    private func requestAgain() {
        transfer?.cancel()
        start(.validation)
    }

    private func wait(_ seconds: Double, then reason: FetchReason) {
        let timer = LoopTimer(on: origins.loop) { [unowned self] in start(reason) }
        phase = .waiting(timer)
        timer.schedule(afterSeconds: seconds)
    }

    /// Reacts to a change among the followers.
    func hear(_ notice: ResourceState.Notice) {
        switch notice {
        case .proceed: if !hasEnded { transfer?.resume() }
        case .hurry: transfer?.hurry()
        case .considerStopping: considerStopping()
        case .endLinger: endLinger()
        }
    }

    // MARK: The transfer

    package func transfer(_ transfer: any Transfer, isIn phase: UpstreamError.Phase) {
        status.note { $0.phase = phase }
    }

    package func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        guard !hasEnded, isAnswerOfOrigin(head) else { return }
        status.note { $0.answer = head.status }
        noteCookies(of: head)
        if intake.mustExamine(head, output) {
            examined = (head, [])
        } else {
            accept(head, intake)
        }
    }

    private var intake: AnswerIntake {
        AnswerIntake(
            status: status, purpose: purpose, demand: demand, filler: filler,
            isFromParent: request.parents.requested != nil, setsCookies: !redirectCookies.isEmpty)
    }

    private func accept(_ head: UpstreamHead, _ intake: AnswerIntake) {
        do throws(FillError) {
            switch try intake.accept(head, &request, &output) {
            case .receive: break
            case .requestAgain: requestAgain()
            case .complete: complete()
            case .end(let end): finish(end)
            }
        } catch {
            failOrRetry(error, isTransient: AnswerIntake.isTransient(head))
        }
    }

    /// Collects the first bytes of an answer until they decide what it is, then accepts it and takes them in.
    /// - Parameter isLast: whether no more will come.
    private func examine(_ bytes: UnsafeRawBufferPointer, isLast: Bool = false) {
        guard let head = examined?.head else { return }
        examined?.bytes += bytes
        let first = examined?.bytes ?? [], count = Int64(first.count)
        let length = head.status == 206 ? head.contentRange?.total : head.contentLength ?? (isLast ? count : nil)
        let isAll = isLast || count == head.contentLength
        guard let isMedia = StrayPage.isMedia(beginning: first, isAll: isAll, length: length) else { return }
        examined = nil
        let answered = transfer
        var intake = intake
        intake.isMedia = isMedia
        accept(head, intake)
        switch phase {
        case .receiving(let transfer) where transfer === answered: break
        case .received: break
        case .receiving, .heldBack, .waiting, .ended: return
        }
        first.withUnsafeBytes { take($0) }
    }

    package func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        guard !hasEnded else {
            // The origin sends more than was requested.
            transfer.cancel()
            onEnd(self)
            return true
        }
        if examined != nil {
            examine(bytes)
            return true
        }
        switch output.readiness {
        case .full:
            holdBack()
            return false
        case .answered:
            transfer.cancel()
            phase = .received(nil)
            origins.loop.afterCallback { [self] in proceed() }
            return true
        case .open(let received, let position, let window):
            guard
                isFinishingChunk
                    || !status.pauseIfFarAhead(
                        received: received, writtenTo: position, before: bytes.count, within: window)
            else {
                output.releaseMemory()
                transfer.mayGiveWay = output.canBeContinued && !status.isForDownloads
                return false
            }
            take(bytes)
            return true
        }
    }

    /// Its player has paused for longest: what it has yet to read is requested again.
    package func transferGivesWay(_ transfer: any Transfer) {
        guard case .receiving(let current) = phase, current === transfer, transfer.isPaused else { return }
        log("the transfer of a paused player makes room for another")
        finish(.stopped)
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        switch output.take(bytes, isLast: isFinishingChunk) {
        case .now: flush()
        case .first:
            flush()
            yieldTurn()
        case .afterCallback:
            origins.loop.afterCallback { [self] in
                output.flushed()
                flush()
            }
        case .later: break
        case .contradicted:
            if let generation = output.writer?.generation { filler.discard(generation, of: resource) }
            failOrRetry(.changed, isTransient: false)
        }
    }

    package func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        if let error { note(error) }
        guard !hasEnded else {
            phase = .ended(nil)
            return onEnd(self)
        }
        phase = .received(error)
        if error == nil { examine(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true) }
        proceed()
    }

    /// Gives other connections of this loop a turn: curl keeps reading while there is data, up to a hundred buffers at
    /// once.
    private func yieldTurn() {
        guard !hasEnded, home == origins.loop.index else { return }
        holdBack()
        origins.loop.afterCallback { [self] in proceed() }
    }

    /// Pauses until this side is ready, which it soon is: the transfer keeps its slot, as no player makes it wait.
    private func holdBack() {
        guard case .receiving(let transfer) = phase else { return }
        phase = .heldBack(transfer)
        transfer.pause()
    }

    // MARK: Writing

    private func flush() {
        guard !hasEnded, let write = output.nextWrite(isLast: isFinishingChunk) else { return }
        guard write.isLong else { return wrote(write.run(), write) }
        let bound = LoopBound((self, write), on: origins.loop)
        write.run { [bound] outcome in bound.post { $0.wrote(outcome, $1) } }
    }

    private func wrote(_ outcome: ChunkWriter.Outcome, _ write: FetchOutput.Write) {
        switch output.wrote(outcome, write) {
        case .more: stopAtChunkEnd()
        case .complete: complete()
        case .beyond: finish(.completed)
        case .met: finish(.stopped)
        case .noRoom: makeRoom()
        case .failed(let error): finish(.failed(.notStored("\(error)")))
        case .closed: return
        }
        if !hasEnded { proceed() }
    }

    private func makeRoom() {
        holdBack()
        let bound = LoopBound(self, on: origins.loop)
        filler.store.makeRoom { [bound] found in
            bound.post { $0.roomMade(found) }
        }
    }

    private func roomMade(_ found: Bool) {
        if !found, !hasEnded, status.isAbandoned { stopIfAbandoned() }
        guard !hasEnded else { return }
        guard output.roomMade(found) else {
            return finish(.failed(.noRoom(in: filler.store)))
        }
        proceed()
    }

    /// Continues after a write, or after the store has made room.
    private func proceed() {
        flush()
        guard !hasEnded, !output.isWaitingForRoom else { return }
        if case .heldBack(let transfer) = phase {
            phase = .receiving(transfer)
            transfer.resume()
        }
        if transfer?.isPaused == true { output.releaseMemory() }
        if case .received(let error) = phase, !output.staging.isWriting { answerEnded(error) }
    }

    private func answerEnded(_ error: UpstreamError?) {
        // Once everything wanted has arrived, errors do not matter.
        if let error, output.position < output.end {
            return failOrRetry(.upstream(error), isTransient: error.isTransient)
        }
        switch output.answerEnded() {
        case .noHead: finish(.failed(.unusable("it has no header")))
        case .complete: finish(.completed)
        case .inPart: start(.resume)
        case .short(let count):
            if output.isAnswerEmpty { _ = request.turnsToWhole(for: knownGeneration) }
            failOrRetry(.upstream(.broken(detail: "the body is \(count) bytes short")), isTransient: true)
        }
    }

    // MARK: Failing

    /// Continues a broken transfer from its frontier, if another answer can be matched to the same generation. The
    /// client does not notice.
    func failOrRetry(_ error: FillError, isTransient: Bool) {
        transfer?.cancel()
        phase = .waiting(nil)
        output.dropStaged()
        if turnsFromParent(after: error) { return }
        let known = knownGeneration
        let startsOver = known == nil && request.leavesShortcuts() && !isTransient
        let verdict = retry.failed(
            failure(isTransient: isTransient), wait: filler.backoff.wait(before: request.url),
            random: filler.settings.random())
        if request.turnsToFirstURL(after: error, for: known) { return start(.resume) }
        if status.isAbandoned {
            log("stopped fetching, as nobody is waiting for it: \(error)")
            stopIfAbandoned()
            guard !hasEnded else { return }
        }
        if let seconds = request.leavesExpiredLink(after: error, for: known, delivered: output.delivered) {
            log("the link has expired: \(error)")
            return seconds > 0 ? wait(seconds, then: .resume) : start(.resume)
        }
        if startsOver { return start(.resume) }
        switch verdict {
        case .again(let seconds):
            log("trying again in \(seconds) s: \(error)")
            wait(seconds, then: .resume)
        case .fail: fail(error)
        case .busy(let seconds): fail(.busy(retryAfter: seconds))
        }
    }

    /// Whether another answer could be matched to the bytes that have arrived.
    var canContinue: Bool {
        knownGeneration.map { $0.head.status == 200 && ($0.head.rangeCondition != nil || output.overlap > 0) } ?? true
    }

    private func failure(isTransient: Bool) -> FetchRetry.Failure {
        let head = knownGeneration?.head
        return FetchRetry.Failure(
            isTransient: isTransient,
            canContinue: canContinue,
            isNeeded: purpose.validated == nil || head != nil,
            // A download that starts over would meet the next expiry at the same place.
            isForDownloads: status.isForDownloads && !demand.resolvedRule.mayMove, delivered: output.delivered)
    }

    private func fail(_ error: FillError) {
        if case .originStatus(let code) = error, Reuse.isGone(status: code), let generation = knownGeneration,
            generation.isStored, !status.isForDownloads
        {
            filler.discard(generation, of: resource)
        }
        filler.metrics.errors.add(error.kind.rawValue)
        log("not fetched: \(error)", failure: error.kind)
        finish(.failed(error))
    }

    func log(_ message: @autoclosure () -> String, failure: FailureKind? = nil) {
        var about: Logger.Metadata = ["resource": "\(resource.key.text)", "offset": "\(output.position)"]
        if let failure { about["failure"] = "\(failure.rawValue)" }
        filler.logger.info("\(message())", metadata: about)
    }

    // MARK: Ending

    func abort() {
        transfer?.cancel()
        finish(.failed(.upstream(.broken(detail: "the proxy is shutting down"))))
        onEnd(self)
    }

    /// Completes the fetch. The transfer runs to its end, unless it is paused.
    private func complete() {
        guard let transfer, !transfer.isPaused else { return finish(.completed) }
        end(.completed, leaving: transfer)
    }

    func finish(_ result: FetchEnd) {
        guard !hasEnded else { return }
        transfer?.cancel()
        end(result, leaving: nil)
        onEnd(self)
    }

    private func end(_ result: FetchEnd, leaving transfer: (any Transfer)?) {
        phase = .ended(transfer)
        parentTimer = nil
        let generation = output.writer?.generation
        if demand.resolvedRule.pins, let generation, generation.isStored { filler.pin(generation, of: resource) }
        request.endPlay()
        stay()
        output.close()
        abandonIncomplete(generation, result)
        status.ended(result)
    }

    /// Discards an incomplete generation that no other transfer can complete, because it lacks a length or a validator.
    private func abandonIncomplete(_ generation: Generation?, _ result: FetchEnd) {
        if case .completed = result { return }
        guard let generation, generation.isStored, generation.length == nil || generation.head.rangeCondition == nil
        else { return }
        filler.discard(generation, of: resource)
    }
}
