@preconcurrency import Dispatch

/// The store's serial queue, and what is done on it: `StoreWork` is reached from there alone. It is not `Sendable`, and
/// only what is comes back, so that the compiler keeps it and all its parts where they are.
final class StoreQueue: Sendable {
    private let queue = DispatchQueue(label: "reelcache.store", qos: .userInitiated)
    /// Unsafe to the compiler alone: it is private, and touched by what runs on `queue`.
    private nonisolated(unsafe) let work: StoreWork

    init(_ work: sending StoreWork) { self.work = work }

    /// Does something on the queue and waits for it. Not to be called there.
    func sync<Value: Sendable, Failure: Error>(_ body: (StoreWork) throws(Failure) -> Value) throws(Failure) -> Value {
        dispatchPrecondition(condition: .notOnQueue(queue))
        let outcome: Result<Value, Failure> = queue.sync {
            do throws(Failure) { return .success(try body(work)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    func async(_ body: @escaping @Sendable (StoreWork) -> Void) { queue.async { body(self.work) } }

    /// Waits until what was asked for before is done.
    func wait() { sync { _ in } }

    /// Does something each second, until the timer is cancelled or the queue is gone.
    func everySecond(_ body: @escaping @Sendable (StoreWork) -> Void) -> QueueTimer {
        let timer = QueueTimer(queue)
        timer.start { [weak self] in if let self { body(work) } }
        return timer
    }
}

/// What the store does one thing after the other: each part with what it alone knows.
final class StoreWork {
    let checkpointer: Checkpointer
    let closer: Closer
    let evictor: Evictor
    let remover: Remover
    let recovery: Recovery
    let joiner: Joiner
    /// The second copy of the rows of pinned resources.
    let pins: PinnedCopy
    private let core: StoreCore

    init(_ core: StoreCore, _ pins: PinnedCopy) {
        (self.core, self.pins) = (core, pins)
        remover = Remover(core)
        joiner = Joiner(core, pins)
        checkpointer = Checkpointer(core, pins, remover, joiner)
        closer = Closer(core, checkpointer, remover)
        evictor = Evictor(core, checkpointer, closer, remover)
        recovery = Recovery(core, pins, remover)
    }

    /// Each second.
    func tick() {
        let now = AccessClock.now()
        // The order of last reads outlives a kill, too, but for the last seconds.
        checkpointer.checkpoint(touchesToo: now / 1_000_000 % 10 == 0)
        core.ledger.refreshDisk()
        if core.configuration.evictsAhead { evictor.evictShortage() }
        closer.closeUnused()
        IdleMappings.drop(core.open.all.map(\.file))
        core.faults.report("shrink the index") { () throws(StoreError) in try core.index.database.shrink() }
        checkpointer.countIndex()
    }

    /// Saves everything and marks the cache as closed in order. Nothing may be written any more.
    func close() throws(StoreError) {
        checkpointer.checkpoint(touchesToo: true)
        closer.closeUnused()
        let left = closer.settleAll()
        try core.files.unfinished.shorten { left }
        // What was removed and punched is durable with the names that came after it.
        try FileSystem.syncDirectory(core.configuration.directory)
        try core.index.database.setMeta([(.isClean, 1)])
        try pins.close()
        try core.index.close()
    }
}
