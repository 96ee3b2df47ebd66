import CachePolicy
import DiskCache
import Downloads
import Foundation
import GRDB
import Logging
import Synchronization
import TestSupport

@testable import Downloads

/// Not the one that the modules under test count in debug builds.
typealias Mutex = Synchronization.Mutex

/// Subscriptions with a real database and a real download manager, in a world that does what a test says: its time, its
/// origins, its cache.
final class FeedWorld: Sendable {
    let directory: TemporaryDirectory
    let time: ManualTime
    let origin: FeedOrigin
    let shelf: EpisodeShelf
    let downloads: DownloadManager
    let manager: SubscriptionManager

    /// - Parameters:
    ///   - other: a world that was dropped, as if its process had been killed: this one has its directory and all around.
    ///   - isStarted: whether feeds are checked when they are due.
    ///   - meanwhile: what is done to the files before they are opened.
    init(after other: FeedWorld? = nil, isStarted: Bool = true, meanwhile: () throws -> Void = {}) throws {
        other?.catchUp()
        try meanwhile()
        directory = try other?.directory ?? TemporaryDirectory()
        time = other?.time ?? ManualTime()
        origin = other?.origin ?? FeedOrigin(time)
        shelf = other?.shelf ?? EpisodeShelf()
        time.forgetWakes()
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        downloads = try DownloadManager(
            directory: directory.path, source: ShelfDownloads(shelf), restorePoints: NoRestorePoints(),
            settings: DownloadSettings(), clock: time, logger: logger)
        manager = try SubscriptionManager(
            directory: directory.path, source: origin, downloads: downloads, store: shelf, clock: time,
            random: { 0.5 }, logger: logger)
        downloads.perform { $0.start() }
        if isStarted { manager.perform { $0.start() } }
        catchUp()
    }

    static func url(_ text: String) -> OriginURL {
        do { return try OriginURL(url: text) } catch { preconditionFailure("\(text): \(error)") }
    }

    // MARK: What people do

    @discardableResult
    func subscribe(_ url: String, _ change: (inout SubscriptionChange) -> Void = { _ in }) throws -> FeedCheckResult {
        var wanted = SubscriptionChange()
        change(&wanted)
        let box = Box<Result<FeedCheckResult, DownloadError>?>(nil)
        manager.perform { [wanted] in $0.subscribe(Self.url(url), wanted) { box.value = $0 } }
        catchUp()
        return try Self.result(box)
    }

    @discardableResult
    func check(_ url: String? = nil) throws -> [FeedCheckResult] {
        let box = Box<Result<[FeedCheckResult], DownloadError>?>(nil)
        manager.perform { $0.check(url.map(Self.url)) { box.value = $0 } }
        catchUp()
        return try Self.result(box)
    }

    private static func result<Value>(_ box: Box<Result<Value, DownloadError>?>) throws -> Value {
        guard let result = box.value else { throw Unexpected("there was no outcome") }
        return try result.get()
    }

    func report(_ url: String) throws -> FeedSubscription {
        guard let found = try manager.perform({ try $0.reports() }).first(where: { $0.urlText == url }) else {
            throw Unexpected("\(url) is not subscribed")
        }
        return found
    }

    func episodes(_ url: String) throws -> [FeedEpisode] {
        try manager.perform { try $0.detail(of: Self.url(url), limit: nil) }.episodes
    }

    // MARK: What happens

    /// Lets time pass, with all that happens meanwhile.
    func pass(_ seconds: Double) {
        let end = time.now + seconds
        catchUp()
        while time.advance(upTo: end) { catchUp() }
    }

    /// Waits until nothing happens any more at this time.
    func catchUp() {
        var before: Int
        repeat {
            before = activity
            manager.perform { _ in }
            downloads.perform { _ in }
            manager.perform { _ in }
        } while activity != before
    }

    private var activity: Int { origin.requests.count + shelf.activity + Int(downloads.snapshots.revision) }

