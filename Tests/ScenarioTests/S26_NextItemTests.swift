import CachePolicy
import Downloads
import Foundation
import TestSupport
import Testing

@testable import Reelcache

/// Who has read most of an item finds the next one cached.
extension Scenarios {
    @Suite(.serialized) struct S26NextItems {
        static let size: Int64 = 2_000_000

        static func media(_ number: Int) -> Media { Media(seed: UInt64(number), size: size) }

        /// Plays a scenario with `prefetch_next`, and files with numbers as names below `/media/`.
        static func play(
            _ count: Int = 3, isOn: Bool = true, rules: [ResourceRule] = [],
            story: @escaping @Sendable (Stage) throws -> Void
        ) async throws {
            try await scenario {
                $0.configure { ($0.prefetchesNext, $0.rules) = (isOn, rules) }
            } _: { stage in
                for number in 1...count { stage.origin.serve("/media/\(number).mp4", media(number)) }
                try story(stage)
            }
        }

        static func serveList(_ stage: Stage, _ files: [String], at path: String = "/list.m3u") throws {
            let text = "#EXTM3U\n" + files.map { "\($0)\n" }.joined()
            stage.origin.serve(path, bytes: Array(text.utf8), contentType: "audio/x-mpegurl")
            try #expect(stage.get(path).status == 200)
        }

        static func readMost(_ stage: Stage, _ path: String, agent: String = "player") throws {
            let last = size * 3 / 4 - 1
            try #expect(stage.get(path, range: "bytes=0-\(last)", headers: [("User-Agent", agent)]).status == 206)
        }

        static func downloads(_ stage: Stage) throws -> [Download] {
            try stage.read(
                DownloadListing.self, "/downloads?state=waiting,downloading,paused,completed,failed,cancelled"
            )
            .downloads
        }

        /// Waits until as many downloads have ended, or only been ordered, and looks at all.
        @discardableResult
        static func waitForDownloads(_ stage: Stage, _ count: Int, toEnd: Bool = true) throws -> [Download] {
            try eventually("\(count) downloads", instead: "\(try downloads(stage))") {
                let found = try downloads(stage)
                return found.count >= count && (!toEnd || found.allSatisfy(\.state.hasEnded)) ? found : nil
            }
        }

        /// Reads most of a list's first file, of which the proxy certainly orders the second: whatever was to be ordered
        /// before is ordered when that is.
        static func expectOnly(_ stage: Stage, _ others: [String] = []) throws {
            for path in ["/end/a", "/end/b"] { stage.origin.serve(path, media(9)) }
            try serveList(stage, ["/end/a", "/end/b"], at: "/end/list.m3u")
            try readMost(stage, "/end/a")
            let urls = try waitForDownloads(stage, others.count + 1).map(\.urlText)
            #expect(urls.sorted() == (others + ["/end/b"]).map { stage.origin.url($0) }.sorted())
        }

        // MARK: What comes next

        @Test func theNextNewerEpisodeOfAPodcastIsDownloaded() async throws {
            try await Self.play { stage in
                let items = [3, 1, 2].map {
                    "<item><guid>\($0)</guid><pubDate>0\($0) Oct 2024 10:00:00 GMT</pubDate>"
                        + "<enclosure url=\"/media/\($0).mp4\" type=\"video/mp4\"/></item>"
                }
                stage.origin.serve(
                    "/feed", bytes: Array("<rss><channel>\(items.joined())</channel></rss>".utf8),
                    contentType: "text/xml")
                try #expect(stage.get("/feed").status == 200)
                expectWhole(try stage.get("/media/1.mp4"), Self.media(1))
                let report = try #require(try Self.waitForDownloads(stage, 1).first)
                #expect(report.urlText == stage.origin.url("/media/2.mp4") && report.state == .completed)
                #expect(report.priority == .low && !report.isPinned && report.category == nil)
                let next = try stage.get("/media/2.mp4")
                expectWhole(next, Self.media(2))
                #expect(next.isHit)
                try Self.waitForDownloads(stage, 2)
                // The newest has no next.
                expectWhole(try stage.get("/media/3.mp4"), Self.media(3))
                try Self.expectOnly(stage, ["/media/2.mp4", "/media/3.mp4"])
                #expect((1...3).map { stage.origin.requestCount("/media/\($0).mp4") } == [1, 1, 1])
            }
        }

