import Activity
import Administration
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 260, size: 1_500_000)
private let other = Media(seed: 261, size: film.size)

extension Stage {
    /// Runs a story with an origin whose pages, below `/watch`, are resolved by a script.
    /// - Parameter script: as in `ScriptedResolver`; `$media` is the URL of the film, without the signature `?sig=N`.
    static func resolving(
        _ script: String, timeout: Duration = .seconds(30), _ change: (inout Setting) -> Void = { _ in },
        _ story: @escaping @Sendable (Stage, ScriptedResolver) throws -> Void
    ) async throws {
        let origin = try ScriptedOrigin()
        let resolver = try ScriptedResolver("media='\(origin.url("/film.mp4"))'\n\(script)")
        try await scenario { setting in
            setting.origin = origin
            setting.configure {
                $0.resolvers = [
                    MediaResolver(
                        hosts: ["127.0.0.1"], paths: ["/watch*"], command: [resolver.path], timeout: timeout)
                ]
            }
            change(&setting)
        } _: { stage in
            try story(stage, resolver)
        }
    }
}

private extension Stage {
    func order(_ path: String, more: String = "") throws -> Int64 {
        let body = "{\"downloads\": [{\"url\": \"\(origin.url(path))\"\(more)}]}"
        let list = try control("POST", "/downloads", body: body).decoded(DownloadList.self, status: 201)
        return try #require(list.downloads.first).id
    }

    /// Begins to download a page, whose media stops in its middle.
    func beginDownload(of page: String) throws -> Int64 {
        origin.serve("/film.mp4", film)
        origin.script("/film.mp4") { $0.stallAfter = 524_288 }
        let id = try order(page)
        try eventually("half of it") { try download(id)?.bytes ?? 0 >= 524_288 }
        return id
    }

    func download(_ id: Int64) throws -> Download? {
        try read(DownloadListing.self, "/downloads?id=\(id)").downloads.first
    }

    func wait(for id: Int64, _ state: Download.State) throws {
        try eventually("a download that is \(state)", instead: "\(String(describing: try? download(id)))") {
            try download(id)?.state == state
        }
    }

    func act(_ action: String, _ id: Int64) throws -> RawClient.Response {
        try control("PATCH", "/downloads?id=\(id)", body: "{\"action\": \"\(action)\"}")
    }

    /// What is cached of a page; nil for nothing.
    func resource(_ path: String) throws -> CachedResource? {
        let response = try control("GET", "/resources?" + parameter(path))
        return response.status == 404 ? nil : try response.decoded(ResourceDetail.self).resource
    }
}

extension Scenarios {
    /// The media behind pages, and its addresses.
    @Suite struct S26Resolvers {
        private static let signed = #"echo "$media?sig=$n""#

        // MARK: Pages

        @Test func pageIsPlayedFromItsMediaAndCachedUnderItsOwnURL() async throws {
            try await Stage.resolving(Self.signed) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(resolver.runs == [stage.origin.url("/watch?v=1")])
                #expect(stage.origin.requestCount("/watch") == 0)
                let again = try stage.get("/watch?v=1")
                expectWhole(again, film)
                #expect(again.isHit && again.headers["Content-Type"] == "video/mp4")
                try stage.restart()
                #expect(try stage.get("/watch?v=1", range: "bytes=500-600").isHit)
                #expect(resolver.runs.count == 1 && stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func cachedPagePlaysOfflineWithoutTheProgram() async throws {
            try await Stage.resolving(Self.signed) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/watch?v=1"), film)
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                expectWhole(try stage.get("/watch?v=1"), film)
                expectOneLine(try stage.get("/watch?v=2"), status: 504)
                #expect(resolver.runs.count == 1)
            }
        }

