import DiskCache
import EventIO
import TestSupport

/// Owns order and time: all that loops, pools and the store's queue would do in threads runs here in one, an item at a
/// time, in an order that a seed decides. `@unchecked Sendable` because it is used by one thread.
final class Schedule: LoopDriver, StoreDriver, @unchecked Sendable {
    private var dice: SplitMix64
    /// Nanoseconds.
    private(set) var now: UInt64 = 1_000_000_000_000
    private var lanes: [Lane] = []
    private var timers: [Timer] = []
    private var timerCount = 0
    private var loops: [EventLoop] = []
    /// Loops whose sockets may be ready, by index.
    private var isUnpolled: [Bool] = []
    private var lastAccess: Int64 = 0
    /// How much was done since time passed last.
    private var itemsAtOnce = 0
    private var lastTime: UInt64 = 0
    /// How often work was given to a thread.
    private(set) var handOvers = 0
    /// How many threads handed over, one after the other, what led to what runs now.
    var depth = 0
    private var place: Lane.Place?
    private var isRunning = false
    /// Threads that wait for the disk while others run.
    private var waiting: [Lane.Place] = []
    private static let queue = Lane.Place.store(.queue), writers = Lane.Place.store(.pool("write"))
    private static let mostAtOnce = 100_000
    /// How many stores have been closed.
    private var tickers = 0
    /// Seconds between two ticks of a store: a second, but where nothing depends on it.
    var tick = 1.0
    /// Called after each item.
    var afterEach: (() throws -> Void)?

    /// What runs one item at a time, a loop's or the queue's in order.
    private final class Lane {
        enum Place: Equatable {
            case loop(Int)
            case store(StoreThread)
        }

        let place: Place
        var items: [Item] = []
        /// Nothing runs before.
        var stalledUntil: UInt64 = 0

        init(_ place: Place) { self.place = place }

        var isOrdered: Bool { if case .store(.pool) = place { false } else { true } }
    }

    private struct Item {
        let depth: Int
        let run: () -> Void
    }

    private struct Timer {
        let time: UInt64
        let number: Int
        let id: ObjectIdentifier?
        let loop: EventLoop?
        let fire: () -> Void
        let depth: Int
    }

    init(seed: UInt64) { dice = SplitMix64(seed: seed) }

    // MARK: Dice

    func random() -> UInt64 { dice.next() }

