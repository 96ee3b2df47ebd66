import Foundation
import Testing
import TestSupport

@testable import Reelcache

/// A cache as a value whose parts a test replaces.
@Suite(.timeLimit(.minutes(10))) struct MediaCacheClientTests {
    private let url = URL(string: "https://example.org/a.mp4")!

    @Test func liveClientDoesWhatTheCacheDoes() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let client = MediaCacheClient.live(stage.cache), url = stage.url("/a.mp4")
                let proxy = try await onThread { try stage.cache.startProxy() }
                #expect(try client.proxiedURL(url).absoluteString == proxy.url(for: url.absoluteString))
                let local = try await client.localURL(url)
                #expect(try local == client.proxiedURL(url))
                #expect(!client.isCached(url))
                #expect(try await client.coverage(url) == nil)
                #expect(try await client.remove(url) == 0)
                #expect(try await client.resources() == [])
                await #expect(throws: CacheError.notCached(url)) { try await client.touch(url) }
                let id = try await client.add(url, DownloadOptions()).id
                #expect(
                    client.active().map(\.id) == [id] && client.status(url)?.id == id && client.totals().waiting == 1)
                #expect(try await client.setPriority(.high, id).priority == .high)
                #expect(try await client.move(id, 0).id == id)
                #expect(try await client.pause(id).state == .paused)
                #expect(try await client.resume(id).state == .waiting)
                #expect(try await client.cancel(id).state == .cancelled)
                guard case .failed(.downloadCancelled)? = await client.events(id).last() else {
                    throw DeadlinePassed(what: "the end")
                }
                #expect(await client.history(nil, nil).map(\.id) == [id])
                #expect(try await client.clearHistory() == 1)
                await #expect(throws: CacheError.notCached(url)) { try await client.pin(url) }
                await #expect(throws: CacheError.notCached(url)) { try await client.unpin(url) }
                try await client.setLimits(50_000_000, nil)
                #expect(stage.cache.statistics.maxSize == 50_000_000)
                #expect(try await client.enforceLimits() == 0)
                await client.stopProxy(.zero)
                #expect(stage.cache.proxy == nil)
                #expect(try await client.startProxy() == stage.cache.proxy?.baseURL)
                #expect(try await client.validate(false) { _ in }.isSound)
            })
    }

    @Test func failingClientNamesWhatATestHasNotReplaced() async throws {
        var client = MediaCacheClient.failing
        await #expect(throws: CacheError.unimplemented("download")) {
            try await client.download(url, DownloadOptions())
        }
        #expect(throws: CacheError.unimplemented("proxiedURL")) { try client.proxiedURL(url) }
        #expect(await client.downloadEvents(url, DownloadOptions()).last() == .failed(.unimplemented("downloadEvents")))
        client.download = { url, _ in url.appending(component: "local") }
        #expect(try await client.download(url, DownloadOptions()) == URL(string: "https://example.org/a.mp4/local"))
    }

    @Test func noopClientIsAnEmptyCache() async throws {
        let client = MediaCacheClient.noop
        #expect(!client.isCached(url))
        #expect(try await client.download(url, DownloadOptions()) == url)
        guard case .completed(let download, localURL: url)? = await client.downloadEvents(url, DownloadOptions()).last()
        else {
            throw DeadlinePassed(what: "the end")
        }
        #expect(download.state == .completed && download.url == url)
        #expect(try await client.validate(true) { _ in } == CacheValidation())
    }
}
