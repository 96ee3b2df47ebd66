import EventIO

/// The end of a transfer without followers: it lingers, finishes its chunk, and stops.
extension Fetch {
    enum Leaving {
        case not
        /// Without followers, it continues for a moment.
        case lingering(LoopTimer)
        /// It continues to the end of the chunk in progress.
        case finishingChunk(LoopTimer)
        /// It ends after the write in progress, which others would fetch again.
        case finishingWrite
    }

    var isFinishingChunk: Bool { if case .finishingChunk = leaving { true } else { false } }

    private var isLingering: Bool { if case .lingering = leaving { true } else { false } }

    /// The last follower has left, or may have: the notice can be late.
    func considerStopping() {
        guard !hasEnded, status.isAbandoned else { return }
        let generation = (output.writer?.generation).flatMap { $0.isStored && !$0.isRetired ? $0 : nil }
        let way = FetchState.LeftTransfer.way(
            wasLeftForGood: status.read(\.wasLeftForGood) ?? false, isComingIn: transfer != nil && generation != nil,
            demand.resolvedRule, lingerSeconds: filler.settings.lingerSeconds)
        switch way {
        case .stop: return stopIfAbandoned()
        case _ where isFinishingChunk: return
        case .finishChunk: return finishChunk()
        case .linger:
            guard let generation, isLingering || filler.beginLinger(generation.geometry) else { return finishChunk() }
        }
        leaving = .lingering(after(filler.settings.lingerSeconds) { [unowned self] in finishChunk() })
        // Nobody reads these extents: they may be evicted.
        output.letGo()
        status.resource.change { $0.resource.lingers(status.id) }
    }

    /// Ends the linger because another fetch has begun or lingers, and should have the bandwidth. The rest of a chunk
    /// is finished if that costs less than requesting it again.
    func endLinger() {
        guard !hasEnded, status.isAbandoned, !isFinishingChunk else { return }
        if output.isChunkWorthFinishing { finishChunk() } else { stopIfAbandoned() }
    }

    /// Finishes the chunk in progress, if that is quick.
    private func finishChunk() {
        stay()
        guard !hasEnded, status.isAbandoned else { return }
        guard output.staging.isWriting || transfer != nil, output.writer?.generation.isStored == true else {
            return stopIfAbandoned()
        }
        leaving = .finishingChunk(after(filler.settings.lastChunkSeconds) { [unowned self] in stopIfAbandoned() })
        stopAfterWrite()
        if isFinishingChunk, case .receiving(let transfer) = phase { transfer.resume() }
    }

    /// During a write on another thread, the position is not up to date.
    func stopAfterWrite() {
        guard !output.staging.isWriting else { return }
        if case .finishingWrite = leaving { return stopIfAbandoned() }
        if isFinishingChunk, output.writer?.generation != nil, !output.isInChunk { stopIfAbandoned() }
    }

    func stopIfAbandoned() {
        guard !hasEnded else { return }
        stay()
        if output.staging.isWriting, status.isAbandoned {
            leaving = .finishingWrite
            return holdBack()
        }
        if status.endIfAbandoned() { finish(.stopped) }
    }

    /// It has a follower again, or has ended.
    func stay() {
        if isLingering { filler.endLinger() }
        leaving = .not
    }
}