        @Test(arguments: ["/media/1.mp4", "/media/2.mp4"])
        func theNextFileOfAListIsDownloaded(first: String) async throws {
            try await Self.play { stage in
                let second = first == "/media/1.mp4" ? "/media/3.mp4" : "/media/1.mp4"
                try Self.serveList(stage, ["/media/0.mp4", first, second])
                // In the middle of one long answer.
                stage.origin.script(first) { $0.stallAfter = Self.size - 10 }
                let (player, head) = try stage.playerOf(first)
                #expect(head.status == 200)
                var received = 0
                while received < Int(Self.size * 3 / 4) + 100_000 {
                    received += try player.readBody(upTo: 65_536).count
                }
                // It waits for the player's transfer, which stalls.
                try #expect(Self.waitForDownloads(stage, 1, toEnd: false).map(\.urlText) == [stage.origin.url(second)])
            }
        }

        @Test func theNextNumberOfASeriesIsDownloaded() async throws {
            try await Self.play { stage in
                try Self.readMost(stage, "/media/1.mp4")
                try #expect(Self.waitForDownloads(stage, 1).map(\.urlText) == [stage.origin.url("/media/2.mp4")])
                expectWhole(try stage.get("/media/2.mp4"), Self.media(2))
                #expect(stage.origin.bytesSent("/media/2.mp4") == Self.size)
            }
        }

        /// The number is a guess.
        @Test func aNumberThatDoesNotExistLeavesNothingBehindAndIsNotRequestedAgain() async throws {
            try await Self.play { stage in
                stage.origin.script("/media/4.mp4") { $0.status = 404 }
                for agent in ["a", "b", "c"] {
                    try Self.readMost(stage, "/media/3.mp4", agent: agent)
                    try stage.origin.waitForRequests("/media/4.mp4", count: 1)
                    try stage.catchUp()
                }
                try Self.expectOnly(stage)
                #expect(stage.origin.requestCount("/media/4.mp4") == 1)
                try #expect(
                    stage.control("GET", "/resources?" + stage.parameter("/media/4.mp4"), .nothing).status == 404)
            }
        }

        @Test func otherSourcesKnowWhatComesNext() async throws {
            try await Self.play { stage in
                let urls = try (1...3).map { try OriginURL(url: stage.origin.url("/media/\($0).mp4")) }
                stage.proxy.cache.engine.next.add { url, answer in
                    answer(url == urls[0] ? .item(urls[2]) : url == urls[1] ? .nothing : .unknown)
                }
                try Self.readMost(stage, "/media/1.mp4")
                try Self.readMost(stage, "/media/2.mp4")
                try Self.expectOnly(stage, ["/media/3.mp4"])
                #expect(stage.origin.requestCount("/media/3.mp4") == 1)
            }
        }

        // MARK: How much was read

        @Test func theLastBytesAloneAreNotThreeQuarters() async throws {
            try await Self.play { stage in
                // A player that looks for the index of the file.
                for range in ["bytes=0-100000", "bytes=1500000-", "bytes=-1000", "bytes=1400000-1999999"] {
                    try #expect(stage.get("/media/1.mp4", range: range).status == 206)
                }
                try Self.expectOnly(stage)
                // And then plays.
                try #expect(stage.get("/media/1.mp4", range: "bytes=0-900000").status == 206)
                try Self.waitForDownloads(stage, 2)
                try Self.expectOnly(stage, ["/media/2.mp4"])
            }
        }

