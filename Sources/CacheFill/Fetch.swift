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
/// `FetchRequest` and `OriginCall` decide what is requested, when and from whom, `AnswerIntake` judges the answers, and
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

    let order: FetchOrder
    let status: SharedFetch
    let demand: Demand
    let origins: LoopOrigins
    let filler: CacheFiller
    var request: FetchRequest
    // Unchecked: no method of these two calls the fetch, and the other two are read or set at once. Each piece of a
    // body would be checked several times.
    @exclusivity(unchecked) var output: FetchOutput
    @exclusivity(unchecked) private var intake: AnswerIntake
    @exclusivity(unchecked) var phase = Phase.waiting(nil)
    @exclusivity(unchecked) var leaving = Leaving.not
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
        (self.order, status, demand) = (order, order.status, order.demand)
        (self.origins, filler, self.onEnd) = (origins, origins.filler, onEnd)
        number = origins.numberOfNextFetch()
        request = FetchRequest(order, origins)
        output = FetchOutput(order.range, status, filler, demand, origins.counters(of: demand.url.host))
        intake = AnswerIntake(status: status, purpose: order.purpose, demand: demand, filler: filler)
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

    /// The generation that the bytes must belong to; nil until an opening has found it.
    var knownGeneration: Generation? { order.purpose.generation ?? output.writer?.generation }

    // MARK: Requests

    func start(_ reason: FetchReason, _ known: SharedFetch.Standing? = nil) {
        self.reason = reason
        // Offline, nobody looks for it either.
        guard origins.isOffline || isLocated(before: reason) else { return }
        let standing = known ?? status.standing
        var next = request.make(for: knownGeneration, output.wanted, overlap: output.overlap, standing)
        next.priority = standing.isForDownloads ? .download : .playback
        switch request.call.turn(before: next) {
        case .now: break
        case .later(let seconds): return wait(seconds, then: reason)
        case .never(let error): return fail(error)
        }
        request.begin(next, for: reason, standing)
        intake.beginAnswer()
        output.beginAnswer()
        phase = .receiving(origins.upstream.start(next, delegate: self))
        watchParent()
    }

    // MARK: Parents

    /// A parent may wait for this very fetch, if the parents form a circle in which several clients begin at the same
    /// time. So where another proxy waits for the fetch, a parent is waited for only so long.
    private func watchParent() {
        guard request.call.parent != nil else { return }
        // Not all at the same time: then the first one's answer serves all.
        let seconds = filler.settings.parentPatience * (1 + filler.settings.random())
        parentTimer = after(seconds) { [unowned self] in leaveSilentParent() }
    }

    private func leaveSilentParent() {
        guard !hasEnded, case .receiving(let transfer) = phase, !transfer.isReceiving else { return }
        guard status.read(\.isJoinedByProxy) == true else { return watchParent() }
        failOrRetry(.unusable("no answer, and another proxy is waiting"), isTransient: true)
    }

    private func wait(_ seconds: Double, then reason: FetchReason) {
        phase = .waiting(after(seconds) { [unowned self] in start(reason) })
    }

    func after(_ seconds: Double, _ handler: @escaping () -> Void) -> LoopTimer {
        let timer = LoopTimer(on: origins.loop, handler: handler)
        timer.schedule(afterSeconds: seconds)
        return timer
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

    package func transfer(_ transfer: any Transfer, redirectOf url: String, with fields: HeaderFields) -> KnownRedirect?
    {
        intake.redirect(of: url, fields, &request, for: knownGeneration)
    }

    package func transfer(_ transfer: any Transfer, followed redirect: ReceivedRedirect) {
        if !hasEnded { intake.take(redirect, request, for: knownGeneration) }
        if !hasEnded, request.call.stops(transfer, at: redirect) { start(reason ?? .resume) }
    }

    package func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse) {
        if !hasEnded { intake.take(interim, for: knownGeneration) }
    }

    package func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        guard !hasEnded else { return }
        if let error = request.call.answered(head) {
            return failOrRetry(error, isTransient: AnswerIntake.isTransient(head))
        }
        parentTimer = nil
        if intake.begin(head, isFromParent: request.call.parent != nil, output) { accept(head) }
    }

    private func accept(_ head: UpstreamHead) {
        do throws(FillError) {
            switch try intake.accept(head, &request, &output) {
            case .receive: break
            case .requestAgain:
                transfer?.cancel()
                start(.validation)
            case .complete: complete()
            case .end(let end): finish(end)
            }
        } catch {
            failOrRetry(error, isTransient: AnswerIntake.isTransient(head))
        }
    }

    /// Accepts an answer once its first bytes have decided what it is, and takes them in.
    /// - Parameter isLast: whether no more will come.
    private func examine(_ bytes: UnsafeRawBufferPointer, isLast: Bool = false) {
        guard let (head, first) = intake.examine(bytes, isLast: isLast) else { return }
        let answered = transfer
        accept(head)
        switch phase {
        case .receiving(let transfer) where transfer === answered: break
        case .received: break
        case .receiving, .heldBack, .waiting, .ended: return
        }
        first.withUnsafeBytes { take($0, neededFrom: status.slowestFollower) }
    }

    package func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        guard !hasEnded else {
            // The origin sends more than was requested.
            transfer.cancel()
            onEnd(self)
            return true
        }
        if intake.examined != nil {
            examine(bytes)
            return true
        }
        switch output.readiness(isLast: isFinishingChunk) {
        case .full:
            holdBack()
            return false
        case .answered:
            transfer.cancel()
            phase = .received(nil)
            origins.loop.afterCallback { [self] in proceed() }
            return true
        case .open(let received, let position, let window):
            let admission =
                isFinishingChunk
                ? .taken(neededFrom: nil)
                : status.admit(received: received, writtenTo: position, before: bytes.count, within: window)
            guard case .taken(let offset) = admission else {
                output.releaseMemory()
                transfer.mayGiveWay = output.canBeContinued && !status.isForDownloads
                return false
            }
            take(bytes, neededFrom: offset)
            return true
        }
    }

    /// Its player has paused for longest: what it has yet to read is requested again.
    package func transferGivesWay(_ transfer: any Transfer) {
        guard case .receiving(let current) = phase, current === transfer, transfer.isPaused else { return }
        log("the transfer of a paused player makes room for another")
        finish(.stopped)
    }

    private func take(_ bytes: UnsafeRawBufferPointer, neededFrom offset: Int64?) {
        switch output.take(bytes, neededFrom: offset, isLast: isFinishingChunk) {
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
            if let generation = output.writer?.generation { filler.discard(generation, of: status.resource) }
            failOrRetry(.changed, isTransient: false)
        }
    }

    package func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        if let error { request.call.failed(error) }
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
        guard !hasEnded, order.home == origins.loop.index else { return }
        holdBack()
        origins.loop.afterCallback { [self] in proceed() }
    }

    /// Pauses until this side is ready, which it soon is: the transfer keeps its slot, as no player makes it wait.
    func holdBack() {
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
        case .more: stopAfterWrite()
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
        filler.store.makeRoom { [bound] found in bound.post { $0.roomMade(found) } }
    }

    private func roomMade(_ found: Bool) {
        if !found, !hasEnded, status.isAbandoned { stopIfAbandoned() }
        guard !hasEnded else { return }
        guard output.roomMade(found) else { return fail(.noRoom(in: filler.store)) }
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
        (phase, parentTimer) = (.waiting(nil), nil)
        output.dropStaged()
        let next = request.next(after: error, isTransient: isTransient, output)
        if status.isAbandoned {
            log("stopped fetching, as nobody is waiting for it: \(error)")
            stopIfAbandoned()
            guard !hasEnded else { return }
        }
        switch next {
        case .elsewhere(let parent):
            log("\(parent.text) did not deliver, asking elsewhere: \(error)", failure: .parentFailed)
            start(output.delivered > 0 ? .resume : reason ?? .resume)
        case .again(.now):
            log("requesting it again: \(error)")
            start(.resume)
        case .again(.later(let seconds)):
            log("trying again in \(seconds) s: \(error)")
            wait(seconds, then: .resume)
        case .again(.never(let error)): fail(error)
        }
    }

    private func fail(_ error: FillError) {
        if intake.returnsToFormer(output) { return finish(.stopped) }
        filler.metrics.errors.add(error.kind.rawValue)
        log("not fetched: \(error)", failure: error.kind)
        finish(.failed(error))
    }

    func log(_ message: @autoclosure () -> String, failure: FailureKind? = nil) {
        var about: Logger.Metadata = ["resource": "\(status.resource.key.text)", "offset": "\(output.position)"]
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
        (phase, parentTimer) = (.ended(transfer), nil)
        request.endPlay()
        stay()
        output.close()
        output.conclude(result, knownGeneration)
        status.ended(result, writtenTo: output.unreported)
    }
}
