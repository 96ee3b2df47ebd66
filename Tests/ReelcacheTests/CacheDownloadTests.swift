import Foundation
import Observation
import Testing
import TestSupport

@testable import Downloads
@testable import Reelcache

/// Downloads as a program sees them. Nothing is fetched for these: they wait for ever.
@Suite(.timeLimit(.minutes(10))) struct CacheDownloadTests {
    // MARK: The queue

    @Test func downloadsAreOrderedChangedAndForgotten() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let downloads = stage.cache.downloads
                let (a, b) = (stage.url("/a.mp4"), stage.url("/b.mp4"))
                let first = try await downloads.add(
                    a, options: DownloadOptions { ($0.category, $0.connections) = ("series", 2) })
                #expect(
                    first.state == .waiting && first.url == a && first.category == "series" && first.isPinned
                        && first.fractionCompleted == nil)
                let second = try await downloads.add([b], options: DownloadOptions { $0.priority = .high })[0]
                #expect(downloads.active.map(\.id) == [second.id, first.id] && downloads.totals.waiting == 2)
                // The same again is the same download.
                #expect(try await downloads.add(a).id == first.id)

                #expect(try await downloads.setPriority(.normal, of: second.id).priority == .normal)
                #expect(downloads.active.map(\.id) == [first.id, second.id])
                try await downloads.move(second.id, to: 0)
                #expect(downloads.active.map(\.id) == [second.id, first.id])
                #expect(try await downloads.pause(first.id).state == .paused)
                #expect(downloads[first.id]?.state == .paused && downloads.status(of: a)?.state == .paused)
                #expect(try await downloads.resume(first.id).state == .waiting)
                #expect(try await downloads.pauseAll().count == 2 && downloads.totals.paused == 2)
                #expect(try await downloads.resumeAll().count == 2)

                #expect(try await downloads.cancel(first.id).state == .cancelled)
                #expect(downloads.active.map(\.id) == [second.id] && downloads.status(of: a)?.state == .cancelled)
                #expect(await downloads.history().map(\.id) == [first.id])
                #expect(await downloads.history(category: "series") == [])
                #expect(await downloads.history(limit: 0) == [])
                #expect(try await downloads.cancelAll().map(\.id) == [second.id])
                #expect(try await downloads.clearHistory() == 2)
                #expect(downloads[first.id] == nil && downloads.status(of: a) == nil)
            })
    }

    @Test func whatCannotBeIsRefusedByName() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let downloads = stage.cache.downloads
                await #expect(throws: CacheError.unknownDownload(77)) { try await downloads.pause(77) }
                let error = await #expect(throws: CacheError.self) {
                    try await downloads.add(URL(fileURLWithPath: "/a.mp4"))
                }
                guard case .unsupportedURL? = error else {
                    throw DeadlinePassed(what: "an unsupported URL", instead: "\(error as Any)")
                }
                let nonsense = await #expect(throws: CacheError.self) {
                    try await downloads.add(stage.url("/a.mp4"), options: DownloadOptions { $0.connections = 17 })
                }
                guard case .invalid? = nonsense else {
                    throw DeadlinePassed(what: "options that make no sense", instead: "\(nonsense as Any)")
                }
                #expect(downloads.active == [])
                let id = try await downloads.add(stage.url("/a.mp4")).id
                try await downloads.cancel(id)
                let late = await #expect(throws: CacheError.self) { try await downloads.pause(id) }
                guard case .conflict? = late else {
                    throw DeadlinePassed(what: "a conflict", instead: "\(late as Any)")
                }
                try await onThread {
                    #expect(throws: ProxyError.self) { try stage.cache.reconfigure { $0.maxDownloads = 0 } }
                    #expect(throws: ProxyError.self) { try stage.cache.reconfigure { $0.downloadRate = 0 } }
                    try stage.cache.reconfigure { $0.maxDownloads = 5 }
                    try stage.cache.reconfigure { $0.downloadRate = 1000 }
                    #expect(downloads.maxActive == 5 && downloads.bytesPerSecond == 1000)
                    try stage.cache.reconfigure { $0.downloadRate = nil }
                    #expect(downloads.maxActive == 5 && downloads.bytesPerSecond == nil)
                }
            })
    }

    @Test func theQueueOutlivesTheCache() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let url = stage.url("/a.mp4")
                let id = try await stage.cache.downloads.add(url).id
                try await stage.cache.downloads.pause(id)
                try await onThread { try stage.reopen() }
                #expect(stage.cache.downloads.status(of: url)?.state == .paused)
            })
    }

    // MARK: Who waits

    @Test func aDownloadThatNobodyWaitsForAnyMoreIsCancelled() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, url) = (stage.cache, stage.url("/a.mp4"))
                let states = cache.states
                let waiting = Task { try await cache.download(url) }
                let id = try await states.first(of: url, .waiting).id
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
                #expect(cache.downloads[id]?.state == .cancelled)
            })
    }

    @Test func aConsumerThatLeavesItsLoopCancels() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, url) = (stage.cache, stage.url("/a.mp4"))
                for await event in cache.downloadEvents(for: url) {
                    guard case .progress(let download) = event, download.state == .waiting else { break }
                    break
                }
                _ = try await cache.states.first(of: url, .cancelled)
            })
    }

    /// A consumer that leaves must not be taken for one whose cache has been closed: its download would stay.
    @Test func manyConsumersThatLeaveAtOnceCancelEachTheirs() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, urls) = (stage.cache, (0..<200).map { stage.url("/\($0).mp4") })
                let waiting = urls.map { url in Task { try await cache.download(url) } }
                for url in urls { _ = try await cache.states.first(of: url, .waiting) }
                for task in waiting { task.cancel() }
                for task in waiting { await #expect(throws: CancellationError.self) { try await task.value } }
                #expect(cache.downloads.active == [])
            })
    }

    @Test func oneOfTwoWhoWaitMayGo() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, url) = (stage.cache, stage.url("/a.mp4"))
                var first: AsyncStream<DownloadEvent>.Iterator? = cache.downloadEvents(for: url).makeAsyncIterator()
                guard case .progress(let download)? = await first?.next() else {
                    throw DeadlinePassed(what: "progress")
                }
                let second = Task { try await cache.download(url) }
                try await cache.downloader.wants.wait(for: download.id, count: 2)
                first = nil
                try await cache.downloader.wants.wait(for: download.id, count: 1)
                // By then what became of it is decided.
                _ = await cache.downloads.history()
                #expect(cache.downloads[download.id]?.state == .waiting)
                second.cancel()
                await #expect(throws: CancellationError.self) { try await second.value }
                #expect(cache.downloads[download.id]?.state == .cancelled)
            })
    }

    @Test(arguments: [true, false]) func whatSomebodyElseHasOrderedStays(isOrderedBefore: Bool) async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, url) = (stage.cache, stage.url("/a.mp4"))
                if isOrderedBefore { try await cache.downloads.add(url) }
                let waiting = Task { try await cache.download(url) }
                let id = try await cache.states.first(of: url, .waiting).id
                if !isOrderedBefore { try await cache.downloads.add(url) }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
                #expect(cache.downloads[id]?.state == .waiting)
            })
    }

    @Test(arguments: [true, false]) func whatIsOrderedOverHTTPStays(isOrderedBefore: Bool) async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, url) = (stage.cache, stage.url("/a.mp4"))
                let proxy = try await onThread { try cache.startProxy() }
                let order = { @Sendable in
                    let token = try String(contentsOfFile: stage.directory.file("cache/control-token"), encoding: .utf8)
                        .trimmingCharacters(in: .newlines)
                    let (client, body) = (try RawClient(port: proxy.port), "{\"downloads\": [{\"url\": \"\(url)\"}]}")
                    let fields = [
                        ("Authorization", "Bearer \(token)"), ("Content-Length", "\(body.utf8.count)"),
                        ("Connection", "close"),
                    ]
                    try client.send(client.request("/api/v1/downloads", headers: fields, method: "POST") + body)
                    return try client.readResponse(method: "POST").status
                }
                if isOrderedBefore { #expect(try await onThread(order) == 201) }
                let waiting = Task { try await cache.download(url) }
                let id = try await cache.states.first(of: url, .waiting).id
                if !isOrderedBefore { #expect(try await onThread(order) == 200) }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
                #expect(cache.downloads[id]?.state == .waiting)
            })
    }

    // MARK: Events

    @Test func eventsTellEachStateAndEnd() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let downloads = stage.cache.downloads
                let id = try await downloads.add(stage.url("/a.mp4")).id
                var events = downloads.events(of: id).makeAsyncIterator()
                #expect(await events.next() == .progress(downloads[id]!))
                let paused = try await downloads.pause(id)
                #expect(await events.next() == .progress(paused))
                let cancelled = try await downloads.cancel(id)
                var last = await events.next()
                if case .progress? = last { last = await events.next() }
                #expect(last == .failed(.downloadCancelled(cancelled)))
                #expect(await events.next() == nil)
                // Who comes late hears how it ended.
                #expect(await downloads.events(of: id).last() == .failed(.downloadCancelled(cancelled)))
                #expect(await downloads.events(of: 4711).last() == .failed(.unknownDownload(4711)))
            })
    }

    @Test func whoeverWatchesHearsOfTheEndOfTheCache() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let (cache, url) = (stage.cache, stage.url("/a.mp4"))
                let id = try await cache.downloads.add(url).id
                var events = cache.downloads.events(of: id).makeAsyncIterator()
                _ = await events.next()
                async let waiting = cache.download(url)
                try await cache.downloader.bell.wait(listeners: 2)
                try await onThread { try cache.close(grace: .zero) }
                #expect(await events.next() == .failed(.closed))
                do {
                    _ = try await waiting
                    Issue.record("nothing was downloaded")
                } catch { #expect(error as? CacheError == .closed) }
                #expect(await cache.downloads.events(of: id).last() == .failed(.closed))
            })
    }

    @Test func aURLThatCannotBeDownloadedIsAnEvent() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let event = await stage.cache.downloadEvents(for: URL(fileURLWithPath: "/a.mp4")).last()
                guard case .failed(.unsupportedURL)? = event else {
                    throw DeadlinePassed(what: "an unsupported URL", instead: "\(event as Any)")
                }
            })
    }

    // MARK: For user interfaces

    @Test @MainActor func progressCancelsPausesAndResumesTheDownload() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let cache = stage.cache, url = stage.url("/a.mp4")
                let id = try await cache.downloads.add(url).id
                let progress = await cache.downloads.progress(of: id)
                #expect(progress.isIndeterminate && progress.kind == .file && progress.isPausable)
                progress.pause()
                _ = try await cache.states.first(of: url, .paused)
                progress.resume()
                _ = try await cache.states.first(of: url, .waiting)
                progress.cancel()
                _ = try await cache.states.first(of: url, .cancelled)
            })
    }

    @Test @MainActor func progressOfWhatOthersCancelIsCancelled() async throws {
        try await cacheStory(
            downloads: false,
            following: { stage in
                let cache = stage.cache
                let id = try await cache.downloads.add(stage.url("/a.mp4")).id
                let progress = await cache.downloads.progress(of: id)
                // It hears of it in its own time.
                let isCancelled = AsyncStream.makeStream(of: Void.self)
                progress.cancellationHandler = { isCancelled.continuation.finish() }
                try await cache.downloads.cancel(id)
                for await _ in isCancelled.stream {}
                #expect(progress.isCancelled)
            })
    }

    @Test @MainActor func trackerFollowsTheQueueAndEndsWithItsLife() async throws {
        try await cacheStory(downloads: false, following: { try await Self.follow($0) })
    }

    @MainActor private static func follow(_ stage: CacheStage) async throws {
        let cache = stage.cache
        let first = try await cache.downloads.add(stage.url("/a.mp4"))
        var tracker: DownloadTracker? = DownloadTracker(cache)
        #expect(tracker?.downloads == [first] && tracker?.totals.waiting == 1)
        let second = try await cache.downloads.add(stage.url("/b.mp4"))
        try await observe { tracker?.downloads.map(\.id) == [first.id, second.id] && tracker?.totals.waiting == 2 }
        try await cache.downloads.cancel(first.id)
        try await observe { tracker?.download(first.id)?.state == .cancelled }
        #expect(tracker?.active.map(\.id) == [second.id] && tracker?.downloads.map(\.id) == [second.id, first.id])
        try await cache.downloader.bell.wait(listeners: 1)
        tracker = nil
        try await cache.downloader.bell.wait(listeners: 0)
    }

    /// Waits until what is observed is so.
    @MainActor private static func observe(_ condition: @MainActor @escaping () -> Bool) async throws {
        while true {
            let changed = AsyncStream.makeStream(of: Void.self)
            if withObservationTracking(condition, onChange: { changed.continuation.finish() }) { return }
            for await _ in changed.stream {}
        }
    }
}

// MARK: - What tests wait for

extension AsyncStream {
    /// Reads it to its end.
    func last() async -> Element? {
        var last: Element?
        for await element in self { last = element }
        return last
    }
}

extension MediaCache {
    /// What becomes of downloads.
    struct States {
        let cache: MediaCache

        /// Waits until the download of a URL is in this state.
        func first(of url: URL, _ state: Download.State) async throws -> Download {
            for await _ in cache.downloader.bell.rings() {
                if let download = cache.downloads.status(of: url), download.state == state { return download }
            }
            throw DeadlinePassed(what: "\(state) of \(url)")
        }
    }

    var states: States { States(cache: self) }
}

extension DownloadWants {
    func wait(for id: Download.ID, count: Int) async throws {
        try await onThread {
            try eventually("\(count) who wait for \(id)", instead: "\(self.count(of: id))") {
                self.count(of: id) == count
            }
        }
    }
}

extension SnapshotBell {
    func wait(listeners: Int) async throws {
        try await onThread {
            try eventually("\(listeners) who listen", instead: "\(self.listenerCount)") {
                self.listenerCount == listeners
            }
        }
    }
}
