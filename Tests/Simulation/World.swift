@testable import DiskCache
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
    /// Has the cache as a kill and a power cut would have left it.
    private let left: TemporaryDirectory
    private var disk: SimulatedDisk!
    /// Syncs and holes until the power fails; holes only, if it fails after one.
    private var momentsLeft: Int64
    private let failsAfterHole: Bool
    /// Bytes of the cache's room that something else takes.
    private let taken: Int64
    private static let maxSize: Int64 = 16_000_000
    /// What was reported as saved before a kill, by URL.
    private var saved: [String: Int64] = [:]
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

        /// Every fourth seed has no faults: whatever is refused or cut is the proxy's.
        static func of(_ seed: UInt64) -> Settings {
            var settings = Settings()
            if seed % 4 == 0 { settings.faults = 0 }
            return settings
        }
    }

    var hasFaults: Bool { settings.faults > 0 }

    /// How long an answer may be on its way from the origin, with its retries, in nanoseconds.
    let longestAnswer: UInt64 = 60_000_000_000

    init(seed: UInt64) throws {
        let settings = Settings.of(seed)
        self.settings = settings
        let schedule = Schedule(seed: seed)
        self.schedule = schedule
        failsAfterHole = schedule.chance(0.25)
        momentsLeft = schedule.pick(1...(failsAfterHole ? 12 : 120))
        taken = schedule.pick([0, 0, 8_000_000])
        origin = SimulatedOrigin(
            schedule, films: schedule.pick([3, 6, 20]), faults: settings.faults, isFree: settings.faults == 0)
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
        disk = SimulatedDisk(
            directory.path, schedule, losesIndex: momentsLeft % 2 == 0, mayFail: { [unowned self] in mayFail($0) },
            refuses: { [unowned self] in refusesWrite() })
        defer { disk.end() }
        try open(directory.path)
        players = (0..<settings.players).map { Player(self, number: $0, requests: 20) }
        for player in players { player.start() }
        scheduleEvents()
        try schedule.run(seconds: settings.seconds)
        // No more faults: what is requested from now on comes, and completely.
        origin.faults = 0
        origin.isDown = false
        isOver = true
        schedule.tick = 3
        note("the last fault")
        try schedule.run(seconds: 120)
        try playToTheEnd(requests: 2)
        try checkRest()
        saved = try proxy.savedBytes()
        try close()
        try reopen(directory.path, "restart")
        // What was invalidated since is current again.
        for film in origin.films { film.oldest = 0 }
        saved = savedBeforeKill
        try reopen(left.path + "/kill", "after a kill")
        saved = [:]
        if momentsLeft <= 0 { try reopen(left.path + "/power", "after a power cut") }
        players = []
    }

    /// Opens a cache that is to have what was saved, and plays.
    private func reopen(_ directory: String, _ what: String) throws {
        note(what)
        try open(directory)
        let found = try proxy.savedBytes()
        for (url, count) in saved where found[url, default: 0] < count {
            throw Violation("\(what): \(found[url, default: 0]) of \(count) saved bytes of \(url)")
        }
        let validation = try proxy.store.scrub(repairs: false) { _ in true }
        guard validation.isSound else { throw Violation("\(what): \(validation)") }
        try playToTheEnd(requests: 1)
        let dropped = proxy.metrics.droppedChunks.value
        guard dropped == 0 else { throw Violation("\(what): \(dropped) chunks of the index are not on the disk") }
        try close()
    }

    /// Once nobody reads, every transfer ends, and the ledger counts what is there.
    private func checkRest() throws {
        for player in players { player.hangUp() }
        try schedule.run(seconds: 60)
        guard origin.running == 0 else { throw Violation("\(origin.running) transfers for nobody") }
        let counted = proxy.store.ledger.dataSize - taken, there = disk.measure()
        // Each file has its overhead, which may hold residue; a replaced one may still be open.
        let overhead = Int64(there.files + origin.films.count) * CapacityLedger.fileOverhead
        guard counted >= there.bytes, counted <= there.bytes + overhead else {
            throw Violation("\(there) on the disk, \(counted) counted")
        }
        try checkTables(areUsed: false)
        // Without a strong validator, a part is requested as the whole: where most films have none, that is the most of it.
        for film in origin.films where hasFaults || film.validator == .strong { try checkCost(of: film) }
    }

    /// The absent chunks of each open file are counted, and what nobody uses is neither leased nor claimed.
    private func checkTables(areUsed: Bool = true) throws {
        for generation in proxy.store.core.open.all {
            let (counted, absent, isUsed) = generation.withChunks { table in
                let present = table.extents.values.reduce(0) { $0 + $1.present.count }
                let absent = table.length.map { table.geometry.chunkCount(length: $0) - present }
                return (table.absentCount, absent, table.hasClaims || table.isLeased)
            }
            guard absent == nil || absent == counted else {
                throw Violation("\(counted) chunks count as absent, \(absent!) are")
            }
            guard areUsed || !isUsed else { throw Violation("chunks are leased for nobody") }
        }
    }

    /// A transfer runs ahead of its furthest reader by 128 KiB and twice what that read, and as far again as was read
    /// once nobody reads (docs/dev/architecture.md); its reader by a bit more.
    private func checkCost(of film: Film) throws {
        let cost = origin.costs[film.name, default: SimulatedOrigin.Cost()]
        let bound = 4 * film.received + Int64(cost.requests) * (384 << 10) + cost.unwanted
        guard cost.sent <= bound else {
            throw Violation("\(cost) of \(film.name), of which players received \(film.received) bytes")
        }
    }

    private func playToTheEnd(requests: Int) throws {
        for player in players { player.becomeQuiet(requests: requests) }
        try schedule.run(seconds: 3600) { players.allSatisfy(\.hasEnded) }
        try check()
        guard players.allSatisfy(\.hasEnded) else { throw Violation("a player waits for ever") }
    }

    private var isOver = false
    private var savedBeforeKill: [String: Int64] = [:]

    private func open(_ directory: String) throws {
        proxy = try SimulatedProxy(
            schedule, origin, loops: loops, in: directory, maxSize: Self.maxSize,
            openFiles: schedule.pick([2, 4, 64]))
        _ = proxy.store.ledger.reserve(taken)
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
            do {
                if schedule.chance(0.5) {
                    try proxy.save()
                    savedBeforeKill = try proxy.savedBytes()
                }
                try FileManager.default.copyItem(atPath: directory.path, toPath: left.path + "/kill")
            } catch {
                failed("\(error)")
            }
        }
        every(1) { [unowned self] in
            let allocated = disk.measure().bytes + taken
            if allocated > Self.maxSize { failed("\(allocated) bytes on the disk of \(Self.maxSize)") }
            do { try checkTables() } catch { failed("\(error)") }
        }
        every(schedule.pick([3, 11])) { [unowned self] in
            let film = schedule.pick(origin.films)
            note("\(film.name) is removed")
            film.removed = schedule.now
            do { try proxy.remove(film.url) } catch { failed("\(error)") }
        }
        every(schedule.pick([2, 7, 20])) { [unowned self] in
            let film = schedule.pick(origin.films)
            film.change(schedule)
            note("\(film.name) changes: \(film.current.number), \(film.current.length)")
        }
        every(schedule.pick([5, 17])) { [unowned self] in
            guard hasFaults else { return }
            let thread = schedule.pick([.queue, .pool("read"), .pool("write")] as [StoreThread])
            lastStall = schedule.now + 2_000_000_000
            schedule.stall(thread, seconds: schedule.pick([0.01, 0.3, 2]))
            note("\(thread) is slow")
        }
        every(23) { [unowned self] in
            guard hasFaults else { return }
            origin.isDown = true
            origin.noteFault("is down")
            schedule.after(schedule.pick([0.1, 3])) { [unowned self] in
                origin.isDown = false
                origin.noteFault("is back")
            }
        }
    }

    private func mayFail(_ moment: SimulatedDisk.Moment) {
        guard momentsLeft > 0, !isOver, !failsAfterHole || moment == .hole else { return }
        momentsLeft -= 1
        guard momentsLeft == 0 else { return }
        note("what a power cut would leave")
        do { try disk.copy(to: left.path + "/power") } catch { failed("\(error)") }
    }

    private func refusesWrite() -> Bool {
        guard hasFaults, !isOver, schedule.chance(0.001) else { return false }
        lastStall = schedule.now
        note("the disk refuses a write")
        return true
    }

    private func every(_ seconds: Double, _ event: @escaping () -> Void) {
        schedule.after(seconds * (0.5 + schedule.unit())) { [unowned self] in
            guard !isOver else { return }
            event()
            every(seconds, event)
        }
    }
}
