import Foundation
import Reelcache
import TestSupport
import Testing

/// What a program of somebody else's can write: this file sees what is public, and nothing that is internal.
@Suite(.timeLimit(.minutes(10))) struct PublicInterfaceTests {
    @Test func downloadsAreLimitedWhileTheCacheIsOpen() async throws {
        try await cacheStory { stage in
            try stage.cache.reconfigure { $0.maxDownloads = 2 }
            try stage.cache.reconfigure { $0.downloadRate = 1_000_000 }
            #expect(stage.cache.downloads.maxActive == 2 && stage.cache.downloads.bytesPerSecond == 1_000_000)
            try stage.cache.reconfigure { $0.downloadRate = nil }
            #expect(stage.cache.downloads.bytesPerSecond == nil)
        }
    }

    @Test func aProgramSeesThatDownloadsWaitAsTheCacheIsOffline() async throws {
        try await cacheStory { stage in
            try await stage.cache.reconfigure { $0.isOffline = true }
            let waiting = try await stage.cache.downloads.add(stage.url("/a.mp4"))
            #expect(waiting.state == .waiting && stage.cache.downloads.totals.isOffline)
        }
    }

    @Test func downloadsWaitForTheScheduleUnlessTheyAreOrderedAtOnce() async throws {
        try await cacheStory { stage in
            stage.origin.serve("/a.mp4", Media(seed: 1, size: 100_000))
            try await stage.cache.reconfigure { $0.downloadSchedule = ["else=off"] }
            try await stage.cache.reconfigure { $0.downloadCaps = ["1GB/day"] }
            let url = try #require(URL(string: stage.origin.url("/a.mp4")))
            let waiting = try await stage.cache.downloads.add(url)
            #expect(waiting.state == .waiting && waiting.message == "the schedule lets no download run")
            #expect(waiting.heldUntil == nil && !waiting.isAtOnce)
            #expect(stage.cache.downloads.totals.hold == "the schedule lets no download run")
            let options = DownloadOptions { ($0.first, $0.last, $0.isAtOnce) = (50_000, 10_000, true) }
            #expect(try await stage.cache.downloads.add(url, options: options).isAtOnce)
            try await stage.cache.download(url, options: options)
            #expect(stage.cache.downloads.totals.fetchedToday == 100_000)
            #expect(try await stage.cache.coverage(of: url)?.isComplete == true)
        }
        #expect(throws: ProxyError.self) { try MediaCache(Self.configuration { $0.downloadSchedule = ["always"] }) }
        #expect(throws: ProxyError.self) { try MediaCache(Self.configuration { $0.downloadCaps = ["2GB"] }) }
    }

    private static func configuration(_ change: (inout ProxyConfiguration) -> Void) -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        change(&configuration)
        return configuration
    }

    /// From its main actor: nothing of it waits there.
    @MainActor @Test func aProgramWithAWindowOpensPlaysAndCloses() async throws {
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        (configuration.cacheDirectory, configuration.listen) = (directory.file("cache"), "127.0.0.1:0")
        (configuration.linger, configuration.stallTimeout) = (.seconds(1), .seconds(20))
        let cache = try await MediaCache.open(configuration)
        let film = URL(string: "https://example.org/a.mp4")!
        let proxy = try await cache.startProxy()
        #expect(try await cache.startProxy() === proxy)
        #expect(try cache.proxiedURL(for: film).absoluteString == proxy.baseURL + "/https/example.org/a.mp4")
        #expect(try await cache.coverage(of: film) == nil)
        #expect(try await cache.resources() == [])
        #expect(try await cache.remove(film) == 0)
        #expect(try await cache.removeAll() == 0)
        #expect(try await cache.enforceLimits() == 0)
        await #expect(throws: CacheError.notCached(film)) { try await cache.pin(film) }
        await #expect(throws: CacheError.notCached(film)) { try await cache.unpin(film) }
        await #expect(throws: CacheError.notCached(film)) { try await cache.touch(film) }
        try await cache.reconfigure { $0.maxSize = 50_000_000 }
        try await cache.reconfigure { $0.maxDownloads = 2 }
        try await cache.reconfigure { $0.downloadRate = 1_000_000 }
        #expect(cache.statistics.maxSize == 50_000_000 && cache.downloads.maxActive == 2)
        await cache.stopProxy(grace: .zero)
        #expect(cache.proxy == nil)
        try await cache.close()
        await #expect(throws: CacheError.closed) { try await cache.startProxy() }
        let served = try await Proxy.start(configuration)
        try await served.stop(grace: .zero)
        await #expect(throws: CacheError.closed) { try await served.cache.coverage(of: film) }
    }

    /// What a program can do something about has a case of its own.
    @Test func aProgramTellsErrorsApart() async throws {
        @Sendable func name(_ body: () throws -> Void) -> String {
            do { try body() } catch ProxyError.cacheInUse { return "cache in use" } catch ProxyError.portInUse {
                return "port in use"
            } catch ProxyError.invalidSetting { return "setting" } catch ProxyError.unsupportedURL {
                return "URL"
            } catch ProxyError.notServed { return "not served" } catch { return "\(error)" }
            return "none"
        }
        try await cacheStory { stage in
            let proxy = try stage.cache.startProxy()
            #expect(name { _ = try MediaCache(stage.cache.configuration) } == "cache in use")
            var other = stage.cache.configuration
            (other.listen, other.cacheDirectory) = ("127.0.0.1:\(proxy.port)", stage.directory.file("other"))
            #expect(name { _ = try Proxy(other) } == "port in use")
            other.listen = "nonsense"
            #expect(name { _ = try Proxy(other) } == "setting")
            #expect(name { try stage.cache.reconfigure { $0.maxDownloads = 0 } } == "setting")
            #expect(name { try stage.cache.reconfigure { $0.maxSize = 1 } } == "setting")
            #expect(name { try stage.cache.reconfigure { $0.allow = ["not/valid"] } } == "setting")
            #expect(name { try stage.cache.reconfigure { $0.rules = [ResourceRule(hosts: ["a b"])] } } == "setting")
            #expect(name { _ = try proxy.url(for: "ftp://example.org/a") } == "URL")
            try stage.cache.reconfigure { $0.servesAnyOrigin = false }
            #expect(name { _ = try proxy.url(for: "https://example.org/a") } == "not served")
        }
    }

    @Test func whatAProgramShowsCanBeMadeByItsTests() {
        var totals = CacheDownloads.Totals()
        (totals.waiting, totals.bytes, totals.total) = (1, 25, 100)
        #expect(totals.waiting == 1 && totals.fractionCompleted == 0.25)
        let damage = CacheValidation.Damage(urlText: "https://example.org/a.mp4", ranges: [0..<100])
        var validation = CacheValidation()
        #expect(validation.isSound)
        validation.damaged = [damage]
        #expect(!validation.isSound)
        let download = Download(id: 1, url: "https://example.org/a.mp4", state: .completed)
        #expect(DownloadEvent.completed(download, localURL: nil) != .failed(.downloadCancelled(download)))
    }
}
