import CachePolicy
import Downloads
import Foundation
import Testing
import TestSupport

@testable import Reelcache

/// Downloads that fetch, as a program sees them.
@Suite(.timeLimit(.minutes(10))) struct CacheFetchTests {
    @Test func downloadGivesWhereItCanBePlayed() async throws {
        try await cacheStory(following: { stage in
            let cache = stage.cache, url = stage.serve("/a.mp4"), whole = stage.film.bytes(0..<stage.film.size)
            // Without a proxy it is the file itself.
            let file = try await cache.download(url)
            #expect(file.isFileURL && cache.isCached(url))
            #expect(try [UInt8](Data(contentsOf: file)) == whole)
            await #expect(
                try cache.coverage(of: url)
                    == CacheCoverage(length: stage.film.size, ranges: [0..<stage.film.size], isPinned: true))
            // With one it is where players look; and nothing is fetched twice.
            let played = try await onThread {
                try cache.startProxy()
                return try stage.play("/a.mp4")
            }
            #expect(played == whole)
            let local = try await cache.download(url)
            #expect(try local == cache.proxiedURL(for: url))
            #expect(stage.origin.requestCount("/a.mp4") == 1)
            #expect(await cache.downloads.history().map(\.state) == [.completed, .completed])
        })
    }

    @Test func recordingPlaysUnderAURLOfItsOwn() async throws {
        try await cacheStory(following: { stage in
            let live = stage.url("/live.m3u8")
            for number in 0..<4 { stage.serve("/\(number).ts") }
            func serve(ends: Bool) {
                let segments = (0..<4).map { "#EXTINF:1,\n\($0).ts\n" }.joined()
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n\(segments)" + (ends ? "#EXT-X-ENDLIST\n" : "")
                stage.origin.serve(
                    "/live.m3u8", bytes: Array(text.utf8), etag: "\"\(ends)\"",
                    contentType: "application/vnd.apple.mpegurl")
            }
            serve(ends: false)
            let recording = DownloadOptions { $0.recordingTime = .seconds(3600) }
            async let end = stage.cache.downloadEvents(for: live, options: recording).last()
            try await onThread {
                try stage.cache.startProxy()
                try stage.origin.waitForRequests("/3.ts", count: 1)
            }
            serve(ends: true)
            guard case .completed(let download, let local?)? = await end else {
                throw DeadlinePassed(what: "the end", instead: "\(String(describing: await end))")
            }
            #expect(local.absoluteString.contains("live.m3u8?reelcache-recording="), "\(local)")
            #expect(download.message?.contains(local.query ?? "-") == true, "\(download)")
            // Also if the history has dropped it.
            try await stage.cache.downloads.clearHistory()
            var last = download
            last.state = .downloading
            guard case .completed? = await stage.cache.downloads.events(of: download.id, lastKnown: last).last() else {
                throw DeadlinePassed(what: "the end of what is forgotten")
            }
        })
    }

    @Test func eventsLeadToTheEnd() async throws {
        try await cacheStory(following: { stage in
            let url = stage.serve("/a.mp4")
            stage.origin.script("/a.mp4") { $0.stallAfter = 100_000 }
            var (seen, last): ([Download], DownloadEvent?) = ([], nil)
            for await event in stage.cache.downloadEvents(for: url, options: DownloadOptions { $0.isPinned = false }) {
                if case .progress(let download) = event { seen.append(download) }
                if seen.last.map({ $0.bytes > 0 }) == true { stage.origin.release("/a.mp4") }
                last = event
            }
            let file = try await stage.cache.fileURL(of: url)
            #expect(last == .completed(try #require(stage.cache.downloads.status(of: url)), localURL: file))
            let bytes = seen.map(\.bytes)
            #expect(
                bytes == bytes.sorted()
                    && seen.contains {
                        $0.state == .downloading && $0.total == stage.film.size && $0.fractionCompleted! < 1
                    })
            #expect(stage.cache.downloads.status(of: url)?.fractionCompleted == 1)
            #expect(try await stage.cache.coverage(of: url)?.isPinned == false)
        })
    }

    @Test func whoeverLeavesHalfWayEndsTheTransferAndLeavesNothing() async throws {
        try await cacheStory(following: { stage in
            let cache = stage.cache, url = stage.serve("/a.mp4")
            stage.origin.script("/a.mp4") { $0.stallAfter = 200_000 }
            for await event in cache.downloadEvents(for: url) {
                if case .progress(let download) = event, download.bytes >= 131_072 { break }
            }
            _ = try await cache.states.first(of: url, .cancelled)
            try await onThread {
                try stage.origin.waitUntil("the end of the transfer") { $0.requests("/a.mp4").first?.aborted == true }
            }
            #expect(try await cache.coverage(of: url) == nil)
        })
    }

    @Test func pauseKeepsTheBytesAndResumeAsksForTheRest() async throws {
        try await cacheStory(following: { stage in
            let downloads = stage.cache.downloads, url = stage.serve("/a.mp4")
            stage.origin.script("/a.mp4") { $0.stallAfter = 200_000 }
            let id = try await downloads.add(url).id
            for await event in downloads.events(of: id) {
                if case .progress(let download) = event, download.bytes >= 131_072 { break }
            }
            try await downloads.pause(id)
            #expect(try await stage.cache.coverage(of: url)?.contains(0..<131_072) == true)
            stage.origin.release("/a.mp4")
            try await downloads.resume(id)
            guard case .completed? = await downloads.events(of: id).last() else {
                throw DeadlinePassed(what: "the end")
            }
            let second = try #require(stage.origin.requests("/a.mp4").dropFirst().first?.range)
            #expect(second.lowerBound >= 131_072)
            #expect(
                try await [UInt8](Data(contentsOf: stage.cache.fileURL(of: url)))
                    == stage.film.bytes(0..<stage.film.size))
        })
    }

    @Test func whatTheOriginDoesNotHaveIsAnError() async throws {
        try await cacheStory(following: { stage in
            let url = stage.url("/nothing.mp4")
            let error = await #expect(throws: CacheError.self) { try await stage.cache.download(url) }
            guard case .downloadFailed(let download)? = error else {
                throw DeadlinePassed(what: "a failure", instead: "\(error as Any)")
            }
            #expect(download.state == .failed && download.url == url)
            #expect(error?.description == download.message && download.message?.contains("404") == true)
        })
    }

    /// A feed would otherwise take it for one whose bytes a person has removed.
    @Test func failedDownloadWhoseBytesAreDroppedHasNone() async throws {
        try await cacheStory {
            var rule = ResourceRule()
            rule.maxObject = 131_072
            $0.rules = [rule]
        } _: { stage in
            let url = stage.serve("/a.mp4")
            stage.origin.script("/a.mp4") { $0.chunkedEncoding = true }
            let order = DownloadOrder(url: try OriginURL(url))
            let manager = stage.cache.downloader.manager
            let id = try #require(try manager.perform { try $0.add([order]) }.first?.id)
            try eventually("the end") { manager.snapshots[id]?.state.hasEnded == true }
            let download = try #require(manager.snapshots[id])
            #expect(download.state == .failed && download.bytes == 0, "\(download)")
        }
    }

    @Test func beginningOfAFilmCanBePlayedThroughTheProxy() async throws {
        try await cacheStory(following: { stage in
            let cache = stage.cache, url = stage.serve("/a.mp4"), first = DownloadOptions { $0.first = 65_536 }
            let error = await #expect(throws: CacheError.self) { try await cache.download(url, options: first) }
            guard case .incomplete(url, missing: let missing)? = error else {
                throw DeadlinePassed(what: "an incomplete file", instead: "\(error as Any)")
            }
            #expect(missing <= stage.film.size - 65_536)
            // The download is completed all the same.
            guard
                case .completed(let download, localURL: nil)? = await cache.downloadEvents(for: url, options: first)
                    .last()
            else {
                throw DeadlinePassed(what: "the end")
            }
            #expect(download.state == .completed && download.bytes == 65_536)
            let progress = await cache.downloads.progress(of: download.id)
            while await MainActor.run(body: { !progress.isFinished && !progress.isCancelled }) { await Task.yield() }
            #expect(await MainActor.run { progress.isFinished && !progress.isCancelled })
            _ = try await onThread { try cache.startProxy() }
            let local = try await cache.download(url, options: first)
            #expect(try local == cache.proxiedURL(for: url))
        })
    }

    @Test func progressComesToItsTotal() async throws {
        try await cacheStory(following: { stage in
            let downloads = stage.cache.downloads, url = stage.serve("/a.mp4")
            stage.origin.holdHeads("/a.mp4")
            let id = try await downloads.add(url).id
            let progress = await downloads.progress(of: id)
            #expect(await MainActor.run { progress.isIndeterminate })
            stage.origin.release("/a.mp4")
            guard case .completed? = await downloads.events(of: id).last() else {
                throw DeadlinePassed(what: "the end")
            }
            // It hears of the same event, in its own time.
            while await MainActor.run(body: { !progress.isFinished }) { await Task.yield() }
            #expect(
                await MainActor.run {
                    progress.totalUnitCount == stage.film.size && progress.fractionCompleted == 1
                        && !progress.isCancelled
                })
        })
    }

    @Test @MainActor func progressThatNobodyHasFollowsNothing() async throws {
        try await cacheStory(following: { try await Self.letGoOfProgress($0) })
    }

    @MainActor private static func letGoOfProgress(_ stage: CacheStage) async throws {
        let downloads = stage.cache.downloads, url = stage.serve("/a.mp4")
        stage.origin.script("/a.mp4") { $0.stallAfter = 200_000 }
        let id = try await downloads.add(url).id
        for await event in downloads.events(of: id) {
            if case .progress(let download) = event, download.total != nil { break }
        }
        // From now on nothing happens to it.
        try await downloads.pause(id)
        var progress: Progress? = downloads.progress(of: id)
        while progress?.isIndeterminate == true { await Task.yield() }
        try await stage.cache.downloader.bell.wait(listeners: 1)
        progress = nil
        try await stage.cache.downloader.bell.wait(listeners: 0)
    }

    @Test @MainActor func progressThatIsHeldWhileTheCacheClosesIsNoError() async throws {
        try await cacheStory(downloads: false, following: { try await Self.closeUnderProgress($0) })
    }

    @MainActor private static func closeUnderProgress(_ stage: CacheStage) async throws {
        let downloads = stage.cache.downloads
        let id = try await downloads.add(stage.serve("/a.mp4")).id
        let progress = downloads.progress(of: id)
        try await stage.cache.downloader.bell.wait(listeners: 1)
        try await onThread { try stage.cache.close(grace: .zero) }
        while !progress.isCancelled { await Task.yield() }
        // It takes the way of what the progress has just tried.
        await #expect(throws: CacheError.closed) { try await downloads.cancel(id) }
        #expect(stage.log.lines(.error).isEmpty)
    }

    @Test(arguments: [nil, 65_536]) func whatIsCompletedAndForgottenAtOnceIsCompleted(first: Int64?) async throws {
        try await cacheStory(following: { stage in
            let downloads = stage.cache.downloads, url = stage.serve("/a.mp4")
            let ordered = try await downloads.add(url, options: DownloadOptions { $0.first = first })
            _ = await downloads.events(of: ordered.id).last()
            try await downloads.clearHistory()
            guard case .completed(let download, _)? = await downloads.events(of: ordered.id, lastKnown: ordered).last()
            else {
                throw DeadlinePassed(what: "the end")
            }
            #expect(download.id == ordered.id && download.state == .completed)
            try await stage.cache.remove(url)
            #expect(
                await downloads.events(of: ordered.id, lastKnown: ordered).last()
                    == .failed(.downloadCancelled(ordered)))
        })
    }

    @Test func aRestartGoesOnByItself() async throws {
        try await cacheStory(following: { stage in
            let url = stage.serve("/a.mp4")
            stage.origin.script("/a.mp4") { $0.stallAfter = 200_000 }
            let id = try await stage.cache.downloads.add(url).id
            for await event in stage.cache.downloads.events(of: id) {
                if case .progress(let download) = event, download.bytes >= 131_072 { break }
            }
            // The second transfer is shorter than what the origin sends before it waits.
            try await onThread { try stage.reopen() }
            guard case .completed? = await stage.cache.downloads.events(of: id).last() else {
                throw DeadlinePassed(what: "the end")
            }
            #expect(stage.origin.bytesSent("/a.mp4") <= stage.film.size + 200_000 - 131_072)
            #expect(stage.cache.isCached(url))
        })
    }
}
