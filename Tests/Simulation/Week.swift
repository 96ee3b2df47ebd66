import CachePolicy
import DiskCache
import Downloads
import EventIO
import Glibc
import Logging
import Synchronization
import TestSupport

/// A week with three podcasts, a slow line and an origin that fails many times a day, and for a whole night. Sizes and
/// rates are a hundredth of what people have.
///
/// Real are the store, the proxy, the downloads, the subscriptions and the databases of all of them; simulated are
/// time, threads, the origin and its feeds. The managers have their own threads: the schedule's waits for them
/// (`catchUp`) before it continues.
///
/// `@unchecked Sendable` because of that.
final class Week: @unchecked Sendable {
    static let limit: Int64 = 20_000_000, rate: Int64 = 12_000
    private static let day = 86_400.0

    let schedule: Schedule
    let origin: SimulatedOrigin
    let log = LogBook()
    /// What must not be, and was.
    private(set) var violations: [String] = []
    /// The names of the episodes that were played.
    private(set) var played: Set<String> = []
    private(set) var outages = 0
    private let directory: TemporaryDirectory
    private let loops: [EventLoop]
    private let proxy: SimulatedProxy
    private let thread = pthread_self()
    private var podcasts: [Podcast] = []
    private var listeners: [Listener] = []
    private var feedRequests = 0
    private(set) var downloads: DownloadManager!
    private var feeds: SubscriptionManager!
    private var episodes: StoreEpisodes!
    private var wakes = 0, ticks = 0

    /// A podcast of the origin's.
    private struct Podcast {
        let name: String
        /// Seconds between two episodes.
        let interval: Double
        let length: Int64
        var episodes: [(number: Int, published: Double)] = []

        var url: String { "http://origin.test/\(name).xml" }

        var text: String {
            let items = episodes.reversed().map {
                """
                <item><title>\(name) \($0.number)</title><guid>\(name)-\($0.number)</guid>\
                <enclosure url="http://origin.test/\(name)-\($0.number).mp4" type="video/mp4"/></item>
                """
            }
            return "<rss version=\"2.0\"><channel><title>\(name)</title>\(items.joined())</channel></rss>"
        }
    }

    init(seed: UInt64) throws {
        let schedule = Schedule(seed: seed), directory = try TemporaryDirectory()
        let origin = SimulatedOrigin(schedule, films: 0, faults: 0)
        origin.breaksWhenDown = true
        schedule.tick = Self.tick
        let loops = try (0..<2).map { try EventLoop(index: $0, driver: schedule) }
        for loop in loops { schedule.add(loop) }
        (self.schedule, self.directory, self.origin, self.loops) = (schedule, directory, origin, loops)
        proxy = try SimulatedProxy(
            schedule, origin, loops: loops, in: directory.path, maxSize: Self.limit, openFiles: 64)
        try start()
    }

    private func start() throws {
        let (policy, store) = (proxy.policy, proxy.store)
        let fillers = zip(loops, proxy.fillers).map { loop, filler in loop.drive { LoopBound(filler, on: loop) } }
        var settings = DownloadSettings()
        settings.limitRate = Self.rate
        downloads = try DownloadManager(
            directory: directory.path,
            source: WeekDownloads(LoopDownloads(fillers, of: proxy.filler), self),
            restorePoints: WeekRestorePoints(StoreRestorePoints(store) { policy.value }, self), settings: settings,
            clock: self, logger: log.logger)
        episodes = StoreEpisodes(
            store, snapshots: downloads.snapshots, policy: { policy.value }, now: { [unowned self] in Int64(now) })
        feeds = try SubscriptionManager(
            directory: directory.path, source: self, downloads: downloads, store: WeekEpisodes(episodes, self),
            clock: self, random: { 0.5 }, logger: log.logger)
        downloads.perform { $0.start() }
        feeds.perform { $0.start() }
        catchUp()
    }

    // MARK: The week

    func run() throws {
        try schedule.owningTime {
            schedule.afterEach = { [unowned self] in
                let ledger = proxy.store.ledger
                guard ledger.size <= ledger.limit else { throw Violation("\(ledger.size) bytes of \(ledger.limit)") }
            }
            try publish()
            outage(after: 100)
            every(Self.day, from: Self.day * 0.8) { [unowned self] in listen() }
            every(Self.day, from: Self.day * 0.3) { [unowned self] in lookInTheMorning() }
            // A whole night without the origin.
            schedule.after(Self.day * 2.05) { [unowned self] in isNightOff = true }
            schedule.after(Self.day * 2.2) { [unowned self] in isNightOff = false }
            try schedule.run(seconds: 7.5 * Self.day)
            schedule.afterEach = nil
            feeds.perform { $0.stop() }
            downloads.perform { $0.stop() }
            listeners = []
            try proxy.close()
        }
    }

