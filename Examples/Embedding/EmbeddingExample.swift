import ArgumentParser
import Foundation
import Reelcache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Opens a cache, downloads a film into it, and plays the film through the proxy: all that a program needs, from the
/// first line to the last.
@main struct EmbeddingExample: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Downloads a film into a cache of this program's own, and plays its first bytes.")

    @Argument(help: "The URL of a film.", transform: Self.url)
    var url: URL
    @Option(help: "The cache directory; by default a temporary one, which is removed.")
    var cacheDir: String?
    @Option(help: "A private origin that may be fetched from.")
    var allow: [String] = []
    @Option(help: "Bytes per second of all downloads together.")
    var rate: Int64?

    func run() async throws {
        let name = "reelcache-example-\(getpid())"
        let temporary = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        let cache = try await open(cacheDir ?? temporary)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await use(cache)) } catch { outcome = .failure(error) }
        try await cache.close()
        if cacheDir == nil { try FileManager.default.removeItem(atPath: temporary) }
        try outcome.get()
    }

    private func open(_ directory: String) async throws -> MediaCache {
        var configuration = ProxyConfiguration()
        configuration.cacheDirectory = directory
        configuration.maxSize = 5_000_000_000
        configuration.listen = "127.0.0.1:0"
        configuration.allow = allow
        return try await MediaCache.open(configuration)
    }

    private func use(_ cache: MediaCache) async throws {
        print("cached before: \(cache.isCached(url) ? "yes" : "no")")
        try await cache.reconfigure { [rate] in
            $0.maxDownloads = 2
            $0.downloadRate = rate
            $0.downloadSchedule = ["01:00-06:30=unlimited", "else=5MB"]
            $0.downloadCaps = ["2GB/day", "40GB/month"]
        }
        try await download(cache)
        try await describe(cache)
        try await play(cache)
    }

    private func download(_ cache: MediaCache) async throws {
        for await event in cache.downloadEvents(for: url) {
            switch event {
            case .progress(let download): show(download)
            case .completed(let download, let file):
                print("downloaded \(download.bytes) bytes to \(file?.path ?? "the cache")")
            case .failed(let error): throw error
            }
        }
    }

    private func show(_ download: Download) {
        let percent = download.fractionCompleted.map { "\(Int($0 * 100)) %" } ?? "\(download.bytes) bytes"
        print("\(download.state.rawValue): \(percent)\(download.bytesPerSecond.map { ", \($0) bytes/s" } ?? "")")
    }

    private func describe(_ cache: MediaCache) async throws {
        if let coverage = try await cache.coverage(of: url) {
            print("cached: \(coverage.cachedBytes) of \(coverage.length) bytes\(coverage.isPinned ? ", pinned" : "")")
        }
        for play in try await cache.activity().plays { print("\(play.player) plays \(play.title)") }
        for download in await cache.downloads.history(limit: 3) {
            print("history: \(download.urlText) \(download.state.rawValue)")
        }
    }

    private func play(_ cache: MediaCache) async throws {
        let proxy = try await cache.startProxy()
        let playable = try cache.proxiedURL(for: url)
        print("a player opens \(playable)")
        var request = URLRequest(url: playable)
        request.setValue("bytes=0-65535", forHTTPHeaderField: "Range")
        let (bytes, response) = try await URLSession.shared.data(for: request)
        let status = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Cache-Status")
        print("played \(bytes.count) bytes, \(status ?? "")")
        try await proxy.stop(grace: .seconds(1))
    }

    @Sendable private static func url(_ text: String) throws -> URL {
        guard let url = URL(string: text), url.scheme != nil else { throw ValidationError("'\(text)' is no URL") }
        return url
    }
}