    /// The last parts of the URLs of all downloads ever ordered, in the order of ordering.
    var ordered: [String] {
        downloads.snapshots.listing { _ in true }.downloads.sorted { $0.id < $1.id }.map {
            String($0.urlText.split(separator: "/").last ?? "")
        }
    }

    /// Copies the database of feeds as it is.
    func backUp(to path: String) throws {
        try DatabaseQueue(path: directory.file("feeds.sqlite")).backup(to: DatabaseQueue(path: path))
    }

    /// Through another connection than the manager's.
    func inDatabase<Value>(_ body: (Database) throws -> Value) throws -> Value {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        return try DatabaseQueue(path: directory.file("feeds.sqlite"), configuration: configuration).write(body)
    }
}

/// What a callback leaves for a test.
final class Box<Value: Sendable>: Sendable {
    private let stored: Mutex<Value>

    init(_ value: Value) { stored = Mutex(value) }

    var value: Value {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}

// MARK: - Time

/// Time that stands still until a test moves it.
final class ManualTime: DownloadClock, FeedClock {
    private struct State {
        var seconds = 0.0
        var tick: (@Sendable () -> Void)?
        var wake: (at: Double, call: @Sendable () -> Void)?
    }

    /// 2023-11-14.
    static let start = 1_700_000_000.0
    private let state = Mutex(State())

    var now: Double { Self.start + state.withLock { $0.seconds } }
    var monotonic: Double { state.withLock { $0.seconds } }
    var local: LocalTime { .utc }

    func tick(_ isWanted: Bool, _ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.tick = isWanted ? wake : nil }
    }

    func wake(after seconds: Double?, _ wake: @escaping @Sendable () -> Void) {
        state.withLock { state in state.wake = seconds.map { (Self.start + state.seconds + $0, wake) } }
    }

    /// Sets the clock back. Timers run on, as those of the system do.
    func setBack(_ seconds: Double) {
        state.withLock { state in
            state.seconds -= seconds
            if let wake = state.wake {
                state.wake = (min(wake.at - seconds, Self.start + state.seconds + 60), wake.call)
            }
        }
    }

    func forgetWakes() { state.withLock { ($0.tick, $0.wake) = (nil, nil) } }

    /// An hour: how long a tick lasts, at most.
    private static let longestTick = 3600.0

    /// Moves to the next time that somebody waits for, and wakes them.
    /// - Returns: false if the end had been reached before, and nothing was due.
    func advance(upTo end: Double) -> Bool {
        let (wakes, isEnd) = state.withLock { state -> ([@Sendable () -> Void], Bool) in
            let now = Self.start + state.seconds
            if now >= end, (state.wake?.at ?? .infinity) > now { return ([], true) }
            let tickEnd = state.tick == nil ? end : now + Self.longestTick
            let next = min(state.wake?.at ?? end, tickEnd, end)
            state.seconds = max(state.seconds, next - Self.start)
            var wakes = [state.tick].compactMap { $0 }
            if let wake = state.wake, wake.at <= Self.start + state.seconds {
                wakes.append(wake.call)
                state.wake = nil
            }
            return (wakes, false)
        }
        for wake in wakes { wake() }
        return !isEnd
    }
}

// MARK: - Origins

/// Feeds that a test writes.
final class FeedOrigin: FeedSource {
    struct Request: Sendable {
        let time: Double
        let url: String
        let isConditional: Bool
    }

    enum Response: Sendable {
        /// A text with its ETag.
        case text(String, etag: String?)
        /// A text at another URL, after permanent redirects or others.
        case redirect(String, isMoved: Bool)
        case failure(String, retryAfter: Double? = nil)
    }

    private struct State {
        var responses: [String: @Sendable (Double) -> Response] = [:]
        var requests: [Request] = []
        var isOffline = false
        var held: [@Sendable () -> Void] = []
        var holds = false
    }

    private let time: ManualTime
    private let state = Mutex(State())

    init(_ time: ManualTime) { self.time = time }

    var isOffline: Bool {
        get { state.withLock { $0.isOffline } }
        set { state.withLock { $0.isOffline = newValue } }
    }