    private func publish() throws {
        for (name, interval, length) in [
            ("daily", Self.day, 2_000_000), ("news", Self.day / 4, 600_000), ("series", 2 * Self.day, 4_000_000),
        ] as [(String, Double, Int64)] {
            podcasts.append(Podcast(name: name, interval: interval, length: length))
            let place = podcasts.count - 1
            every(interval, from: 0) { [unowned self] in release(place) }
            let url = try OriginURL(url: podcasts[place].url)
            schedule.after(10) { [unowned self] in
                feeds.perform { $0.subscribe(url, SubscriptionChange()) { _ in } }
                catchUp()
            }
        }
        // One that its feed names, and the origin does not have.
        schedule.after(Self.day) { [unowned self] in podcasts[0].episodes.append((404, now)) }
    }

    private func release(_ place: Int) {
        let podcast = podcasts[place], number = podcast.episodes.count + 1
        podcasts[place].episodes.append((number, now))
        origin.publish(Film("\(podcast.name)-\(number).mp4", length: podcast.length))
    }

    private var isNightOff = false { didSet { setDown(isNightOff) } }

    private func setDown(_ isDown: Bool) {
        if isDown, !origin.isDown { outages += 1 }
        origin.isDown = isDown || isNightOff
    }

    /// Goes down every few minutes.
    private func outage(after seconds: Double) {
        schedule.after(seconds) { [unowned self] in
            setDown(true)
            schedule.after(schedule.pick([1, 15, 60])) { [unowned self] in
                setDown(false)
                outage(after: 300 + 300 * schedule.unit())
            }
        }
    }

    private func every(_ seconds: Double, from first: Double, _ event: @escaping () -> Void) {
        schedule.after(first) { [unowned self] in
            event()
            every(seconds, from: seconds, event)
        }
    }

    /// What was out for six hours is there, or was played.
    private func lookInTheMorning() {
        for film in published(before: now - Self.day / 4) where !played.contains(film.name) {
            if !isCached(film) { violations.append("day \(Int(elapsed / Self.day)): \(film.name) is not there") }
        }
    }

    /// Plays what is there and was not played.
    private func listen() {
        for film in published(before: now) where !played.contains(film.name) && isCached(film) {
            do {
                listeners.append(try Listener(proxy.connect(to: Int(schedule.pick(0...1))), film))
            } catch { violations.append("\(error)") }
            read(listeners.count - 1)
        }
    }

    private func read(_ place: Int) {
        schedule.after(1) { [self] in
            switch listeners[place].read() {
            case .more: read(place)
            case .all: played.insert(listeners[place].film.name)
            case .wrong(let what): violations.append("\(listeners[place].film.name): \(what)")
            }
        }
    }

    private func published(before time: Double) -> [Film] {
        podcasts.flatMap { podcast in
            podcast.episodes.filter { $0.published < time }.compactMap {
                origin.film(at: "http://origin.test/\(podcast.name)-\($0.number).mp4")
            }
        }
    }

    func isCached(_ film: Film) -> Bool {
        do { return try episodes.cached(OriginURL(url: film.url))?.isComplete == true } catch {
            violations.append("\(error)")
            return false
        }
    }

    // MARK: Time and threads

    private var elapsed: Double { Double(schedule.now) / 1e9 }

    /// Waits until the managers have done what they have to do at this time.
    func catchUp() {
        var before: Int
        repeat {
            before = activity
            feeds.perform { _ in }
            downloads.perform { _ in }
            feeds.perform { _ in }
        } while activity != before
    }

    private var activity: Int { feedRequests + Int(downloads.snapshots.revision) }

    /// Runs what a manager does in the store, on its own thread too, at the schedule's time.
    fileprivate func inTime<Value>(_ body: () throws -> Value) rethrows -> Value {
        try pthread_equal(pthread_self(), thread) != 0 ? body() : schedule.owningTime(body)
    }
}

extension Week: DownloadClock, FeedClock {
    var now: Double { 1_700_000_000 + elapsed }
    var monotonic: Double { elapsed }
    var local: LocalTime { .utc }

    /// Less often than the system's clock, and once for the store, too: nothing here depends on it.
    private static let tick = 60.0

    func tick(_ isWanted: Bool, _ wake: @escaping @Sendable () -> Void) {
        ticks += 1
        if isWanted { tick(ticks, wake) }
    }

