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
    /// Loops whose sockets may be ready.
    private var unpolled: Set<Int> = []
    private var lastAccess: Int64 = 0
    /// How much was done since time passed last.
    private var itemsAtOnce = 0
    private var lastTime: UInt64 = 0
    /// How often work was given to a thread.
    private(set) var handOvers = 0
    /// How many threads handed over, one after the other, what led to what runs now.
    var depth = 0
    private var place: Lane.Place?
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

    func add(_ loop: EventLoop) { loops.append(loop) }

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
        let ready = lanes.filter { !$0.items.isEmpty && $0.stalledUntil <= now }
        let polled = unpolled.sorted()
        guard !ready.isEmpty || !polled.isEmpty else { return false }
        let choice = Int.random(in: 0..<(ready.count + polled.count), using: &dice)
        guard choice < ready.count else {
            let index = polled[choice - ready.count]
            unpolled.remove(index)
            (depth, place) = (0, .loop(index))
            if loops[index].poll() {
                unpolled.insert(index)
                try afterEach?()
            }
            return true
        }
        let lane = ready[choice]
        // Of a pool's threads, any may be the next to do its work.
        let next = lane.isOrdered ? 0 : Int.random(in: 0..<min(lane.items.count, 4), using: &dice)
        let item = lane.items.remove(at: next)
        (depth, self.place) = (item.depth, lane.place)
        try perform { if case .loop(let index) = lane.place { loops[index].drive(item.run) } else { item.run() } }
        return true
    }

    private func perform(_ item: () -> Void) throws {
        itemsAtOnce = now == lastTime ? itemsAtOnce + 1 : 0
        lastTime = now
        guard itemsAtOnce < Self.mostAtOnce else { throw Violation("work without an end") }
        item()
        for loop in loops { unpolled.insert(loop.index) }
        try afterEach?()
    }
}
