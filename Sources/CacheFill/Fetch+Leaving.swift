import EventIO

/// The end of a transfer that nobody follows any more: it lingers, finishes its chunk, and stops.
extension Fetch {
    enum Leaving {
        case not
        /// Nobody followed it when it was last looked: it goes on for a moment.
        case lingering(LoopTimer)
        /// It goes on to the end of the chunk in progress.
        case finishingChunk(LoopTimer)
    }

    var isFinishingChunk: Bool { if case .finishingChunk = leaving { true } else { false } }

    private var isLingering: Bool { if case .lingering = leaving { true } else { false } }

    /// The last follower has left, or has it on the way here.
    func considerStopping() {
        guard !hasEnded, status.isAbandoned else { return }
        let generation = output.generation.flatMap { $0.isStored && !$0.isRetired ? $0 : nil }
        let way = LeftTransfer.way(
            wasLeftForGood: status.wasLeftForGood, isComingIn: transfer != nil && generation != nil,
            demand.resolvedRule, lingerSeconds: filler.settings.lingerSeconds)
        switch way {
        case .stop: return stopIfAbandoned()
        case _ where isFinishingChunk: return
        case .finishChunk: return finishChunk()
        case .linger:
            guard let generation, isLingering || filler.beginLinger(generation.geometry) else { return finishChunk() }
        }
        leaving = .lingering(after(filler.settings.lingerSeconds) { [unowned self] in finishChunk() })
        // Nobody reads what it has brought: that may be evicted.
        output.held.releaseAll()
        status.lingers()
    }

    /// Another fetch has begun, or lingers. It has the line, but for the rest of a chunk that costs less than to ask
    /// for all of it again.
    func endLinger() {
        guard !hasEnded, status.isAbandoned, !isFinishingChunk else { return }
        if output.isChunkWorthFinishing { finishChunk() } else { stopIfAbandoned() }
    }

    /// What was begun of a chunk is finished, if that is quick.
    private func finishChunk() {
        stay()
        guard !hasEnded, status.isAbandoned else { return }
        guard output.isWriting || transfer != nil, output.generation?.isStored == true else { return stopIfAbandoned() }
        leaving = .finishingChunk(after(filler.settings.lastChunkSeconds) { [unowned self] in stopInTime() })
        stopAtChunkEnd()
        if !hasEnded, isFinishingChunk, !isHeldBack { transfer?.resume() }
    }

    private func stopInTime() {
        if output.isWriting, case .finishingChunk(let timer) = leaving {
            timer.schedule(afterSeconds: filler.settings.lastChunkSeconds)
        } else {
            stopIfAbandoned()
        }
    }

    func stopAtChunkEnd() {
        // While another thread writes, how far it is shows only when it has.
        guard isFinishingChunk, !output.isWriting, output.generation != nil, !output.isInChunk else { return }
        stopIfAbandoned()
    }

    func stopIfAbandoned() {
        guard !hasEnded else { return }
        if status.endIfAbandoned() { finish(.stopped) } else { stay() }
    }

    /// Somebody follows it again, or it has ended.
    func stay() {
        if isLingering { filler.endLinger() }
        leaving = .not
    }

    private func after(_ seconds: Double, _ handler: @escaping () -> Void) -> LoopTimer {
        let timer = LoopTimer(on: owner.loop, handler: handler)
        timer.schedule(afterSeconds: seconds)
        return timer
    }
}