    private func tick(_ number: Int, _ wake: @escaping @Sendable () -> Void) {
        schedule.after(Self.tick) { [unowned self] in
            guard number == ticks else { return }
            wake()
            catchUp()
            if number == ticks { tick(number, wake) }
        }
    }

    func wake(after seconds: Double?, _ wake: @escaping @Sendable () -> Void) {
        wakes += 1
        guard let seconds else { return }
        schedule.after(seconds) { [unowned self, wakes] in
            guard wakes == self.wakes else { return }
            wake()
            catchUp()
        }
    }
}

extension Week: FeedSource {
    var isOffline: Bool { false }

    func fetch(_ request: FeedRequest, onEnd end: @escaping @Sendable (FeedAnswer) -> Void) -> @Sendable () -> Void {
        feedRequests += 1
        schedule.after(0.2) { [unowned self] in
            let podcast = podcasts.first { $0.url == request.url.absolute }
            end(
                origin.isDown || podcast == nil
                    ? .failed(FeedFailure("connection refused"))
                    : .document(FeedDocument(bytes: Array(podcast!.text.utf8), url: request.url)))
            catchUp()
        }
        return {}
    }
}

/// Real downloads, whose ends the managers take while the schedule waits.
private struct WeekDownloads: DownloadSource {
    let real: LoopDownloads
    let week: Week

    init(_ real: LoopDownloads, _ week: Week) { (self.real, self.week) = (real, week) }

    var isOffline: Bool { false }

    func begin(_ order: DownloadOrder, onEnd end: @escaping @Sendable (DownloadEnd) -> Void) -> any RunningDownload {
        week.inTime {
            real.begin(order) { [week] result in
                week.schedule.after(0) {
                    end(result)
                    week.catchUp()
                }
            }
        }
    }

    func limitAll(to rate: Int64?) { real.limitAll(to: rate) }
    func limitScheduled(to rate: Int64?) { real.limitScheduled(to: rate) }
}

private struct WeekRestorePoints: RestorePointKeeper {
    let real: StoreRestorePoints
    let week: Week

    init(_ real: StoreRestorePoints, _ week: Week) { (self.real, self.week) = (real, week) }

    func restorePoint(_ url: OriginURL) throws -> RestorePoint { try week.inTime { try real.restorePoint(url) } }
    func key(of url: OriginURL) -> String { real.key(of: url) }
    func release(_ point: RestorePoint) throws -> Int64 { try week.inTime { try real.release(point) } }
    func noteOrder(title: String?, category: String?, isByHand: Bool, of key: String) throws {
        try week.inTime { try real.noteOrder(title: title, category: category, isByHand: isByHand, of: key) }
    }
    func leastMissed(limit: Int) throws -> [CachedResource] { try week.inTime { try real.leastMissed(limit: limit) } }
}

private struct WeekEpisodes: EpisodeStore {
    let real: StoreEpisodes
    let week: Week

    init(_ real: StoreEpisodes, _ week: Week) { (self.real, self.week) = (real, week) }

    func cached(_ url: OriginURL) throws -> CachedEpisode? { try week.inTime { try real.cached(url) } }
    func remove(_ url: OriginURL) throws -> Bool { try week.inTime { try real.remove(url) } }
    func played(among urls: [OriginURL]) throws -> [OriginURL: Int64] {
        try week.inTime { try real.played(among: urls) }
    }
    func unpin(_ url: OriginURL) throws -> Bool { try week.inTime { try real.unpin(url) } }
}

/// A player that reads a whole episode, and compares it.
private final class Listener {
    enum Step { case more, all, wrong(String) }

    let film: Film
    private let socket: Int32
    private var received: [UInt8] = []

    init(_ socket: Int32, _ film: Film) {
        (self.socket, self.film) = (socket, film)
        let text = "GET /http/origin.test/\(film.name) HTTP/1.1\r\nHost: localhost\r\nUser-Agent: mpv/0.35.1\r\n\r\n"
        _ = send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL))
    }

    deinit { close(socket) }

    /// Reads what has come.
    func read() -> Step {
        var piece = [UInt8](repeating: 0, count: 1 << 18)
        let count = Glibc.read(socket, &piece, piece.count)
        guard count != 0 else { return .wrong("the connection has ended") }
        if count > 0 { received += piece[0..<count] }
        guard let head = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return .more }
        guard received.starts(with: Array("HTTP/1.1 200".utf8)) else {
            return .wrong(String(decoding: received[..<head.lowerBound], as: UTF8.self))
        }
        guard received.count - head.upperBound >= film.current.length else { return .more }
        let body = Array(received[head.upperBound...])
        received = []
        return film.has(body, at: 0, film.current) ? .all : .wrong("other bytes")
    }
}
