import CachePolicy
import Dispatch
import Downloads
import Foundation
import TestSupport
import Testing

@testable import Reelcache

/// Which next items become downloads: those that nobody has ordered, cancelled or removed.
extension Scenarios.S26NextItems {
    // MARK: Orders

    private static func orders(_ stage: Stage) -> NextDownloads {
        let (cache, clock) = (stage.proxy.cache, stage.clock)
        return NextDownloads(cache.engine, cache.downloader.manager) { clock.now }
    }

    private static func url(_ stage: Stage, _ path: String) throws -> OriginURL {
        try OriginURL(url: stage.origin.url(path))
    }

    /// A list of tiny files can ask for one after the other.
    @Test func onlySomeAreQueuedAtOnce() async throws {
        try await Self.play { stage in
            let orders = Self.orders(stage)
            for number in 1...NextDownloads.mostWaiting + 5 {
                let path = "/held/\(number).mp4"
                stage.origin.serve(path, Self.media(1))
                stage.origin.holdHeads(path)
                orders.order(try Self.url(stage, path))
            }
            try #expect(Self.downloads(stage).count == NextDownloads.mostWaiting)
        }
    }

    @Test func whatWasRemovedIsNotOrderedAgain() async throws {
        try await Self.play { stage in
            let orders = Self.orders(stage), url = try Self.url(stage, "/media/1.mp4")
            orders.order(url)
            try Self.waitForDownloads(stage, 1)
            try #expect(stage.control("DELETE", "/resources?" + stage.parameter("/media/1.mp4")).status == 200)
            orders.order(url)
            try #expect(Self.downloads(stage).count == 1)
            try #expect(stage.control("DELETE", "/downloads/history").status == 200)
            orders.order(url)
            try #expect(Self.downloads(stage).isEmpty)
        }
    }

    @Test func anotherSpellingIsTheSameItem() async throws {
        try await Self.play { stage in
            for path in ["/a%2Db.mp4", "/a-b.mp4"] {
                stage.origin.serve(path, Self.media(1))
                stage.origin.holdHeads(path)
            }
            let order = "{\"downloads\": [{\"url\": \"\(stage.origin.url("/a%2Db.mp4"))\"}]}"
            try #expect(stage.control("POST", "/downloads", body: order).status == 201)
            Self.orders(stage).order(try Self.url(stage, "/a-b.mp4"))
            try #expect(Self.downloads(stage).count == 1)
            try #expect(stage.control("PATCH", "/downloads?all=true", body: "{\"action\": \"cancel\"}").status == 200)
            Self.orders(stage).order(try Self.url(stage, "/a-b.mp4"))
            try #expect(Self.downloads(stage).map(\.state) == [.cancelled])
        }
    }

    @Test func whatFailedIsRetriedAnHourLater() async throws {
        try await Self.play { stage in
            let orders = Self.orders(stage), url = try Self.url(stage, "/media/1.mp4")
            stage.origin.script("/media/1.mp4") { $0.status = 404 }
            orders.order(url)
            try #expect(Self.waitForDownloads(stage, 1).map(\.state) == [.failed])
            stage.origin.script("/media/1.mp4") { $0.status = nil }
            orders.order(url)
            try #expect(Self.downloads(stage).map(\.state) == [.failed])
            stage.wait(seconds: 3700)
            orders.order(url)
            try #expect(Self.waitForDownloads(stage, 1).map(\.state) == [.completed])
        }
    }

    // MARK: Subscribed feeds

    /// Subscribes to a feed that nobody reads through the proxy.
    private static func subscribe(_ stage: Stage, _ numbers: [Int], latest: Int = 0) throws {
        let items = numbers.map {
            "<item><guid>\($0)</guid><pubDate>0\($0) Oct 2024 10:00:00 GMT</pubDate>"
                + "<enclosure url=\"/media/\($0).mp4\" type=\"video/mp4\"/></item>"
        }
        stage.origin.serve(
            "/feed", bytes: Array("<rss><channel>\(items.joined())</channel></rss>".utf8),
            contentType: "application/rss+xml")
        let body = "{\"url\": \"\(stage.origin.url("/feed"))\", \"latest\": \(latest)}"
        try #expect(stage.control("POST", "/feeds", body: body).status == 201)
    }

    @Test(arguments: [false, true])
    func theNextEpisodeOfASubscribedFeedIsDownloaded(restarts: Bool) async throws {
        try await Self.play(5) { stage in
            try Self.subscribe(stage, [4, 1, 3])
            if restarts { try stage.restart() }
            try Self.readMost(stage, "/media/1.mp4")
            let report = try #require(try Self.waitForDownloads(stage, 1).first)
            #expect(report.urlText == stage.origin.url("/media/3.mp4") && report.priority == .low && !report.isPinned)
            // The newest has no next: it is not guessed either.
            try Self.readMost(stage, "/media/4.mp4")
            try Self.expectOnly(stage, ["/media/3.mp4"])
            #expect(stage.origin.requestCount("/media/2.mp4") == 0 && stage.origin.requestCount("/media/5.mp4") == 0)
        }
    }

    /// The next one was a download of its subscription, which nothing else remembers any more.
    @Test func anEpisodeThatWasRemovedByHandIsNotDownloadedAgain() async throws {
        try await Self.play { stage in
            try Self.subscribe(stage, [2, 1], latest: 1)
            try Self.waitForDownloads(stage, 1)
            try #expect(stage.control("DELETE", "/resources?" + stage.parameter("/media/2.mp4")).status == 200)
            try #expect(stage.control("DELETE", "/downloads/history").status == 200)
            try stage.restart()
            // Also if the feed is read through the proxy.
            for agent in ["a", "b"] {
                try Self.readMost(stage, "/media/1.mp4", agent: agent)
                try #expect(stage.get("/feed").status == 200)
            }
            try Self.expectOnly(stage)
            #expect(stage.origin.requestCount("/media/2.mp4") == 1)
        }
    }

    /// Such as one of a feed of many megabytes.
    @Test func aLongCheckHoldsUpNothingElse() async throws {
        try await Self.play { stage in
            try Self.subscribe(stage, [2, 1])
            let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            stage.proxy.cache.downloader.subscriptions.next(after: try Self.url(stage, "/media/9.mp4")) { _ in
                begun.signal()
                gate.wait()
            }
            begun.wait()
            defer { gate.signal() }
            for agent in ["a", "b", "c"] { try Self.readMost(stage, "/media/1.mp4", agent: agent) }
            try #expect(stage.control("GET", "/resources", .nothing).status == 200)
            try #expect(Self.downloads(stage).isEmpty)
            gate.signal()
            try Self.waitForDownloads(stage, 1)
        }
    }
}