    var requests: [Request] { state.withLock { $0.requests } }

    func count(_ url: String) -> Int { requests.count { $0.url == url } }

    /// Answers requests for a URL, by the time.
    func serve(_ url: String, _ response: @escaping @Sendable (_ now: Double) -> Response) {
        state.withLock { $0.responses[url] = response }
    }

    func serve(_ url: String, _ text: String, etag: String? = nil) { serve(url) { _ in .text(text, etag: etag) } }

    /// Whether answers wait for `release`.
    func hold() { state.withLock { $0.holds = true } }

    func release() {
        let held = state.withLock { state in
            defer { (state.held, state.holds) = ([], false) }
            return state.held
        }
        for answer in held { answer() }
    }

    func fetch(_ request: FeedRequest, onEnd end: @escaping @Sendable (FeedAnswer) -> Void) -> @Sendable () -> Void {
        let (url, now) = (request.url.absolute, time.now)
        let isConditional = request.validators != FeedValidators()
        let response = state.withLock { state in
            state.requests.append(Request(time: now, url: url, isConditional: isConditional))
            return state.responses[url]
        }
        let answer = answer(response ?? { _ in .missing }, to: request, at: url)
        let isHeld = state.withLock { state in
            if state.holds { state.held.append { end(answer) } }
            return state.holds
        }
        if !isHeld { end(answer) }
        return {}
    }

    /// Follows redirects, ten at most.
    private func answer(
        _ response: @Sendable (Double) -> Response, to request: FeedRequest, at url: String, redirects: Int = 0,
        haveMoved: Bool = true
    ) -> FeedAnswer {
        switch response(time.now) {
        case .failure(let message, let retryAfter): return .failed(FeedFailure(message, retryAfter: retryAfter))
        case .text(_, let etag?) where request.validators.etag == etag:
            return .notModified(movedTo: redirects > 0 && haveMoved ? FeedWorld.url(url) : nil)
        case .text(let text, let etag):
            var document = FeedDocument(bytes: Array(text.utf8), url: FeedWorld.url(url))
            (document.validators, document.hasMoved) = (FeedValidators(etag: etag), redirects > 0 && haveMoved)
            return .document(document)
        case .redirect(let target, let isMoved):
            guard redirects < 10 else { return .failed(FeedFailure("more than 10 redirects")) }
            let next = state.withLock { $0.responses[target] }
            return answer(
                next ?? { _ in .missing }, to: request, at: target, redirects: redirects + 1,
                haveMoved: haveMoved && isMoved)
        }
    }
}

extension FeedOrigin.Response {
    static let missing = FeedOrigin.Response.failure("the origin answered 404")
}

// MARK: - The cache

/// Cached episodes, by URL.
final class EpisodeShelf: EpisodeStore {
    private struct State {
        var bytes: [String: Int64] = [:]
        var playing: Set<String> = []
        var played: [String: Int64] = [:]
        var unpinned: [String] = []
        var removed: [String] = []
        var begun: [String] = []
        var sizes: [String: Int64] = [:]
        /// By URL, the bytes that arrive before the download fails.
        var failing: [String: Int64] = [:]
        var held: Set<String> = []
        /// By URL, those of which a part was evicted.
        var partial: Set<String> = []
        var activity = 0
    }

    private let state = Mutex(State())

    var activity: Int { state.withLock { $0.activity } }
    /// The last parts of URLs, sorted.
    var cached: [String] { state.withLock { $0.bytes.keys.map(Self.name).sorted() } }
    /// What was removed, in order.
    var removed: [String] { state.withLock { $0.removed.map(Self.name) } }
    /// The downloads that began, in order.
    var begun: [String] { state.withLock { $0.begun.map(Self.name) } }

    private static func name(_ url: String) -> String { String(url.split(separator: "/").last ?? "") }

    func play(_ url: String, _ isPlaying: Bool = true) {
        state.withLock { state in
            if isPlaying { state.playing.insert(url) } else { state.playing.remove(url) }
        }
    }

