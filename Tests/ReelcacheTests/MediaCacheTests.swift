import Foundation
import Logging
import Testing
import TestSupport

@testable import DiskCache
@testable import Reelcache

/// A cache in a program of one's own: opened, served and closed.
@Suite(.timeLimit(.minutes(10))) struct MediaCacheTests {
    // MARK: Presentations

    /// Its playlist alone is no film.
    @Test func aPresentationIsCachedWithItsSegments() async throws {
        try await cacheStory { stage in
            try stage.cache.startProxy()
            for (name, isWhole) in [("a", true), ("b", false)] {
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\(name).ts\n#EXT-X-ENDLIST\n"
                stage.origin.serve("/\(name).m3u8", bytes: Array(text.utf8), contentType: "application/x-mpegurl")
                try stage.play("/\(name).m3u8")
                if isWhole {
                    stage.serve("/\(name).ts")
                    try stage.play("/\(name).ts")
                }
                // That it is a part of the film is noted a moment later.
                let url = stage.url("/\(name).m3u8")
                if isWhole { try eventually("all of \(url)") { stage.cache.isCached(url) } }
                #expect(stage.cache.isCached(url) == isWhole)
            }
        }
    }

    // MARK: The proxy

    @Test func proxyIsStartedStoppedAndStartedAgain() async throws {
        let place = try HeldPort()
        defer { withExtendedLifetime(place) {} }
        try await cacheStory({ $0.listen = "127.0.0.1:\(place.port)" }) { stage in
            let url = stage.serve("/a.mp4")
            #expect(stage.cache.proxy == nil)
            let first = try stage.cache.startProxy()
            #expect(try stage.cache.startProxy() === first)
            #expect(try stage.play("/a.mp4") == stage.film.bytes(0..<stage.film.size))
            stage.cache.stopProxy(grace: .zero)
            #expect(stage.cache.proxy == nil)
            #expect(throws: SystemError.self) { try RawClient.get(port: first.port, path: "/healthz") }
            // What it has is still there, and so is what fetches.
            #expect(stage.cache.isCached(url))
            let second = try stage.cache.startProxy()
            #expect(second !== first && stage.cache.proxy === second)
            #expect(try stage.play("/a.mp4") == stage.film.bytes(0..<stage.film.size))
            #expect(stage.origin.requestCount("/a.mp4") == 1)
            // One that is over stops no other.
            try first.stop()
            #expect(try RawClient.get(port: second.port, path: "/healthz").status == 200)
            try second.stop(grace: .zero)
            #expect(stage.cache.isCached(url))
        }
    }

    @Test func otherProcessesFindTheProxyWhileItRuns() async throws {
        try await cacheStory { stage in
            let directory = stage.directory.file("cache")
            #expect(RunningProxy(cacheDirectory: directory) == nil)
            #expect(CacheOwner.current(of: directory) == CacheOwner(pid: getpid(), url: ""))
            let proxy = try stage.cache.startProxy()
            #expect(RunningProxy(cacheDirectory: directory)?.baseURL == proxy.baseURL)
            stage.cache.stopProxy(grace: .zero)
            #expect(RunningProxy(cacheDirectory: directory) == nil)
            #expect(CacheOwner.current(of: directory) == CacheOwner(pid: getpid(), url: ""))
            // Who wants the cache hears who has it.
            let error = try #require(throws: ProxyError.self) { try MediaCache(stage.cache.configuration) }
            #expect(error.description.hasPrefix("the cache \(directory) is in use by process \(getpid());"), "\(error)")
        }
    }

    @Test func unwritableAccessLogLeavesTheCacheClosed() async throws {
        try await onThread {
            let directory = try TemporaryDirectory()
            var configuration = ProxyConfiguration()
            (configuration.cacheDirectory, configuration.accessLog) = (
                directory.file("cache"), directory.file("none/access.log")
            )
            let error = try #require(throws: ProxyError.self) { try MediaCache(configuration) }
            #expect(error.description.contains("cannot write the access log"), "\(error)")
            configuration.accessLog = nil
            try MediaCache(configuration).close()
        }
    }

    @Test func portInUseLeavesTheCacheOpen() async throws {
        let taken = try await onThread { try ScriptedOrigin() }
        try await cacheStory({ $0.listen = "127.0.0.1:\(taken.port)" }) { stage in
            let error = try #require(throws: ProxyError.self) { try stage.cache.startProxy() }
            #expect(error.description.contains("\(taken.port)"))
            #expect(stage.cache.proxy == nil)
            #expect(try stage.cache.resources() == [])
            taken.stop()
            #expect(try stage.cache.startProxy().port == taken.port)
        }
    }

    @Test func aProxyOfItsOwnClosesItsCache() async throws {
        try await blocking {
            let directory = try TemporaryDirectory()
            var configuration = ProxyConfiguration()
            (configuration.listen, configuration.cacheDirectory) = ("127.0.0.1:0", directory.file("cache"))
            let proxy = try Proxy(configuration)
            #expect(proxy.cache.proxy === proxy)
            try proxy.stop(grace: .zero)
            #expect(CacheOwner.current(of: configuration.cacheDirectory) == nil)
            #expect(throws: CacheError.closed) { try proxy.cache.startProxy() }
        }
    }

    @Test func whatIsClosedSaysSo() async throws {
        try await cacheStory(following: { stage in
            let (cache, url) = (stage.cache, stage.url("/a.mp4"))
            try await onThread {
                try cache.startProxy()
                try cache.close(grace: .zero)
                try cache.close()
            }
            #expect(cache.proxy == nil)
            #expect(!cache.isCached(url))
            #expect(throws: CacheError.closed) { try cache.startProxy() }
            #expect(throws: CacheError.closed) { try cache.proxiedURL(for: url) }
            #expect(throws: CacheError.closed) { try cache.coverage(of: url) }
            #expect(throws: CacheError.closed) { try cache.resources() }
            #expect(throws: CacheError.closed) { try cache.remove(url) }
            #expect(throws: CacheError.closed) { try cache.removeAll() }
            #expect(throws: CacheError.closed) { try cache.touch(url) }
            #expect(throws: CacheError.closed) { try cache.pin(url) }
            #expect(throws: CacheError.closed) { try cache.enforceLimits() }
            #expect(throws: CacheError.closed) { try cache.reconfigure { $0.maxSize = 50_000_000 } }
            #expect(throws: CacheError.closed) { try cache.reconfigure { _ in } }
            await #expect(throws: CacheError.closed) { try await cache.validate() }
            await #expect(throws: CacheError.closed) { try await cache.fileURL(of: url) }
            await #expect(throws: CacheError.closed) { try await cache.download(url) }
            await #expect(throws: CacheError.closed) { try await cache.downloads.add(url) }
            await #expect(throws: CacheError.closed) { try await cache.downloads.pauseAll() }
        })
    }

    // MARK: URLs

    @Test(arguments: [
        ("https://example.org/a b|c/ü.mp4?x=[1]#t=5", "/https/example.org/a%20b%7Cc/%C3%BC.mp4?x=%5B1%5D"),
        ("http://EXAMPLE.org:80/%7e", "/http/example.org/%7e"),
        ("http://[fd00::1]:8080/a.mp4", "/http/%5Bfd00::1%5D:8080/a.mp4"),
    ])
    func proxiedURLIsWhatAPlayerOpens(url: String, target: String) async throws {
        try await cacheStory { stage in
            let url = try #require(URL(string: url))
            #expect(throws: CacheError.noProxy) { try stage.cache.proxiedURL(for: url) }
            let proxy = try stage.cache.startProxy()
            #expect(try stage.cache.proxiedURL(for: url).absoluteString == proxy.baseURL + target)
        }
    }

    @Test func proxiedURLIsRefusedWhereNothingIsServed() async throws {
        try await cacheStory({ ($0.mounts, $0.servesAnyOrigin) = (["/tv/": "https://tv.example/vod/"], false) }) {
            stage in
            let proxy = try stage.cache.startProxy()
            let elsewhere = URL(string: "https://example.org/a.mp4")!
            #expect(
                try stage.cache.proxiedURL(for: URL(string: "https://tv.example/vod/a.mp4")!).absoluteString == proxy
                    .baseURL + "/tv/a.mp4")
            #expect(throws: CacheError.notServed(elsewhere)) { try stage.cache.proxiedURL(for: elsewhere) }
            #expect(throws: CacheError.unsupportedURL("file:///etc/passwd: file is not supported: use http or https")) {
                try stage.cache.proxiedURL(for: URL(fileURLWithPath: "/etc/passwd"))
            }
            let secret = try #require(throws: CacheError.self) {
                try stage.cache.proxiedURL(for: URL(string: "https://anna:pa55@tv.example/vod/a.mp4")!)
            }
            #expect("\(secret)".contains("rules: ") && !"\(secret)".contains("pa55"), "\(secret)")
            try stage.cache.reconfigure { $0.servesAnyOrigin = true }
            #expect(
                try stage.cache.proxiedURL(for: elsewhere).absoluteString == proxy.baseURL + "/https/example.org/a.mp4")
        }
    }

    // MARK: What is cached

    @Test func coverageTellsWhatIsThereAtOnce() async throws {
        try await cacheStory { stage in
            let (cache, url, size) = (stage.cache, stage.serve("/a.mp4"), stage.film.size)
            try cache.reconfigure { $0.fill = .read }
            try cache.startProxy()
            #expect(!cache.isCached(url))
            #expect(try cache.coverage(of: url) == nil)
            try stage.play("/a.mp4", range: 65_536..<131_072)
            let part = try #require(try cache.coverage(of: url))
            #expect(part.length == size && part.contains(65_536..<131_072) && !part.isComplete && !part.isPinned)
            #expect(!cache.isCached(url))
            try stage.play("/a.mp4")
            #expect(try cache.coverage(of: url) == CacheCoverage(length: size, ranges: [0..<size], isPinned: false))
            #expect(cache.isCached(url))
            // The same from the index, where nobody has it open.
            try stage.reopen()
            #expect(stage.cache.isCached(url))
            #expect(
                try stage.cache.coverage(of: url) == CacheCoverage(length: size, ranges: [0..<size], isPinned: false))
            #expect(!stage.cache.isCached(stage.url("/b.mp4")))
        }
    }

    @Test func coverageCountsWhatIsMissing() {
        let coverage = CacheCoverage(length: 100, ranges: [10..<20, 50..<100], isPinned: true)
        #expect(coverage.cachedBytes == 60 && coverage.fractionCached == 0.6 && !coverage.isComplete)
        #expect(coverage.missing == [0..<10, 20..<50])
        #expect(
            coverage.contains(12..<20) && coverage.contains(90..<1000) && coverage.contains(5..<5)
                && !coverage.contains(9..<11) && !coverage.contains(15..<55))
        let nothing = CacheCoverage(length: 0, ranges: [], isPinned: false)
        #expect(nothing.isComplete && nothing.fractionCached == 1 && nothing.missing == [])
    }

    @Test func whatIsCachedIsListedPinnedAndRemoved() async throws {
        try await cacheStory { stage in
            let cache = stage.cache
            try cache.startProxy()
            let urls = ["/a.mp4", "/b.mp4", "/c.mp4"].map { stage.serve($0) }
            for path in ["/a.mp4", "/b.mp4", "/c.mp4"] { try stage.play(path) }
            #expect(try cache.resources(by: .name).map(\.url) == urls)
            let found = try cache.resources(by: .name, containing: "B.MP4")
            #expect(
                found.map(\.url) == [urls[1]] && found[0].isComplete && found[0].length == stage.film.size
                    && found[0].contentType == "video/mp4")
            #expect(try cache.resources(by: .name, limit: 1, offset: 2).map(\.url) == [urls[2]])

            try cache.pin(urls[0])
            #expect(try cache.coverage(of: urls[0])?.isPinned == true)
            #expect(throws: CacheError.notCached(stage.url("/d.mp4"))) { try cache.pin(stage.url("/d.mp4")) }
            let size = cache.statistics.size
            let freed = try cache.remove(urls[1])
            #expect(freed >= stage.film.size && !cache.isCached(urls[1]))
            #expect(try cache.remove(urls[1]) == 0)
            // Its file is there until the response has let go of it, too.
            try eventually("room", instead: "\(cache.statistics.size)") { cache.statistics.size < size }
            for past in [1_000_000, -1e13, -Double.infinity] {
                #expect(try cache.removeAll(notReadSince: Date(timeIntervalSince1970: past)) == 0)
            }
            #expect(try cache.removeAll() >= stage.film.size)
            #expect(try cache.resources().map(\.url) == [urls[0]])
            try cache.unpin(urls[0])
            try cache.removeAll()
            #expect(try cache.resources() == [])
        }
    }

    // MARK: The limits

    @Test func whatWasTouchedIsEvictedLast() async throws {
        try await cacheStory { stage in
            let cache = stage.cache
            try cache.startProxy()
            // Each in an extent of its own.
            let film = Media(seed: 72, size: 4_000_000),
                paths = ["/a.mp4", "/b.mp4", "/c.mp4", "/d.mp4", "/e.mp4", "/f.mp4"]
            for path in paths {
                stage.serve(path, film)
                try stage.play(path)
            }
            try cache.touch(stage.url("/a.mp4"))
            #expect(throws: CacheError.notCached(stage.url("/z.mp4"))) { try cache.touch(stage.url("/z.mp4")) }
            try cache.reconfigure { $0.maxSize = 16_000_000 }
            #expect(cache.statistics.size <= 16_000_000)
            #expect(cache.isCached(stage.url("/a.mp4")) && !cache.isCached(stage.url("/b.mp4")))
            #expect(throws: ProxyError.self) { try cache.reconfigure { $0.maxSize = 1 } }
        }
    }

    @Test func limitsAreEnforcedWhenAsked() async throws {
        try await cacheStory { stage in
            try stage.cache.startProxy()
            // They are enforced each second otherwise.
            stage.cache.engine.store.queue.stopTimer()
            let url = stage.serve("/a.mp4")
            try stage.play("/a.mp4")
            #expect(try stage.cache.enforceLimits() == 0)
            // As if somebody else had filled the disk meanwhile.
            stage.cache.engine.store.ledger.setLimits(maxSize: nil, minFree: 1 << 60)
            // The player has all of it a moment before its response lets go of it.
            var freed: Int64 = 0
            try eventually("room", instead: "\(freed)") {
                freed += try stage.cache.enforceLimits()
                return freed >= stage.film.size
            }
            #expect(!stage.cache.isCached(url))
        }
    }

    // MARK: Files

    @Test func fileOfACompleteResourceHasExactlyItsBytes() async throws {
        try await cacheStory(following: { stage in
            let cache = stage.cache, url = stage.serve("/a.mp4")
            stage.origin.script("/a.mp4") { $0.closeDelimited = true }
            let part = stage.serve("/b.mp4")
            try await onThread {
                try cache.reconfigure { $0.fill = .read }
                try cache.startProxy()
                try stage.play("/a.mp4")
                try stage.play("/b.mp4", range: 0..<10)
            }
            await #expect(throws: CacheError.notCached(stage.url("/c.mp4"))) {
                try await cache.fileURL(of: stage.url("/c.mp4"))
            }
            let error = await #expect(throws: CacheError.self) { try await cache.fileURL(of: part) }
            guard case .incomplete(part, missing: 1...)? = error else {
                throw DeadlinePassed(what: "an incomplete resource", instead: "\(error as Any)")
            }
            #expect(try await cache.localURL(of: url) == cache.proxiedURL(for: url))
            let file = try await cache.fileURL(of: url)
            try await onThread { cache.stopProxy(grace: .zero) }
            #expect(try await cache.localURL(of: url) == file)
            #expect(try [UInt8](Data(contentsOf: file)) == stage.film.bytes(0..<stage.film.size))
            // Not as it was left: nobody is told that it is a file that can be played.
            truncate(file.path, 1000)
            await #expect(throws: CacheError.self) { try await cache.fileURL(of: url) }
        })
    }

    @Test func validationFindsDamageAndDropsIt() async throws {
        try await cacheStory(following: { stage in
            let url = stage.serve("/a.mp4")
            try await onThread {
                try stage.cache.startProxy()
                try stage.play("/a.mp4")
                try stage.reopen()
            }
            let cache = stage.cache
            let fractions = Monitor<[Double]>([])
            let sound = try await cache.validate { fraction in fractions.update { $0.append(fraction) } }
            #expect(sound.isSound && sound.resources == 1 && sound.bytes == stage.film.size && !sound.isRepaired)
            #expect(!fractions.read { $0 }.isEmpty && fractions.read { $0.allSatisfy { (0...1).contains($0) } })

            let file = try await cache.fileURL(of: url)
            let handle = try FileHandle(forWritingTo: file)
            try handle.seek(toOffset: 70_000)
            try handle.write(contentsOf: [1, 2, 3, 4])
            try handle.close()
            let found = try await cache.validate(repairing: true)
            #expect(!found.isSound && found.isRepaired)
            #expect(found.damaged == [.init(urlText: url.absoluteString, ranges: [65_536..<131_072])])
            #expect(try await cache.coverage(of: url)?.missing == [65_536..<131_072])
        })
    }

    @Test func oneValidationRunsAtATimeAndEndsWithItsTask() async throws {
        try await cacheStory(following: { stage in
            stage.serve("/a.mp4")
            try await onThread {
                try stage.cache.startProxy()
                try stage.play("/a.mp4")
            }
            let cache = stage.cache, hasBegun = Monitor(false), mayGoOn = Monitor(false)
            let first = Task {
                try await cache.validate { _ in
                    hasBegun.update { $0 = true }
                    try? mayGoOn.wait(for: "leave to go on") { $0 ? () : nil }
                }
            }
            try await onThread { try hasBegun.wait(for: "the first validation") { $0 ? () : nil } }
            await #expect(throws: CacheError.validationIsRunning) { try await cache.validate() }
            first.cancel()
            mayGoOn.update { $0 = true }
            await #expect(throws: CancellationError.self) { try await first.value }
            #expect(try await cache.validate().isSound)
        })
    }
}