    func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &dice) < probability }

    func pick(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &dice) }

    func pick<Element>(_ elements: [Element]) -> Element { elements[Int.random(in: elements.indices, using: &dice)] }

    func unit() -> Double { Double.random(in: 0..<1, using: &dice) }

    // MARK: Loops

    func add(_ loop: EventLoop) {
        loops.append(loop)
        isUnpolled.append(false)
    }

    func post(_ work: @escaping @Sendable () -> Void, to loop: EventLoop) {
        give(work, .loop(loop.index))
    }

    func schedule(_ timer: ObjectIdentifier, on loop: EventLoop, afterSeconds: Double, fire: @escaping () -> Void) {
        cancel(timer)
        add(timer, loop, afterSeconds, fire)
    }

    func cancel(_ timer: ObjectIdentifier) { timers.removeAll { $0.id == timer } }

    /// Calls back on a loop, or on none, after a delay.
    func after(_ seconds: Double, on loop: EventLoop? = nil, _ fire: @escaping () -> Void) {
        add(nil, loop, seconds, fire)
    }

    private func add(_ id: ObjectIdentifier?, _ loop: EventLoop?, _ seconds: Double, _ fire: @escaping () -> Void) {
        timerCount += 1
        let timer = Timer(
            time: now + UInt64(max(0, seconds) * 1e9), number: timerCount, id: id, loop: loop, fire: fire,
            depth: depth)
        // Sorted with the next one last.
        let place = timers.firstIndex { ($0.time, $0.number) < (timer.time, timer.number) } ?? timers.endIndex
        timers.insert(timer, at: place)
    }

    // MARK: The store

    func run(_ work: @escaping @Sendable () -> Void, on thread: StoreThread) { give(work, .store(thread)) }

    private func give(_ work: @escaping () -> Void, _ place: Lane.Place) {
        handOvers += 1
        lane(place).items.append(Item(depth: place == self.place ? depth : depth + 1, run: work))
    }

    func finish(_ thread: StoreThread) {
        handOvers += 1
        depth += 1
        let lane = lane(.store(thread))
        precondition(!waiting.contains(lane.place), "a thread waits for one that waits for the disk")
        waiting.append(lane.place)
        defer { waiting.removeLast() }
        while !lane.items.isEmpty { lane.items.removeFirst().run() }
    }

    func everySecond(_ work: @escaping @Sendable () -> Void) {
        after(tick) { [self, tickers] in
            guard tickers == self.tickers else { return }
            run(work, on: .queue)
            everySecond(work)
        }
    }

    func endTicks() { tickers += 1 }

    /// Drops what those left behind who have ended.
    func forgetWork() {
        for lane in lanes { lane.items = [] }
        timers.removeAll { $0.loop != nil }
    }

    func microseconds() -> Int64 {
        lastAccess = max(lastAccess + 1, 1_700_000_000_000_000 + Int64(now / 1000))
        return lastAccess
    }

    /// A disk that takes its time: nothing of this thread happens for a while.
    func stall(_ thread: StoreThread, seconds: Double) {
        lane(.store(thread)).stalledUntil = now + UInt64(seconds * 1e9)
    }

    private func lane(_ place: Lane.Place) -> Lane {
        if let known = lanes.first(where: { $0.place == place }) { return known }
        let lane = Lane(place)
        lanes.append(lane)
        return lane
    }

    // MARK: Running

    /// Runs until nothing is left to do before a time, or `isDone`.
    func run(seconds: Double, until isDone: () -> Bool = { false }) throws {
        let end = now + UInt64(seconds * 1e9)
        while !isDone() {
            if try runNext() { continue }
            let wakes = lanes.filter { !$0.items.isEmpty }.map(\.stalledUntil)
            let next = min(timers.last?.time ?? .max, wakes.min() ?? .max)
            guard next <= end else {
                now = max(now, end)
                return
            }
            now = max(now, next)
            guard let timer = timers.last, timer.time <= now else { continue }
            timers.removeLast()
            depth = timer.depth
            place = timer.loop.map { .loop($0.index) }
            try perform { if let loop = timer.loop { loop.drive(timer.fire) } else { timer.fire() } }
        }
    }

    private func runNext() throws -> Bool {
        let ready = lanes.count(where: mayRun), polled = isUnpolled.count { $0 }
        guard ready + polled > 0 else { return false }
        var choice = Int.random(in: 0..<(ready + polled), using: &dice)
        guard choice < ready else {
            choice -= ready
            for index in isUnpolled.indices where isUnpolled[index] {
                guard choice == 0 else {
                    choice -= 1
                    continue
                }
                try poll(index)
                break
            }
            return true
        }
        for lane in lanes where mayRun(lane) {
            guard choice == 0 else {
                choice -= 1
                continue
            }
            // Of a pool's threads, any may be the next to do its work.
            let next = lane.isOrdered ? 0 : Int.random(in: 0..<min(lane.items.count, 4), using: &dice)
            let item = lane.items.remove(at: next)
            (depth, place) = (item.depth, lane.place)
            try perform { if case .loop(let index) = lane.place { loops[index].drive(item.run) } else { item.run() } }
            break
        }
        return true
    }

    private func mayRun(_ lane: Lane) -> Bool {
        !lane.items.isEmpty && lane.stalledUntil <= now && (waiting.isEmpty || mayRunBesides(lane.place))
    }

    /// The queue and loops are one thread each. Who looks up waits for the queue, and so does whoever reports.
    private func mayRunBesides(_ place: Lane.Place) -> Bool {
        if waiting.contains(place), place != Self.writers { return false }
        if case .store(.pool) = place, place != Self.writers { return !waiting.contains(Self.queue) }
        return true
    }

    private func poll(_ index: Int) throws {
        isUnpolled[index] = false
        (depth, place) = (0, .loop(index))
        if loops[index].poll() {
            isUnpolled[index] = true
            try afterEach?()
        }
    }

    /// Whether the running thread of the store waits for the disk for so long that others go on.
    func mayWaitForDisk() -> Bool {
        isRunning && (place == Self.queue || place == Self.writers) && waiting.count < 2 && chance(0.1)
    }

    /// What the others do meanwhile. The one that waits holds no lock.
    func waitForDisk() {
        guard let waiter = place else { return }
        let formerDepth = depth
        waiting.append(waiter)
        for _ in 0..<pick(1...8) {
            // What must not be is found again once the waiter has ended.
            guard (try? runNext()) == true else { break }
        }
        waiting.removeLast()
        (place, depth, isRunning) = (waiter, formerDepth, true)
    }

    private func perform(_ item: () -> Void) throws {
        itemsAtOnce = now == lastTime ? itemsAtOnce + 1 : 0
        lastTime = now
        guard itemsAtOnce < Self.mostAtOnce else { throw Violation("work without an end") }
        isRunning = true
        item()
        isRunning = false
        // A loop's work is about its own sockets, the store's about none, and a player's about any.
        switch place {
        case .loop(let index): isUnpolled[index] = true
        case .store: break
        case nil: for index in isUnpolled.indices { isUnpolled[index] = true }
        }
        try afterEach?()
    }
}