        @Test func cachedBytesCount() async throws {
            try await Self.play { stage in
                try stage.proxy.cache.reconfigure { $0.prefetchesNext = false }
                try Self.readMost(stage, "/media/1.mp4")
                try stage.proxy.cache.reconfigure { $0.prefetchesNext = true }
                for agent in ["a", "a", "b"] { try Self.readMost(stage, "/media/1.mp4", agent: agent) }
                try Self.expectOnly(stage, ["/media/2.mp4"])
                #expect(stage.origin.requestCount("/media/2.mp4") <= 2)
            }
        }

        /// Somebody has ordered it already, or does not want it.
        @Test(arguments: ["pause", "cancel"])
        func aDownloadThatExistsStaysAsItIs(action: String) async throws {
            try await Self.play { stage in
                stage.origin.hold("/media/2.mp4")
                let order =
                    "{\"downloads\": [{\"url\": \"\(stage.origin.url("/media/2.mp4"))\", \"category\": \"mine\"}]}"
                try #expect(stage.control("POST", "/downloads", body: order).status == 201)
                try #expect(
                    stage.control("PATCH", "/downloads?all=true", body: "{\"action\": \"\(action)\"}").status == 200)
                stage.origin.release("/media/2.mp4")
                try Self.readMost(stage, "/media/1.mp4")
                for path in ["/end/a", "/end/b"] { stage.origin.serve(path, Self.media(9)) }
                try Self.serveList(stage, ["/end/a", "/end/b"], at: "/end/list.m3u")
                try Self.readMost(stage, "/end/a")
                try stage.origin.waitForRequests("/end/b", count: 1)
                let report = try #require(try Self.downloads(stage).first { $0.urlText.hasSuffix("/2.mp4") })
                #expect(report.category == "mine" && report.isPinned)
                #expect(report.state == (action == "pause" ? .paused : .cancelled))
            }
        }

        // MARK: Where nothing is fetched

        @Test func nothingIsFetchedUnlessItIsWanted() async throws {
            try await Self.play(isOn: false) { stage in
                try Self.serveList(stage, ["/media/1.mp4", "/media/3.mp4"])
                try Self.readMost(stage, "/media/1.mp4")
                try Self.readMost(stage, "/media/2.mp4")
                try stage.proxy.cache.reconfigure { $0.prefetchesNext = true }
                try Self.expectOnly(stage)
            }
        }

        @Test(arguments: ["/media/1.mp4", "/media/2.mp4"], ["metered", "bypass", "off"])
        func rulesForOneOfTheTwoCount(path: String, rule: String) async throws {
            let rule = ResourceRule(paths: [path]) {
                switch rule {
                case "metered": $0.isMetered = true
                case "bypass": $0.bypass = true
                default: $0.prefetchesNext = false
                }
            }
            try await Self.play(rules: [rule]) { stage in
                try Self.readMost(stage, "/media/1.mp4")
                // A rule that turns it off for an item says nothing about its being the next one.
                let isFetched = rule.prefetchesNext == false && path == "/media/2.mp4"
                try Self.expectOnly(stage, isFetched ? ["/media/2.mp4"] : [])
            }
        }

        @Test func aRuleMayWantItForOneHostAlone() async throws {
            let rule = ResourceRule(paths: ["/media/*", "/end/*"]) { $0.prefetchesNext = true }
            try await Self.play(isOn: false, rules: [rule]) { stage in
                stage.origin.serve("/other/1.mp4", Self.media(1))
                stage.origin.serve("/other/2.mp4", Self.media(2))
                try Self.readMost(stage, "/other/1.mp4")
                try Self.readMost(stage, "/media/1.mp4")
                try Self.expectOnly(stage, ["/media/2.mp4"])
            }
        }

        @Test func segmentsOfAStreamAreNotItems() async throws {
            try await Self.play { stage in
                let lines = (1...2).map { "#EXTINF:2,\n/media/\($0).mp4\n" }.joined()
                stage.origin.serve(
                    "/film.m3u8", bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(lines)#EXT-X-ENDLIST\n".utf8),
                    contentType: "application/vnd.apple.mpegurl")
                try #expect(stage.get("/film.m3u8").status == 200)
                for number in 1...2 { try #expect(stage.get("/media/\(number).mp4").status == 200) }
                try Self.expectOnly(stage)
                // What belongs to a stream is known after a restart, too.
                // Its next is ordered last, so that all else would have been requested before.
                try #expect(stage.control("DELETE", "/resources?" + stage.parameter("/end/b")).status == 200)
                try #expect(stage.control("DELETE", "/downloads/history").status == 200)
                try stage.restart()
                try #expect(stage.get("/media/2.mp4").status == 200)
                try Self.serveList(stage, ["/end/a", "/end/b"], at: "/end/list.m3u")
                try Self.readMost(stage, "/end/a", agent: "another")
                try stage.origin.waitForRequests("/end/b", count: 2)
                #expect(stage.origin.requestCount("/media/3.mp4") == 0)
            }
        }

        /// Web pages and playlists have many short files with numbers.
        @Test func shortFilesAreItemsOnlyOfALists() async throws {
            try await Self.play { stage in
                for number in 1...3 { stage.origin.serve("/short/\(number).mp3", Media(seed: 1, size: 5000)) }
                try #expect(stage.get("/short/1.mp3").status == 200)
                try Self.expectOnly(stage)
                try Self.serveList(stage, ["/short/1.mp3", "/short/3.mp3"])
                try #expect(stage.get("/short/1.mp3", headers: [("User-Agent", "another")]).status == 200)
                let urls = try Self.waitForDownloads(stage, 2).map(\.urlText)
                #expect(urls.contains(stage.origin.url("/short/3.mp3")))
            }
        }

        /// It neither plays for the user nor may choose what is downloaded.
        @Test(arguments: [
            [("Sec-Fetch-Site", "cross-site")], [("Origin", "http://evil.example")],
            [("Sec-Fetch-Site", "same-site"), ("Origin", "null")],
        ])
        func pagesOfOtherSitesOrderNothing(fields: [(String, String)]) async throws {
            try await Self.play { stage in
                try #expect(stage.get("/media/1.mp4", headers: fields).status == 200)
                try Self.expectOnly(stage)
                try Self.readMost(stage, "/media/1.mp4")
                try Self.waitForDownloads(stage, 2)
            }
        }

        // MARK: On demand

        @Test(arguments: ["/media/1.mp4", "/list.m3u"])
        func aPlayerMayWantItAlthoughTheSettingIsOff(wanted: String) async throws {
            try await Self.play(isOn: false) { stage in
                let body = "{\"url\": \"\(stage.origin.url(wanted))\"}"
                expectRefusal(try stage.control("POST", "/next", .nothing, body: body), 401)
                let answer = try stage.control("POST", "/next", body: body)
                try #expect(answer.status == 200 && answer.members["url"] as? String == stage.origin.url(wanted))
                try Self.serveList(stage, ["/media/1.mp4", "/media/3.mp4"])
                try Self.serveList(stage, ["/media/2.mp4", "/media/1.mp4"], at: "/other.m3u")
                try Self.readMost(stage, "/media/2.mp4")
                try Self.readMost(stage, "/media/1.mp4")
                try #expect(Self.waitForDownloads(stage, 1).map(\.urlText) == [stage.origin.url("/media/3.mp4")])
            }
        }

        @Test(arguments: [
            ("", 400, "send a JSON object such as"), ("{}", 422, "url is missing"), ("{\"url\": 5}", 400, ""),
            ("{\"url\": \"file:///x\"}", 422, "url:"), ("{\"url\": \"http://h/\", \"more\": 1}", 422, "no member more"),
        ])
        func badBodiesAreRefused(body: String, status: Int, text: String) async throws {
            try await scenario { stage in
                expectRefusal(try stage.control("POST", "/next", body: body), status, naming: text)
            }
        }
    }
}