        @Test func hundredPlayersRunTheProgramOnce() async throws {
            try await Stage.resolving(ScriptedResolver.wait(for: "go") + "\n" + Self.signed) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                let players = try (0..<100).map { _ in try stage.player() }
                for player in players { try player.send(player.request(stage.target("/watch?v=1"))) }
                try stage.waitForStats("a hundred requests") { $0[\.requests] == 100 }
                try resolver.touch("go")
                for player in players { expectWhole(try player.readResponse(), film) }
                #expect(resolver.runs.count == 1)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
                #expect(try stage.stats[\.resolverRuns] == 1)
            }
        }

        @Test func seeksInAPageRequestTheRememberedAddress() async throws {
            try await Stage.resolving(Self.signed) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                for start in [1_000_000, 0, 400_000] as [Int64] {
                    expectPart(
                        try stage.get("/watch?v=1", range: "bytes=\(start)-\(start + 999)"), start..<start + 1000,
                        of: film)
                }
                #expect(resolver.runs.count == 1)
                #expect(stage.origin.requests("/film.mp4").allSatisfy { $0.target == "/film.mp4?sig=1" })
            }
        }

        @Test func addressIsFoundAgainOnceItHasExpired() async throws {
            let script = #"echo "{\"url\": \"$media?sig=$n\", \"expires_in\": 60}""#
            try await Stage.resolving(script) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/watch?v=1", range: "bytes=0-9"), 0..<10, of: film)
                stage.wait(seconds: 59)
                #expect(try stage.get("/watch?v=1", range: "bytes=500000-500009").status == 206)
                #expect(resolver.runs.count == 1)
                stage.wait(seconds: 2)
                #expect(try stage.get("/watch?v=1", range: "bytes=1000000-1000009").status == 206)
                #expect(stage.origin.requests("/film.mp4").map(\.target).last == "/film.mp4?sig=2")
                #expect(resolver.runs.count == 2)
            }
        }

        @Test func headOfAPageIsThatOfItsMedia() async throws {
            // What the HEAD has begun continues for the GET that comes next.
            try await Stage.resolving(Self.signed, { $0.tuning.fill.lingerSeconds = 60 }) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                let head = try stage.get("/watch?v=1", method: "HEAD")
                #expect(head.status == 200 && head.headers["Content-Length"] == "\(film.size)")
                // Signed addresses are often for GET alone.
                #expect(stage.origin.requests("/film.mp4").allSatisfy { $0.method == "GET" && $0.range == 0..<65_536 })
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
                #expect(resolver.runs.count == 1)
            }
        }

        @Test func fieldsOfTheProgramGoToItsAddressAlone() async throws {
            let script = """
                echo '{"url": "'"$media"'", "http_headers": {"User-Agent": "Scripted/1", "X-Right": "secret", \
                "Host": "evil.example", "Range": "bytes=7-"}}'
                """
            try await Stage.resolving(script) { stage, resolver in
                stage.origin.serve("/real.mp4", film)
                stage.origin.script("/film.mp4") { [port = stage.origin.port] in
                    $0.redirect = "http://localhost:\(port)/real.mp4"
                }
                let response = try stage.get("/watch?v=1", headers: [("User-Agent", "player"), ("Cookie", "a=b")])
                expectWhole(response, film)
                let first = try #require(stage.origin.requests("/film.mp4").first)
                #expect(first.headers["User-Agent"] == "Scripted/1" && first.headers["X-Right"] == "secret")
                #expect(first.headers["Host"] == "127.0.0.1:\(stage.origin.port)" && first.headers["Range"] == nil)
                let last = try #require(stage.origin.requests("/real.mp4").first)
                #expect(last.headers["User-Agent"] == "Scripted/1" && last.headers["X-Right"] == nil)
            }
        }

        @Test func addressOnAPrivateNetworkIsRefused() async throws {
            try await Stage.resolving("echo http://127.0.0.2:1/film.mp4") { stage, _ in
                let response = try stage.get("/watch?v=1")
                expectOneLine(response, status: 403)
                #expect(response.text.contains("127.0.0.2"))
            }
        }

        @Test func playlistBehindAPageNamesItsSegmentsByItsOwnAddress() async throws {
            let script = #"echo "${media%film.mp4}live/list.m3u8?sig=$n""#
            try await Stage.resolving(script) { stage, resolver in
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\none.ts\n#EXT-X-ENDLIST\n"
                stage.origin.serve(
                    "/live/list.m3u8", bytes: [UInt8](text.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.serve("/live/one.ts", film, contentType: "video/mp2t")
                let list = try stage.get("/watch?v=1")
                let segment = try #require(list.text.split(separator: "\n").first { !$0.hasPrefix("#") })
                #expect(segment.hasSuffix("/http/127.0.0.1:\(stage.origin.port)/live/one.ts"), "\(list.text)")
                expectWhole(try stage.get("/live/one.ts"), film)
                #expect(resolver.runs.count == 1)
            }
        }

        // MARK: The same media behind several pages

        private static let named = #"echo "{\"url\": \"$media?sig=$n\", \"key\": \"film-1\"}""#

        @Test func pagesWhoseMediaHasOneNameShareItsBytes() async throws {
            try await Stage.resolving(Self.named) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/watch?v=1"), film)
                for page in ["/watch?v=1&t=30", "/watch/1"] {
                    let response = try stage.get(page)
                    expectWhole(response, film)
                    #expect(response.isHit, "\(page): \(response.cacheStatus)")
                }
                #expect(resolver.runs.count == 3)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
                // From now on, without the program, and after a restart.
                try stage.restart()
                #expect(try stage.get("/watch/1").isHit)
                try stage.proxy.cache.reconfigure { $0.resolvers = configuration(of: resolver).resolvers }
                #expect(try stage.get("/watch?v=1&t=30").isHit)
                #expect(resolver.runs.count == 3)
                // Commands without a proxy know the names, too.
                try stage.stop()
                var alone = configuration(of: resolver)
                alone.cacheDirectory = stage.cache
                let page = try OriginURL(url: stage.origin.url("/watch/1"))
                let cached = try alone.withProxy { try $0.resource(page).resource.cachedBytes }
                #expect(cached == film.size)
            }
        }

        /// The page's own media is another now; what is cached under the key of the first page stays that of the film.
        @Test func pageThatGetsOtherMediaLeavesTheCacheOfItsNamesakeAlone() async throws {
            let script = """
                name=film; [ "$n" -lt 3 ] || name=news
                echo "{\\"url\\": \\"${media%film.mp4}$name.mp4\\", \\"key\\": \\"$name\\", \\"expires_in\\": 60}"
                """
            try await Stage.resolving(script) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                stage.origin.serve("/news.mp4", other, etag: "\"v2\"")
                expectWhole(try stage.get("/watch?v=1"), film)
                expectWhole(try stage.get("/watch?v=2"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                stage.wait(seconds: 61)
                expectWhole(try stage.get("/watch?v=2", headers: [("Cache-Control", "no-cache")]), other)
                let first = try stage.get("/watch?v=1")
                expectWhole(first, film)
                #expect(first.isHit, "\(first.cacheStatus)")
                #expect(try stage.get("/watch?v=2").isHit)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
            }
        }

        private func configuration(of resolver: ScriptedResolver) -> ProxyConfiguration {
            var configuration = ProxyConfiguration()
            configuration.resolvers = [MediaResolver(paths: ["/watch*"], command: [resolver.path])]
            return configuration
        }

        @Test func downloadOfAnotherPageOfCachedMediaFetchesNothing() async throws {
            try await Stage.resolving(Self.named) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(try StageDownload(stage, "/watch/1").complete().bytes == film.size)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
            }
        }

        /// Which wants the same bytes, although its own page was unknown when it was ordered.
        @Test func cancelledDownloadLeavesWhatThatOfAnotherPageHasCompleted() async throws {
            try await Stage.resolving(Self.named) { stage, resolver in
                let first = try stage.beginDownload(of: "/watch?v=1")
                _ = try stage.act("pause", first)
                stage.origin.script("/film.mp4") { $0.stallAfter = nil }
                stage.origin.releaseAll()
                try stage.wait(for: try stage.order("/watch?v=2"), .completed)
                _ = try stage.act("cancel", first)
                let kept = try #require(try stage.resource("/watch?v=2"))
                #expect(kept.isPinned && kept.cachedBytes == film.size)
                #expect(try stage.get("/watch?v=2").isHit)
            }
        }

        @Test func cancelledDownloadOfAnotherPageLeavesNothing() async throws {
            try await Stage.resolving(Self.named) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/watch?v=1"), film)
                _ = try stage.control("DELETE", "/resources?all=true").decoded(RemovalReport.self)
                let second = try stage.beginDownload(of: "/watch?v=2")
                #expect(try stage.resource("/watch?v=1")?.cachedBytes ?? 0 > 0)
                _ = try stage.act("cancel", second)
                #expect(try stage.resource("/watch?v=1") == nil)
            }
        }

        @Test func cancelledDownloadOfAnotherPageLeavesWhatWasCached() async throws {
            try await Stage.resolving(Self.named) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                let first = try stage.order("/watch?v=1", more: ", \"first\": 1000")
                try stage.wait(for: first, .completed)
                let second = try stage.beginDownload(of: "/watch?v=2")
                _ = try stage.act("cancel", second)
                let left = try #require(try stage.resource("/watch?v=1"))
                #expect(left.isPinned && left.cachedBytes >= 1000)
            }
        }

        /// Each run gives the media another name, so that no page's media is where it was.
        @Test func downloadOfAPageWhoseMediaIsRenamedEachTimeEnds() async throws {
            let script = #"echo "{\"url\": \"$media?sig=$n\", \"key\": \"film-$((n % 2))\", \"expires_in\": 5}""#
            try await Stage.resolving(script) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                for page in ["/watch?v=1", "/watch?v=2"] {
                    expectPart(try stage.get(page, range: "bytes=0-9"), 0..<10, of: film)
                }
                for page in ["/watch?v=3", "/watch?v=4", "/watch?v=1"] {
                    stage.wait(seconds: 6)
                    try stage.wait(for: try stage.order(page), .completed)
                }
            }
        }

        @Test func otherPathsOfTheHostAreNotResolved() async throws {
            try await Stage.resolving(Self.signed) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(resolver.runs.isEmpty)
            }
        }

        @Test func downloadOfAPageIsThatOfItsMedia() async throws {
            let script = #"echo "{\"url\": \"$media?sig=$n\", \"title\": \"A film\", \"ext\": \"mp4\"}""#
            try await Stage.resolving(script) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                let progress = try StageDownload(stage, "/watch?v=1").complete()
                #expect(progress.bytes == film.size && progress.fileName == "A film.mp4")
                stage.origin.stop()
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(resolver.runs.count == 1)
            }
        }

        // MARK: Failures

        @Test(
            arguments: [
                ("true", 502, "printed nothing"),
                ("echo /films/film.mp4", 502, "printed no URL"),
                ("echo file:///etc/passwd", 502, "printed no URL"),
                ("echo '{\"url\": 5}'", 502, "without a url"),
                ("echo \"$media\"; echo \"$media\"", 502, "2 lines"),
                ("echo working; echo 'ERROR: no such film' >&2; exit 3", 502, "exit code 3: ERROR: no such film"),
                ("echo 'cannot read https://h/?token=secret' >&2; exit 1", 502, "https://h/?token=***"),
                ("kill -9 $$", 502, "signal 9"),
                ("head -c 5000000 /dev/zero", 502, "more than 4096 KiB"),
                ("exec yes", 502, "more than 4096 KiB"),
                // Within five seconds a shell has begun, and has noted it, on a busy machine too.
                ("exec sleep 1000", 504, "longer than 5 s"),
                ("trap '' TERM; while true; do sleep 0.1; done", 504, "longer than 5 s"),
                ("sleep 1000 & exit 4", 502, "exit code 4"),
            ] as [(String, Int, String)])
        func failureOfTheProgramIsOneClearLine(script: String, status: Int, words: String) async throws {
            let timeout = Duration.seconds(status == 504 ? 5 : 30)
            try await Stage.resolving(script, timeout: timeout) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                let response = try stage.get("/watch?v=1")
                expectOneLine(response, status: status)
                #expect(response.text.contains(words) && response.text.contains("resolver"), "\(response.text)")
                #expect(stage.origin.snapshot.requests.isEmpty)
                // Another player in the same moment does not run it again.
                #expect(try stage.get("/watch?v=1").status == status)
                #expect(resolver.runs.count == 1)
                let name = status == 504 ? "resolver-timeout" : "resolver-failed"
                #expect(response.cacheStatus == "reelcache; detail=\"\(name)\"", "\(response.cacheStatus)")
                #expect(try stage.stats.errors[name] == 2)
                // Some seconds later it is.
                stage.wait(seconds: 6)
                #expect(try stage.get("/watch?v=1").status == status)
                #expect(resolver.runs.count == 2)
            }
        }

        @Test func missingProgramIsOneClearLine() async throws {
            try await scenario {
                $0.configure { $0.resolvers = [MediaResolver(paths: ["/watch"], command: ["no-such-program"])] }
            } _: { stage in
                let response = try stage.get("/watch")
                expectOneLine(response, status: 502)
                #expect(response.text.contains("no-such-program cannot be started: it is not in PATH"))
            }
        }

        @Test func downloadRetriesAProgramThatFailedAndGivesUpOnOneThatIsMissing() async throws {
            try await Stage.resolving("exit 1") { stage, _ in
                #expect(try StageDownload(stage, "/watch?v=1").fault()?.kind == .network)
                try stage.proxy.cache.reconfigure {
                    $0.resolvers = [MediaResolver(paths: ["/watch"], command: ["no-such-program"])]
                }
                #expect(try StageDownload(stage, "/watch?v=1").fault()?.kind == .final)
            }
        }

        @Test func proxyThatStopsEndsARunningProgram() async throws {
            try await Stage.resolving("sleep 1000; true") { stage, resolver in
                let player = try stage.player()
                try player.send(player.request(stage.target("/watch?v=1")))
                try stage.waitForStats("a run") { $0[\.resolverRuns] == 1 }
                try stage.stop()
            }
        }

        // MARK: Only the configuration names programs

        @Test func pageOfAnotherSiteStartsNoProgram() async throws {
            try await Stage.resolving(Self.signed) { stage, resolver in
                stage.origin.serve("/film.mp4", film)
                let foreign = [("Sec-Fetch-Site", "cross-site"), ("Origin", "https://evil.example")]
                expectOneLine(try stage.get("/watch?v=1", headers: foreign), status: 403)
                #expect(resolver.runs.isEmpty)
                expectWhole(try stage.get("/watch?v=1"), film)
                expectOneLine(try stage.get("/watch?v=1", headers: foreign), status: 403)
                #expect(resolver.runs.count == 1)
            }
        }

        @Test func noRequestCanNameAProgram() async throws {
            try await Stage.resolving(Self.signed) { stage, resolver in
                let evil = try ScriptedResolver("echo http://127.0.0.1:1/")
                let orders = [
                    #"{"url": "\#(stage.origin.url("/page"))", "command": ["\#(evil.path)"]}"#,
                    #"{"url": "\#(stage.origin.url("/page"))", "resolvers": [{"path": "/*", "command": ["\#(evil.path)"]}]}"#,
                ]
                for order in orders {
                    let response = try stage.control(
                        "POST", "/downloads", headers: [("Content-Type", "application/json")], body: order)
                    #expect([400, 422].contains(response.status), "\(response.text)")
                }
                for path in ["/resolvers", "/config", "/settings"] {
                    #expect(try stage.control("PUT", path, body: orders[1]).status == 404)
                }
                // A URL is one argument, whatever it contains.
                let url = "/watch?v=$(touch%20x);`id`|--exec%20id&a='b'"
                _ = try stage.get(url)
                #expect(resolver.runs == [stage.origin.url(url)])
                #expect(evil.runs.isEmpty)
            }
        }
    }
}
