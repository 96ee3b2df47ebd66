import DiskCache
import EventIO
import Foundation
import TestSupport

/// One run from a seed: players, an origin and a disk with their faults, and the proxy between them. It throws at the
/// first thing that must not be.
///
/// A minute with faults; an end without, in which whatever is requested comes; a restart; and what a kill at some
/// moment of the minute has left.
final class World {
    let schedule: Schedule
    let origin: SimulatedOrigin
    private(set) var lastStall: UInt64 = 0
    private(set) var digest: UInt64 = 14_695_981_039_346_656_037
    private(set) var trace: [String] = []
    private let directory: TemporaryDirectory
    /// Has the cache as a kill would have left it.
    private let left: TemporaryDirectory
    private let loops: [EventLoop]
    private let settings: Settings
    private var proxy: SimulatedProxy!
    private var violation: String?
    private var players: [Player] = []

    /// What a run consists of.
    struct Settings {
        var seconds = 60.0
        var players = 4
        var faults = 0.15
    }

    /// How long an answer may be on its way from the origin, with its retries, in nanoseconds.
    let longestAnswer: UInt64 = 60_000_000_000

    init(seed: UInt64, _ settings: Settings = Settings()) throws {
        self.settings = settings
        let schedule = Schedule(seed: seed)
        self.schedule = schedule
        origin = SimulatedOrigin(schedule, films: schedule.pick([3, 6, 20]), faults: settings.faults)
        (directory, left) = (try TemporaryDirectory(), try TemporaryDirectory())
        loops = try (0..<2).map { try EventLoop(index: $0, driver: schedule) }
        for loop in loops { schedule.add(loop) }
        origin.note = { [unowned self] in note($0) }
    }

    func note(_ text: String) {
        for byte in text.utf8 { digest = (digest ^ UInt64(byte)) &* 1_099_511_628_211 }
        digest = (digest ^ schedule.now) &* 1_099_511_628_211
        trace.append("\(Double(schedule.now / 1000) / 1e6) \(text)")
    }

    /// Ends the run, once the running item has returned.
    func failed(_ text: String) { if violation == nil { violation = text } }

    func connect() throws -> Int32 { try proxy.connect(to: Int(schedule.pick(0...Int64(loops.count - 1)))) }

    func run() throws { try schedule.owningTime { try runAll() } }

    private func runAll() throws {
        try open(directory.path)
        players = (0..<settings.players).map { Player(self, number: $0, requests: 20) }
        for player in players { player.start() }
        scheduleEvents()
        try schedule.run(seconds: settings.seconds)
        // No more faults: what is requested from now on comes, and completely.
        origin.faults = 0
        origin.isDown = false
        isOver = true
        note("the last fault")
        try schedule.run(seconds: 120)
        try playToTheEnd(requests: 2)
        try close()
        note("restart")
        try open(directory.path)
        try playToTheEnd(requests: 1)
        try close()
        note("after a kill")
        try open(left.path + "/cache")
        try playToTheEnd(requests: 1)
        try close()
        players = []
    }

    private func playToTheEnd(requests: Int) throws {
        for player in players { player.becomeQuiet(requests: requests) }
        try schedule.run(seconds: 3600) { players.allSatisfy(\.hasEnded) }
        try check()
        guard players.allSatisfy(\.hasEnded) else { throw Violation("a player waits for ever") }
    }

    private var isOver = false

    private func open(_ directory: String) throws {
        proxy = try SimulatedProxy(
            schedule, origin, loops: loops, in: directory, maxSize: 16_000_000,
            openFiles: schedule.pick([2, 4, 64]))
        schedule.afterEach = { [unowned self] in try check() }
    }

    private func close() throws {
        schedule.afterEach = nil
        for player in players { player.hangUp() }
        try proxy.close()
    }

    /// What holds at each moment.
    private func check() throws {
        if let violation { throw Violation(violation) }
        let ledger = proxy.store.ledger
        guard ledger.size <= ledger.limit else { throw Violation("\(ledger.size) bytes of \(ledger.limit)") }
    }

    // MARK: What happens besides

    private func scheduleEvents() {
        schedule.after(settings.seconds * schedule.unit()) { [unowned self] in
            note("what a kill would leave")
            do { try FileManager.default.copyItem(atPath: directory.path, toPath: left.path + "/cache") } catch {
                failed("\(error)")
            }
        }
        every(schedule.pick([2, 7, 20])) { [unowned self] in
            let film = schedule.pick(origin.films)
            film.change(schedule)
            note("\(film.name) changes: \(film.current.number), \(film.current.length)")
        }
        every(schedule.pick([5, 17])) { [unowned self] in
            guard settings.faults > 0 else { return }
            let thread = schedule.pick([.queue, .pool("read"), .pool("write")] as [StoreThread])
            lastStall = schedule.now + 2_000_000_000
            schedule.stall(thread, seconds: schedule.pick([0.01, 0.3, 2]))
            note("\(thread) is slow")
        }
        every(23) { [unowned self] in
            guard settings.faults > 0 else { return }
            origin.isDown = true
            origin.noteFault("is down")
            schedule.after(schedule.pick([0.1, 3])) { [unowned self] in
                origin.isDown = false
                origin.noteFault("is back")
            }
        }
    }

    private func every(_ seconds: Double, _ event: @escaping () -> Void) {
        schedule.after(seconds * (0.5 + schedule.unit())) { [unowned self] in
            guard !isOver else { return }
            event()
            every(seconds, event)
        }
    }
}