    /// What a player has read three quarters of.
    func finish(_ url: String, at time: Int64) { state.withLock { $0.played[url] = time } }

    var unpinned: [String] { state.withLock { $0.unpinned.map(Self.name) } }

    func played(among urls: [OriginURL]) -> [OriginURL: Int64] {
        state.withLock { state in urls.reduce(into: [:]) { $0[$1] = state.played[$1.absolute] } }
    }

    func unpin(_ url: OriginURL) -> Bool {
        state.withLock { state in
            guard !state.playing.contains(url.absolute) else { return false }
            state.unpinned.append(url.absolute)
            return true
        }
    }

    /// Removes it as a person does.
    func takeAway(_ url: String) { state.withLock { $0.bytes[url] = nil } }

    func setSize(_ size: Int64, of url: String) { state.withLock { $0.sizes[url] = size } }

    /// Lets its download run for ever.
    func holds(_ url: String) { state.withLock { _ = $0.held.insert(url) } }

    /// Lets its next attempt complete.
    func letGo(_ url: String) { state.withLock { _ = $0.held.remove(url) } }

    fileprivate func isHeld(_ url: String) -> Bool { state.withLock { $0.held.contains(url) } }

    /// Lets its download fail after some bytes.
    func fails(_ url: String, after bytes: Int64 = 0) { state.withLock { $0.failing[url] = bytes } }

    func works(_ url: String) { state.withLock { $0.failing[url] = nil } }

    func cached(_ url: OriginURL) -> CachedEpisode? {
        state.withLock { state in
            state.bytes[url.absolute].map {
                CachedEpisode(bytes: $0, isComplete: !state.partial.contains(url.absolute))
            }
        }
    }

    func evictPart(of url: String) { state.withLock { _ = $0.partial.insert(url) } }

    func remove(_ url: OriginURL) -> Bool {
        state.withLock { state in
            guard !state.playing.contains(url.absolute) else { return false }
            if state.bytes.removeValue(forKey: url.absolute) != nil { state.removed.append(url.absolute) }
            return true
        }
    }

    fileprivate func download(_ url: String) -> (bytes: Int64, isComplete: Bool) {
        state.withLock { state in
            state.begun.append(url)
            state.activity += 1
            if let bytes = state.failing[url] {
                if bytes > 0 { state.bytes[url] = bytes }
                return (bytes, false)
            }
            let size = state.sizes[url] ?? 100
            state.bytes[url] = size
            return (size, true)
        }
    }
}

/// Downloads that are complete as soon as they begin.
private struct ShelfDownloads: DownloadSource {
    let shelf: EpisodeShelf
    let isOffline = false

    init(_ shelf: EpisodeShelf) { self.shelf = shelf }

    func begin(_ order: DownloadOrder, onEnd end: @escaping @Sendable (DownloadEnd) -> Void) -> any RunningDownload {
        var progress = DownloadProgress()
        if shelf.isHeld(order.url.absolute) { return Done(progress: progress) }
        let (bytes, isComplete) = shelf.download(order.url.absolute)
        progress.bytes = bytes
        if isComplete {
            progress.total = bytes
            end(.completed(progress))
        } else {
            end(.failed(DownloadFault(.final, "the origin answered 404"), progress))
        }
        return Done(progress: progress)
    }

    func limitAll(to rate: Int64?) {}
    func limitScheduled(to rate: Int64?) {}

    private struct Done: RunningDownload {
        let progress: DownloadProgress
        var fetched: Int64 { progress.bytes }
        func limit(to rate: Int64?) {}
        func stop() {}
    }
}

private struct NoRestorePoints: RestorePointKeeper {
    func restorePoint(_ url: OriginURL) -> RestorePoint {
        RestorePoint(key: url.absolute, wasPinned: false, former: [])
    }
    func key(of url: OriginURL) -> String { url.absolute }
    func release(_ restorePoint: RestorePoint) -> Int64 { 0 }
    func noteOrder(title: String?, category: String?, isByHand: Bool, of key: String) {}
    func leastMissed(limit: Int) -> [CachedResource] { [] }
}
