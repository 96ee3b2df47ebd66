import EventIO

/// A chunk in the middle of which everybody has left.
enum LeftChunk {
    /// What asking once more costs beside the bytes, in bytes that come meanwhile.
    private static let requestCost: Int64 = 16 << 10

    /// Whether what is missing of it costs less than to ask for all of it again; an incomplete chunk is not kept.
    static func isWorthFinishing(received: Int64, of size: Int64) -> Bool {
        received > 0 && size - received <= received + requestCost
    }
}

/// The end of a transfer that nobody follows any more: it lingers, finishes its chunk, and stops.
extension Fetch {
    /// The last follower has left. What it has begun to read may be asked for again at once: the transfer goes on up to
    /// its window, and waits there; but not where only what is read is to be fetched, or bytes are metered, as the
    /// kernel goes on taking in what the origin sends.
    func considerStopping() {
        guard !hasEnded, status.isAbandoned else { return }
        if status.wasLeftByDownload { return stopIfAbandoned() }
        guard filler.settings.lingerSeconds > 0, demand.resolvedRule.fill != .read, !demand.resolvedRule.isMetered,
            transfer != nil,
            let generation = writer?.generation, generation.isStored, !generation.isRetired,
            isLingering || filler.beginLinger(generation.geometry)
        else { return finishChunk() }
        isLingering = true
        // Nobody reads what it has brought: that may be evicted.
        heldExtents = []
        status.lingers()
        stopAfter(filler.settings.lingerSeconds) { [unowned self] in finishChunk() }
    }

    /// Another fetch has begun, or lingers. It has the line, but for the rest of a chunk that costs less than to ask
    /// for all of it again.
    func endLinger() {
        guard !hasEnded, status.isAbandoned, !isStopping else { return }
        if isChunkWorthFinishing { finishChunk() } else { stopIfAbandoned() }
    }

    private var isChunkWorthFinishing: Bool {
        guard let geometry = writer?.generation.geometry else { return false }
        let chunk = geometry.chunkBytes(geometry.chunk(at: position), length: writer?.generation.length)
        return LeftChunk.isWorthFinishing(
            received: position + Int64(staging.count) - chunk.lowerBound, of: Int64(chunk.count))
    }

    func endLingering() {
        guard isLingering else { return }
        isLingering = false
        filler.endLinger()
    }

    private func stopAfter(_ seconds: Double, _ stop: @escaping () -> Void) {
        let timer = LoopTimer(on: owner.loop, handler: stop)
        stopTimer = timer
        timer.schedule(afterSeconds: seconds)
    }

    /// What was begun of a chunk is finished, if that is quick.
    private func finishChunk() {
        endLingering()
        guard !hasEnded, status.isAbandoned else { return }
        guard let writer, staging.isWriting || transfer != nil, writer.generation.isStored else {
            return stopIfAbandoned()
        }
        isStopping = true
        stopAtChunkEnd()
        guard !hasEnded, isStopping else { return }
        stopAfter(filler.settings.lastChunkSeconds) { [unowned self] in stopInTime() }
        if !isHeldBack { transfer?.resume() }
    }

    private func stopInTime() {
        if staging.isWriting {
            stopTimer?.schedule(afterSeconds: filler.settings.lastChunkSeconds)
        } else {
            stopIfAbandoned()
        }
    }

    func stopAtChunkEnd() {
        // While another thread writes, how far it is shows only when it has.
        guard isStopping, !staging.isWriting, let writer else { return }
        let geometry = writer.generation.geometry
        if geometry.chunkStart(geometry.chunk(at: position)) == position { stopIfAbandoned() }
    }

    func stopIfAbandoned() {
        guard !hasEnded else { return }
        guard status.endIfAbandoned() else {
            isStopping = false
            stopTimer?.cancel()
            return
        }
        finish(.stopped)
    }
}
