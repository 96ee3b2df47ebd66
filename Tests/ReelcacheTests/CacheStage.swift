import Foundation
import Synchronization
import Testing
import TestSupport

@testable import Reelcache

/// Not the one that the modules under test count in debug builds.
typealias Mutex = Synchronization.Mutex

/// A cache that this process has open, and an origin of whose films it may fetch.
final class CacheStage: Sendable {
    let origin: ScriptedOrigin
    let directory: TemporaryDirectory
    let film = Media(seed: 71, size: 300_000)
    private let opened: Mutex<MediaCache>
    private let downloads: Bool
    let log = LogBook()

    /// - Parameters:
    ///   - downloads: whether they are carried out.
    ///   - configure: what else is set.
    init(downloads: Bool = true, _ configure: (inout ProxyConfiguration) -> Void = { _ in }) throws {
        origin = try ScriptedOrigin()
        directory = try TemporaryDirectory()
        self.downloads = downloads
        opened = Mutex(try Self.open(directory, downloads, log, configure))
    }

    private static func open(
        _ directory: TemporaryDirectory, _ downloads: Bool, _ log: LogBook,
        _ configure: (inout ProxyConfiguration) -> Void = { _ in }
    ) throws -> MediaCache {
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.cacheDirectory = directory.file("cache")
        configuration.maxSize = 100_000_000
        configuration.minFree = 1_000_000
        configuration.allow = ["127.0.0.1"]
        configuration.threads = 2
        configure(&configuration)
        var tuning = ProxyTuning()
        tuning.fill.lingerSeconds = 0
        tuning.limits.lingerSeconds = 0.2
        tuning.downloads = downloads
        return try MediaCache(configuration, tuning: tuning, logger: log.logger)
    }

    var cache: MediaCache { opened.withLock { $0 } }

    /// Closes the cache and opens it again.
    func reopen() throws {
        try cache.close(grace: .zero)
        let again = try Self.open(directory, downloads, log)
        opened.withLock { $0 = again }
    }

    func end() {
        origin.stop()
        do { try cache.close(grace: .zero) } catch { Issue.record(error) }
    }

    /// Has the origin serve the film there.
    /// - Returns: its URL.
    @discardableResult
    func serve(_ path: String, _ media: Media? = nil) -> URL {
        origin.serve(path, media ?? film)
        return url(path)
    }

    func url(_ path: String) -> URL { URL(string: origin.url(path))! }

    /// Waits until no transfer is open: a player's last byte may be there before the end of its chunk.
    func catchUp() throws {
        try eventually("the end of transfers") { cache.engine.metrics.openFetches.value == 0 }
    }

    /// Plays a film, or bytes of it, through the proxy, which has to run.
    /// - Returns: what came.
    @discardableResult
    func play(_ path: String, range: Range<Int64>? = nil) throws -> [UInt8] {
        let proxy = try #require(cache.proxy)
        let response = try RawClient.get(
            port: proxy.port, path: ProxyProcess.target(origin.url(path)), range: range?.rangeField)
        try #require(response.status == (range == nil ? 200 : 206), "\(response)")
        try catchUp()
        return response.body
    }
}

/// Tells a story of one cache, on threads of its own, and ends everything after it.
func cacheStory(
    _ configure: @escaping @Sendable (inout ProxyConfiguration) -> Void = { _ in },
    _ story: @escaping @Sendable (CacheStage) throws -> Void
) async throws {
    try await blocking {
        let stage = try CacheStage(configure)
        defer { stage.end() }
        try story(stage)
    }
}

/// The same for a story that waits without blocking.
/// - Parameter downloads: whether they are carried out; else each waits for ever.
func cacheStory(downloads: Bool = true, following story: @escaping @Sendable (CacheStage) async throws -> Void)
    async throws
{
    let stage = try await onThread { try CacheStage(downloads: downloads) }
    let result: Result<Void, any Error>
    do { result = .success(try await story(stage)) } catch { result = .failure(error) }
    try await onThread { stage.end() }
    try result.get()
}
