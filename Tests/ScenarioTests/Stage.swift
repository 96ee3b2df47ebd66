import Activity
import CachePolicy
import Foundation
import Logging
import Reelcache
import Synchronization
import TestSupport
import Testing

/// All scenarios. Each has ports and a directory of its own.
enum Scenarios {}

/// An origin, a proxy in front of it, and an empty cache: where a scenario takes place.
///
/// | term | meaning |
/// |---|---|
/// | origin | the scriptable server that has the media, on a port of this machine |
/// | player | a client of the proxy, which believes nothing: `RawClient` |
/// | film | media whose every byte a test can tell |
final class Stage: Sendable {
    /// What differs from scenario to scenario.
    struct Setting: Sendable {
        var maxSize: Int64 = 1_000_000_000
        var allow = ["127.0.0.1"]
        var tuning = ProxyTuning()
        /// One that has begun already; nil for one of the scenario's own.
        var origin: ScriptedOrigin?
        /// Where its cache is; nil for the directory of all tests.
        var directory: String?
        /// What else is set, and has no name here.
        var configuration: @Sendable (inout ProxyConfiguration) -> Void = { _ in }

        /// How much is fetched beyond what is asked for.
        mutating func fill(_ fill: FillMode) {
            tuning.policy?.fill = fill
            configure { $0.fill = fill }
        }

        mutating func configure(_ change: @escaping @Sendable (inout ProxyConfiguration) -> Void) {
            let former = configuration
            configuration = {
                former(&$0)
                change(&$0)
            }
        }

        init() {
            // A broken transfer goes on at once: no scenario is about the wait.
            tuning.fill.retry = RetryPolicy(maxAttempts: 4, base: 0.01, ceiling: 0.05)
            // And a transfer ends with its last player, but where a scenario is about its staying.
            tuning.fill.lingerSeconds = 0
            tuning.limits.lingerSeconds = 0.2
            // An origin may be held for as long as a scenario takes on a busy machine.
            tuning.upstream.stallTimeout = 600
        }
    }

    let origin: ScriptedOrigin
    let setting: Setting
    /// What the proxy takes for the time.
    let clock = StageClock()
    private let directory: TemporaryDirectory
    /// nil while the proxy is stopped.
    private let running: Mutex<Proxy?>

    init(_ setting: Setting) throws {
        self.setting = setting
        origin = try setting.origin ?? ScriptedOrigin()
        origin.setClock(clock.now)
        directory = try TemporaryDirectory(in: setting.directory)
        running = Mutex(nil)
        try start()
    }

    /// The proxy's cache directory.
    var cache: String { directory.file("cache") }

    // MARK: The proxy

    /// - Throws: `ProxyError` where it cannot start.
    func start() throws {
        let proxy = try makeProxy()
        running.withLock { $0 = proxy }
    }

