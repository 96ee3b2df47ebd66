@preconcurrency import Dispatch

/// The store's serial queue. `StoreWork` is reached only through it: it is not `Sendable`, and neither are its parts,
/// so the compiler keeps them on the queue.
final class StoreQueue: Sendable {
    private let queue = DispatchQueue(label: "reelcache.store", qos: .userInitiated)
    /// Unsafe only to the compiler: it is private, and used only by what runs on `queue`.
    private nonisolated(unsafe) let work: StoreWork
    private let timer: any DispatchSourceTimer
    /// Takes the place of the queue in a simulation.
    private let driver: (any StoreDriver)?

    init(_ work: sending StoreWork, _ driver: (any StoreDriver)?) {
        self.work = work
        self.driver = driver
        timer = DispatchSource.makeTimerSource(queue: queue)
        // A source that was never resumed must not be released.
        timer.schedule(deadline: .distantFuture)
        timer.resume()
    }

    /// Runs a closure on the queue and waits for it. Not to be called on the queue.
    func sync<Value: Sendable, Failure: Error>(_ body: (StoreWork) throws(Failure) -> Value) throws(Failure) -> Value {
        if let driver {
            driver.finish(.queue)
            return try body(work)
        }
        dispatchPrecondition(condition: .notOnQueue(queue))
        let outcome: Result<Value, Failure> = queue.sync {
            do throws(Failure) { return .success(try body(work)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    func async(_ body: @escaping @Sendable (StoreWork) -> Void) {
        if let driver { return driver.run({ body(self.work) }, on: .queue) }
        queue.async { body(self.work) }
    }

    /// Waits until everything queued before is done.
    func wait() { sync { _ in } }

    /// Runs a closure every second, until `stopTimer`, or until the queue is released.
    func everySecond(_ body: @escaping @Sendable (StoreWork) -> Void) {
        if let driver { return driver.everySecond { [weak self] in if let self { body(work) } } }
        timer.setEventHandler { [weak self] in if let self { body(work) } }
        timer.schedule(deadline: .now() + 1, repeating: 1)
    }

    func stopTimer() { timer.cancel() }
}

/// The parts of the store that run one at a time, each with private state.
final class StoreWork {
    let checkpointer: Checkpointer
    let closer: Closer
    let evictor: Evictor
    let remover: Remover
    let recovery: Recovery
    let joiner: Joiner
    /// The second copy of the rows of pinned resources.
    let pins: PinnedCopy
    let core: StoreCore
    /// Since it was opened.
    private var seconds = 0
    /// Whether the last second gave pages of the index back, so that there may be more.
    private var isShrinking = false
    /// When it ticked last, by the wall clock.
    private var ticked: Int64 = 0

    init(_ core: StoreCore, _ pins: PinnedCopy) {
        (self.core, self.pins) = (core, pins)
        remover = Remover(core)
        joiner = Joiner(core, pins)
        checkpointer = Checkpointer(core, pins, remover, joiner)
        closer = Closer(core, checkpointer)
        evictor = Evictor(core, checkpointer, closer, remover)
        recovery = Recovery(core, pins, remover)
    }

    /// Called every second.
    func tick() {
        seconds += 1
        core.findPlace()
        endFuture()
        checkpointer.checkpoint(seconds % 600 == 0 ? .all : seconds % 10 == 0 ? .reads : .chunks)
        core.ledger.refreshDisk()
        if core.configuration.evictsAhead { evictor.evictShortage() }
        closer.closeUnused()
        // Looked for less often, as neither is urgent: a mapping stays for 5 s at least.
        if seconds % 5 == 0 { MappedBytes.dropIdle(of: core.open.all.map { $0.file }) }
        if seconds % 5 == 0 || isShrinking {
            isShrinking = false
            core.faults.report("shrink the index") { () throws(StoreError) in
                isShrinking = try core.index.database.shrink()
            }
        }
        checkpointer.countIndex()
    }

    /// If the clock was set back, moves last reads in the future into the past, in their order.
    private func endFuture() {
        let now = AccessClock.now()
        defer { ticked = now }
        guard now < ticked else { return }
        checkpointer.checkpoint(.all)
        checkpointer.saveAllClosed()
        core.faults.report("order last reads anew, as the clock was set back") { () throws(StoreError) in
            try core.index.database.endFuture(at: now)
        }
        // The next read would give its resource the latest time of all its extents.
        for generation in core.open.all { generation.withChunks { $0.endFuture(at: now) } }
    }

    /// Saves everything and marks the cache as cleanly closed. Nothing may be written afterwards.
    func close() throws(StoreError) {
        checkpointer.checkpoint(.all)
        closer.closeUnused()
        let left = closer.commitAll()
        checkpointer.saveAllClosed()
        try core.files.unfinished.shorten { left }
        // Makes removed and new names durable.
        try FileSystem.syncDirectory(core.configuration.directory)
        try core.index.database.setMeta([(.isClean, 1)])
        try pins.copy?.database.close()
        try core.index.database.close()
    }
}