    /// One more proxy on the same cache.
    func makeProxy() throws -> Proxy {
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.cacheDirectory = cache
        configuration.maxSize = setting.maxSize
        configuration.minFree = 1_000_000
        configuration.allow = setting.allow
        configuration.threads = 2
        setting.configuration(&configuration)
        var tuning = setting.tuning
        tuning.now = { [clock] in clock.now }
        return try Proxy(
            configuration, tuning: tuning, logger: Logger(label: "scenario") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Stops the proxy and cuts what it is sending.
    func stop() throws {
        let proxy = running.withLock { running in
            defer { running = nil }
            return running
        }
        try proxy?.stop(grace: .zero)
    }

    /// Ends the proxy in order and begins anew with what it has left on the disk.
    func restart() throws {
        try stop()
        try start()
    }

    /// Ends everything.
    func end() {
        origin.stop()
        do { try stop() } catch { Issue.record(error) }
    }

    var proxy: Proxy {
        guard let proxy = running.withLock({ $0 }) else { preconditionFailure("the proxy is stopped") }
        return proxy
    }

    /// Lets time pass, for proxy and origin.
    func wait(seconds: Int64) {
        clock.advance(by: seconds)
        origin.setClock(clock.now)
    }

    // MARK: Players

    /// What a player asks the proxy for, to get `path` of the origin.
    func target(_ path: String) -> String { "/http/127.0.0.1:\(origin.port)\(path)" }

    /// Opens a connection, asks for a path of the origin, reads all, and disconnects.
    func get(_ path: String, range: String? = nil, headers: [(String, String)] = [], method: String = "GET") throws
        -> RawClient.Response
    {
        try RawClient.get(port: proxy.port, path: target(path), range: range, headers: headers, method: method)
    }

    /// Opens a connection to the proxy.
    /// - Parameter receiveBuffer: a small one makes a player that buffers little.
    func player(receiveBuffer: Int? = nil) throws -> RawClient {
        try RawClient(port: proxy.port, receiveBuffer: receiveBuffer)
    }

    /// Opens a connection, asks for a path of the origin, and reads the head of the answer.
    func playerOf(_ path: String, range: String? = nil, receiveBuffer: Int? = nil) throws -> (
        player: RawClient, head: RawClient.ResponseHead
    ) {
        let player = try player(receiveBuffer: receiveBuffer)
        try player.send(player.request(target(path), range: range))
        return (player, try player.readHead())
    }

    // MARK: What can be seen from outside

    var stats: StatsSnapshot {
        get throws { proxy.counters }
    }

    /// Waits until `predicate` holds of the statistics.
    func waitForStats(_ what: String, within patience: Duration = .patience, _ predicate: (StatsSnapshot) -> Bool)
        throws
    {
        let proxy = proxy
        try eventually("\(what) in the statistics", within: patience, instead: "\(proxy.counters)") {
            predicate(proxy.counters)
        }
    }

    /// Waits until no transfer is open: a player's last byte may be there before the end of its chunk.
    func catchUp() throws { try waitForStats("the end of transfers") { $0[\.openFetches] == 0 } }

    /// The files in the cache, by what they take on the disk as `du` counts it, in bytes.
    var files: [String: Int64] {
        var files: [String: Int64] = [:]
        for name in FileManager.default.enumerator(atPath: cache)?.compactMap({ $0 as? String }) ?? [] {
            var info = stat()
            // Files come and go meanwhile.
            guard lstat("\(cache)/\(name)", &info) == 0, info.st_mode & S_IFMT == S_IFREG else { continue }
            files[name] = Int64(info.st_blocks) * 512
        }
        return files
    }

    /// The files that hold media.
    var dataFiles: [String] { files.keys.filter { $0.hasPrefix("data/") } }

    /// What is wrong with the size of the cache at this moment; nil where nothing is.
    ///
    /// The files are looked at one after the other. What was evicted from one behind the look may be in another before
    /// it, and count twice: so it takes three sums in a row that are too much.
    func oversize() throws -> String? {
        let size = try stats[\.size]
        if size > setting.maxSize { return "the statistics count \(size) bytes, of \(setting.maxSize)" }
        var onDisk: Int64 = 0
        for _ in 0..<3 {
            onDisk = files.values.reduce(0, +)
            if onDisk <= setting.maxSize { return nil }
        }
        return "\(onDisk) bytes on the disk, of \(setting.maxSize)"
    }
}

/// A clock that stands still until it is moved on by hand; it begins with the time of this machine.
final class StageClock: Sendable {
    private let time = Atomic<Int64>(Int64(Glibc.time(nil)))

    /// Seconds since 1970.
    var now: Int64 { time.load(ordering: .relaxed) }

    func advance(by seconds: Int64) { time.wrappingAdd(seconds, ordering: .relaxed) }
}

/// Plays a scenario, which may block, on threads of its own, and ends everything after it.
func scenario(_ change: (inout Stage.Setting) -> Void = { _ in }, _ story: @escaping @Sendable (Stage) throws -> Void)
    async throws
{
    var setting = Stage.Setting()
    change(&setting)
    try await blocking { [setting] in
        let stage = try Stage(setting)
        defer { stage.end() }
        try story(stage)
    }
}
