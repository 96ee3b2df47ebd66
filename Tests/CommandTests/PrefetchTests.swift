import Foundation
import TestSupport
import Testing

/// `reelcache prefetch`.
@Suite struct PrefetchTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Runs it to its end, on what the shelf's origin has at these paths.
    private func prefetch(_ shelf: Shelf, _ paths: [String], _ flags: [String] = []) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(arguments(shelf, paths, flags))
    }

    private func arguments(_ shelf: Shelf, _ paths: [String], _ flags: [String] = []) -> [String] {
        ["prefetch"] + paths.map { shelf.origin.url($0) } + ["--allow", "127.0.0.1", "--cache-dir", shelf.cache.path]
            + flags
    }

    /// Each line as an object.
    private func events(_ outcome: ChildProcess.Outcome) throws -> [[String: Any]] {
        try outcome.lines.map {
            try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\(outcome)")
        }
    }

    private func contents(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory.file(name))))
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
    }

    // MARK: Usage

    @Test(arguments: [
        ["--detach"], ["--first", "1MB"], ["film.mp4"], ["ftp://a/b"], ["http://a/b", "nonsense"],
        ["http://a/b", "--first", "0"],
        ["http://a/b", "--first", "some"], ["http://a/b", "--last", "0"], ["http://a/b", "--last", "1MB", "--all"],
        ["http://a/b", "--last", "1MB", "--for", "1h"], ["http://a/b", "--connections", "0"],
        ["http://a/b", "--connections", "17"], ["http://a/b", "--limit-rate", "fast"],
        ["http://a/b", "--limit-rate", "0/s"], ["http://a/b", "--priority", "urgent"],
        ["http://a/b", "--category", " "], ["http://a/b", "-o", ""], ["http://a/b", "-o", "/tmp", "--first", "1MB"],
        ["http://a/b", "-o", "/tmp", "--detach"], ["http://a/b", "-o", "/tmp", "--quality", "best"],
        ["http://a/b", "--quality", "good"], ["http://a/b", "--audio", ","], ["http://a/b", "--subtitles", "e n"],
        ["http://a/b", "--for", "0s"], ["http://a/b", "--for", "8d"], ["http://a/b", "--for", "30"],
        ["http://a/b", "--all", "--audio", "en"], ["http://a/b", "--first", "1MB", "--for", "1h"],
        ["http://a/b", "--detach", "--allow", "127.0.0.1"], ["http://a/b", "--allow", "10.0.0.0/99"],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(["prefetch"] + arguments + ["--cache-dir", directory.file("cache")])
        #expect(outcome.exit == .exited(2) && outcome.stdout == "" && outcome.stderr.hasPrefix("Error: "), "\(outcome)")
        #expect(try names == [])
    }

    @Test func whatHasToWaitIsToldAndItGoesOnAtOnce() throws {
        let shelf = try Shelf(configuration: "schedule: {else: off}\n")
        shelf.origin.serve("/a.mp4", Media(seed: 1, size: 1000))
        let waiting = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4"], ["--json"]))
        try waiting.waitForLine(containing: "\"event\":\"hold\",\"hold\":\"the schedule lets no download run\"")
        try waiting.waitForLine(
            containing: "waiting: the schedule lets no download run; to download now, use --at-once", on: .stderr)
        let done = try prefetch(shelf, ["/a.mp4"], ["--at-once", "--last", "100", "--first", "200"])
        #expect(done.exit == .exited(0) && done.stderr == "", "\(done)")
        #expect(try waiting.waitForExit() == .exited(0))
        try shelf.close()
    }

    /// A cache without a proxy, and an origin of two films that stalls in the midst of them.
    private func stallingShelf() throws -> Shelf {
        let shelf = try Shelf(.alone)
        for path in ["/a.mp4", "/b.mp4"] {
            shelf.origin.serve(path, shelf.film)
            shelf.origin.script(path) { $0.stallAfter = 500_000 }
        }
        return shelf
    }

    /// Other commands find its proxy, which ends with it.
    @Test(arguments: [true, false]) func playerThatUsesItsProxyIsWaitedFor(isInterrupted: Bool) throws {
        let shelf = try stallingShelf()
        let command = try ReelcacheCommand.start(arguments(shelf, ["/b.mp4"]))
        try shelf.origin.waitForRequests("/b.mp4", count: 1)
        let owner = try String(contentsOfFile: shelf.cache.path + "/LOCK", encoding: .utf8)
        let port = try #require(owner.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
        let player = try RawClient(port: port)
        try player.send("GET \(ProxyProcess.target(shelf.origin.url("/a.mp4"))) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        #expect(try player.readHead().status == 200)
        let beginning = try player.readBody(exactly: 400_000)
        shelf.origin.release("/b.mp4")
        try command.waitForLine(containing: "a player reads from http://127.0.0.1:", on: .stderr)
        if isInterrupted {
            command.signal(SIGINT)
        } else {
            shelf.origin.release("/a.mp4")
            #expect(try beginning + player.readBody(exactly: 600_000) == shelf.film.allBytes)
            player.close()
        }
        // What was ordered is there, either way.
        #expect(try command.waitForExit() == .exited(0))
    }

    /// That of the first command ends with it, and the second one continues.
    @Test(arguments: [false, true]) func commandOutlivesAnotherOnesProxy(places: Bool) throws {
        let shelf = try stallingShelf()
        let first = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4"]))
        try shelf.origin.waitForRequests("/a.mp4", count: 1)
        let second = try ReelcacheCommand.start(
            arguments(shelf, ["/b.mp4"], places ? ["-o", directory.path] : []))
        try shelf.origin.waitForRequests("/b.mp4", count: 1)
        shelf.origin.release("/a.mp4")
        #expect(try first.waitForExit() == .exited(0))
        shelf.origin.release("/b.mp4")
        #expect(try second.waitForExit() == .exited(0))
        #expect(second.stderr == "" && second.stdout.contains("completed b.mp4, 1.00 MB"), "\(second.stdout)")
        #expect(try shelf.plays("/b.mp4"))
        #expect(try names == (places ? ["b.mp4"] : []))
    }

    /// It has a full buffer, and requests nothing.
    @Test func playerOfAStreamThatIsIdleIsWaitedFor() throws {
        let shelf = try Shelf(.alone)
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n"
        shelf.origin.serve("/film.m3u8", bytes: Array(list.utf8), contentType: "application/vnd.apple.mpegurl")
        shelf.origin.serve("/1.ts", Media(seed: 1, size: 10_000))
        shelf.origin.serve("/b.mp4", shelf.film)
        shelf.origin.script("/b.mp4") { $0.stallAfter = 500_000 }
        let command = try ReelcacheCommand.start(arguments(shelf, ["/b.mp4"]))
        try shelf.origin.waitForRequests("/b.mp4", count: 1)
        let owner = try String(contentsOfFile: shelf.cache.path + "/LOCK", encoding: .utf8)
        let port = try #require(owner.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
        for path in ["/film.m3u8", "/1.ts"] {
            let player = try RawClient(port: port)
            let target = ProxyProcess.target(shelf.origin.url(path))
            try player.send("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            #expect(try player.readHead().status == 200)
            while try !player.readBody(upTo: 1 << 16).isEmpty {}
            player.close()
        }
        shelf.origin.release("/b.mp4")
        try command.waitForLine(containing: "a player reads from http://127.0.0.1:", on: .stderr)
        command.signal(SIGINT)
        #expect(try command.waitForExit() == .exited(0))
    }

    @Test func linesThatAreNoURLsAreNamed() throws {
        let file = directory.file("list")
        try Data("# mine\nhttp://a/1.mp4\n\nftp://a/2.mp4\nfilm\n".utf8).write(to: URL(fileURLWithPath: file))
        let outcome = try ReelcacheCommand.run(["prefetch", "-i", file, "--cache-dir", directory.file("cache")])
        #expect(
            outcome.exit == .exited(2) && outcome.stderr.contains("\(file):4: ftp://a/2.mp4: ")
                && outcome.stderr.contains("\(file):5: film: "), "\(outcome)")
        #expect(try names == ["list"])
        let none = try #require(
            try ReelcacheCommand.run(["prefetch", "-i", directory.file("none"), "--cache-dir", directory.file("cache")])
                .failureLine)
        #expect(none == "reelcache: cannot read \(directory.file("none")): No such file or directory")
        let empty = try ReelcacheCommand.run(["prefetch", "-i", "-", "--cache-dir", directory.file("cache")])
        #expect(empty.exit == .exited(2) && empty.stderr.contains("there is no URL in standard input"), "\(empty)")
    }

    // MARK: Downloading

    @Test(arguments: Ownership.allCases) func whatIsDownloadedPlaysWithoutItsOrigin(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, parts: ["/a.mp4"])
        shelf.origin.serve("/b.mp4", shelf.film)
        let outcome = try prefetch(shelf, ["/a.mp4", "/b.mp4", "/a.mp4"], ["--category", "films"])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect(
            outcome.lines.contains("completed a.mp4, 1.00 MB") && outcome.lines.contains("completed b.mp4, 1.00 MB"),
            "\(outcome)")
        #expect(outcome.lines.last == "2 of 2 downloads completed, 2.00 MB")
        // What a player has had is not fetched again.
        #expect(
            shelf.origin.bytesSent("/a.mp4") == shelf.film.size && shelf.origin.bytesSent("/b.mp4") == shelf.film.size)
        let resources = try #require(shelf.json("ls")["resources"] as? [[String: Any]])
        #expect(
            resources.count == 2
                && resources.allSatisfy { $0["is_pinned"] as? Bool == true && $0["is_complete"] as? Bool == true },
            "\(resources)")
        #expect(try shelf.plays("/a.mp4") && shelf.plays("/b.mp4"))
    }

    @Test func whatIsCompleteIsNotAskedFor() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        let outcome = try prefetch(shelf, ["/a.mp4"], ["--no-pin"])
        #expect(outcome.exit == .exited(0) && outcome.lines.last == "completed a.mp4, 1.00 MB", "\(outcome)")
        #expect(shelf.origin.requestCount("/a.mp4") == 1)
        #expect((try shelf.json("ls")["resources"] as? [[String: Any]])?.first?["is_pinned"] as? Bool == false)
    }

    @Test func onlyTheBeginningIsDownloadedWhereThatIsAskedFor()
        throws
    {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        let outcome = try prefetch(
            shelf, ["/a.mp4"],
            ["--first", "128KiB", "--connections", "2", "--limit-rate", "100MB/s", "--priority", "high"])
        #expect(outcome.exit == .exited(0) && outcome.lines.last == "completed a.mp4, 131 kB", "\(outcome)")
        let cached = try #require((try shelf.json("ls")["resources"] as? [[String: Any]])?.first?["cached"] as? Int)
        #expect(131_072..<1_000_000 ~= cached)
    }

    @Test func aListComesFromStandardInput() throws {
        let shelf = try Shelf(.alone)
        for path in ["/a.mp4", "/b.mp4"] { shelf.origin.serve(path, shelf.film) }
        let line =
            "printf '# list\\n%s\\n\\n%s\\n' '\(shelf.origin.url("/a.mp4"))' 'http://localhost:7335\(ProxyProcess.target(shelf.origin.url("/b.mp4")))' | "
            + "\"$0\" prefetch -i - --allow 127.0.0.1 --cache-dir '\(shelf.cache.path)'"
        let outcome = try ChildProcess.run(
            "/bin/sh", ["-c", line, try ReelcacheCommand.path()], environment: ReelcacheCommand.neutral)
        #expect(outcome.exit == .exited(0) && outcome.lines.last == "2 of 2 downloads completed, 2.00 MB", "\(outcome)")
        #expect(try shelf.names == ["/a.mp4", "/b.mp4"])
    }

    @Test func withJSONEachChangeIsALine() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/gone.mp4") { ($0.status, $0.body) = (404, []) }
        let outcome = try prefetch(shelf, ["/a.mp4", "/gone.mp4"], ["--json"])
        #expect(outcome.exit == .exited(3), "\(outcome)")
        let events = try events(outcome)
        let ends = events.filter { $0["event"] as? String == "download" && $0["finished"] != nil }
        #expect(
            Set(ends.compactMap { $0["state"] as? String }) == ["completed", "failed"] && ends.count == 2, "\(ends)")
        #expect(ends.first { $0["state"] as? String == "completed" }?["bytes"] as? Int == 1_000_000)
        #expect(ends.first { $0["state"] as? String == "failed" }?["url"] as? String == shelf.origin.url("/gone.mp4"))
        let end = try #require(events.last)
        #expect(
            end["event"] as? String == "end" && end["completed"] as? Int == 1 && end["failed"] as? Int == 1
                && end["paused"] as? Int == 0, "\(end)")
        #expect(
            outcome.stderr.lines.count == 1 && outcome.stderr.contains("failed \(shelf.origin.url("/gone.mp4")): ")
                && outcome.stderr.contains("404"), "\(outcome)")
    }

    @Test func whatFailsIsTold() throws {
        let shelf = try Shelf()
        for (path, status) in [("/gone.mp4", 404), ("/mine.mp4", 403)] {
            shelf.origin.script(path) { ($0.status, $0.body) = (status, []) }
        }
        let outcome = try prefetch(shelf, ["/gone.mp4", "/mine.mp4"])
        #expect(outcome.exit == .exited(1), "\(outcome)")
        for (path, status) in [("/gone.mp4", "404"), ("/mine.mp4", "403")] {
            #expect(
                outcome.stderr.lines.contains {
                    $0.hasPrefix("reelcache: failed \(shelf.origin.url(path)): ") && $0.contains(status)
                }, "\(outcome)")
            #expect(shelf.origin.requestCount(path) == 1)
        }
        #expect(outcome.lines.last == "0 of 2 downloads completed, 0 bytes")
        // What was ordered before is tried again.
        shelf.origin.script("/gone.mp4") { $0.status = nil }
        shelf.origin.serve("/gone.mp4", shelf.film)
        #expect(try prefetch(shelf, ["/gone.mp4"]).exit == .exited(0))
    }

    @Test func anOriginThatIsBusyIsTriedAgain() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") {
            ($0.status, $0.statusTimes, $0.body) = (503, 1, Array("busy".utf8))
            // Time enough for a slow watcher to see it wait.
            $0.retryAfter = 8
        }
        let outcome = try prefetch(shelf, ["/a.mp4"])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect(
            outcome.lines.contains {
                $0.hasPrefix("waiting a.mp4: ") && $0.contains("503") && $0.contains("; next attempt in ")
            }, "\(outcome)")
        #expect(outcome.lines.last == "completed a.mp4, 1.00 MB")
    }

    @Test func howAPrivateOriginIsAllowedIsTold() throws {
        let shelf = try Shelf(.alone)
        let outcome = try ReelcacheCommand.run([
            "prefetch", shelf.origin.url("/a.mp4"), "--cache-dir", shelf.cache.path,
        ])
        #expect(outcome.exit == .exited(1) && outcome.stderr.contains("--allow 127.0.0.1"), "\(outcome)")
        #expect(shelf.origin.requestCount("/a.mp4") == 0)
    }

    @Test func whereNoOriginIsAskedThatIsSaid() throws {
        let shelf = try Shelf(.alone)
        let outcome = try ReelcacheCommand.run(arguments(shelf, ["/a.mp4"]), environment: ["REELCACHE_OFFLINE": "true"])
        #expect(try #require(outcome.failureLine).contains("offline is set"))
        #expect(try shelf.say("downloads") == "no downloads\n")
    }

    @Test(arguments: [false, true]) func aProxyThatIsOfflineIsNamed(isJSON: Bool) throws {
        let shelf = try Shelf(configuration: "offline: true")
        let command = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4"], isJSON ? ["--json"] : []))
        let url = try #require(shelf.proxy).baseURL
        try command.waitForLine(containing: "reelcache: waiting: the proxy at \(url) is offline", on: .stderr)
        try command.waitForLine(containing: "; Ctrl-C pauses them, and the same command continues", on: .stderr)
        command.signal(SIGINT)
        #expect(try command.waitForExit() == .signalled(SIGINT))
        #expect(command.stderr.lines.last == "reelcache: interrupted: 1 download is paused; the same command continues")
        #expect(
            command.stdout.lines.contains("{\"event\":\"offline\",\"is_offline\":true}") == isJSON, "\(command.stdout)")
        #expect(shelf.origin.requestCount("/a.mp4") == 0)
    }

    @Test func withJSONALineSaysWhyNothingBegins() throws {
        try Data().write(to: URL(fileURLWithPath: directory.file("file")))
        let line = [
            "prefetch", "http://a/b", "--json", "-o", directory.file("file"), "--cache-dir", directory.file("cache"),
        ]
        let outcome = try ReelcacheCommand.run(line)
        let event = try #require(events(outcome).first)
        #expect(
            outcome.lines.count == 1 && event["event"] as? String == "error"
                && outcome.stderr == "reelcache: \(event["error"] as? String ?? "")\n", "\(outcome)")
    }

    @Test func aCacheIsMadeWhereThereIsNone() throws {
        let (origin, film) = (try ScriptedOrigin(), Media(seed: 101, size: 300_000))
        origin.serve("/a.mp4", film)
        let outcome = try ReelcacheCommand.run([
            "prefetch", "-q", origin.url("/a.mp4"), "--allow", "127.0.0.1", "--cache-dir", directory.file("new/cache"),
        ])
        #expect(outcome.exit == .exited(0) && outcome.stdout == "" && outcome.stderr == "", "\(outcome)")
        #expect(
            try ReelcacheCommand.run(["ls", "--cache-dir", directory.file("new/cache")]).lines.last
                == "1 of 1 resource; 300 kB")
    }

    @Test func aPageOrAPlaylistIsNoFilm() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/watch", bytes: Array("<html></html>".utf8), contentType: "text/html; charset=utf-8")
        shelf.origin.serve("/show.m3u8", bytes: Array("#EXTM3U\n".utf8), contentType: "application/vnd.apple.mpegurl")
        shelf.origin.serve("/a.mp4", shelf.film)
        let outcome = try prefetch(shelf, ["/watch", "/show.m3u8", "/a.mp4"])
        #expect(
            outcome.exit == .exited(0) && outcome.lines.last?.hasPrefix("3 of 3 downloads completed") == true,
            "\(outcome)")
        let page =
            "reelcache: \(shelf.origin.url("/watch")): received a web page (text/html; charset=utf-8), not a film: give the URL of the media itself"
        let playlist =
            "reelcache: \(shelf.origin.url("/show.m3u8")): received a playlist (application/vnd.apple.mpegurl), not the film: "
            + "the parts that it lists are not fetched"
        #expect(Set(outcome.stderr.lines) == [page, playlist], "\(outcome.stderr)")
    }

    @Test func aPlaylistComesWithItsSegments() throws {
        let shelf = try Shelf()
        let main = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=4000000,RESOLUTION=1920x1080
            high.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360
            low.m3u8
            """
        let media = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nlow0.ts\n#EXTINF:4,\nlow1.ts\n#EXT-X-ENDLIST\n"
        shelf.origin.serve("/main.m3u8", bytes: Array(main.utf8), contentType: "application/vnd.apple.mpegurl")
        shelf.origin.serve("/low.m3u8", bytes: Array(media.utf8))
        for number in 0...1 { shelf.origin.serve("/low\(number).ts", Media(seed: 7, size: 100_000)) }
        let outcome = try prefetch(shelf, ["/main.m3u8"], ["--quality", "480p"])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect(
            outcome.lines.last?.contains("/main.m3u8, 200 kB in 2 segments: 360p 800 kbit/s") == true,
            "\(outcome)")
        let failure = try prefetch(shelf, ["/main.m3u8"])
        #expect(failure.exit == .exited(1), "\(failure)")
        #expect(
            failure.stderr.contains("the playlist, \(shelf.origin.url("/high.m3u8")): the origin answered 404"),
            "\(failure)")
    }

    @Test func aPageInThePlaceOfAFilmIsAFailure() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", bytes: Array("<html></html>".utf8), contentType: "text/html")
        let outcome = try prefetch(shelf, ["/a.mp4"])
        #expect(
            outcome.exit == .exited(1) && outcome.stderr.contains("a web page came in place of the media"), "\(outcome)"
        )
        #expect(try shelf.names == [])
    }

    // MARK: Interruptions

    /// Of what is cached already nothing has to be downloaded, and it is there although its turn has not come.
    @Test func whatWaitsAndIsCachedIsSaidToBeThere() throws {
        let shelf = try Shelf(whole: ["/b.mp4"], configuration: "max_downloads: 1")
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.stallAfter = 600_000 }
        shelf.origin.serve("/c.mp4", shelf.film)
        let command = try ReelcacheCommand.start(
            arguments(shelf, ["/a.mp4", "/b.mp4", "/c.mp4"]), environment: ["REELCACHE_MAX_DOWNLOADS": "1"])
        try command.waitForLine(containing: "downloading a.mp4")
        command.signal(SIGINT)
        #expect(try command.waitForExit() == .signalled(SIGINT))
        let paused = command.stdout.lines.filter { $0.hasPrefix("paused ") }
        #expect(paused.contains("paused b.mp4, 1.00 MB") && paused.contains("paused c.mp4"), "\(command.stdout)")
    }

    @Test(arguments: Ownership.allCases, [SIGINT, SIGTERM]) func anInterruptPausesAndTheSameCommandGoesOn(
        ownership: Ownership, signal: Int32
    ) throws {
        let shelf = try Shelf(ownership)
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.stallAfter = 600_000 }
        let first = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4"]))
        try first.waitForLine(containing: "downloading a.mp4")
        // What the origin has sent may still be on its way.
        let news = try ReelcacheCommand.start(["downloads", "watch", "--json", "--cache-dir", shelf.cache.path])
        try news.waitForLine("the half of it") { line in
            line.contains("\"total\":1000000,")
                && line.firstMatch(of: /"bytes":(\d+),/).flatMap { Int($0.1) } ?? 0 >= 524_288
        }
        #expect(try news.killNow() == .signalled(SIGKILL))
        first.signal(signal)
        #expect(try first.waitForExit() == .signalled(signal))
        #expect(
            first.stderr == "reelcache: interrupted: 1 download is paused; the same command continues\n",
            "\(first.stderr)")
        #expect(first.stdout.lines.last?.hasPrefix("paused a.mp4, ") == true, "\(first.stdout)")
        let listed = try #require((try shelf.json("downloads")["downloads"] as? [[String: Any]])?.first)
        #expect(listed["state"] as? String == "paused" && listed["total"] as? Int == 1_000_000)

        shelf.origin.release("/a.mp4")
        let second = try prefetch(shelf, ["/a.mp4"])
        #expect(second.exit == .exited(0) && second.lines.last == "completed a.mp4, 1.00 MB", "\(second)")
        let again = try #require(shelf.origin.requests("/a.mp4").last)
        #expect((again.range?.lowerBound ?? 0) > 0 && again.headers["If-Range"] == "\"v1\"", "\(again)")
        #expect(try shelf.plays("/a.mp4"))
    }

    /// Also what is held is tried at once, and what was paused stays so.
    @Test(arguments: Ownership.allCases) func withoutURLsWhatWaitsInTheQueueGoesOn(ownership: Ownership) throws {
        let shelf = try Shelf(ownership)
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.status = 503 }
        let first = try prefetch(shelf, ["/a.mp4"])
        #expect(first.exit == .exited(1) && first.stderr.contains("1 download stays in the queue"), "\(first)")
        #expect(first.stderr.contains("; next attempt in ") == (shelf.proxy != nil), "\(first)")
        let held = try #require((try shelf.json("downloads")["downloads"] as? [[String: Any]])?.first)
        #expect(held["state"] as? String == "waiting" && held["is_held"] as? Bool == true, "\(held)")
        shelf.origin.script("/a.mp4") { $0.status = nil }
        let second = try prefetch(shelf, [])
        #expect(second.exit == .exited(0) && second.lines.last == "completed a.mp4, 1.00 MB", "\(second)")
        let third = try prefetch(shelf, [])
        #expect(third.exit == .exited(0) && third.lines.last == "no download is waiting", "\(third)")
    }

    /// Some end between the last news and the pause.
    @Test(arguments: [false, true]) func whatEndsMeanwhileIsNotCountedAsPaused(places: Bool) throws {
        let shelf = try Shelf()
        let paths = (1...60).map { "/\($0).mp4" }
        for path in paths {
            shelf.origin.serve(path, bytes: [UInt8](repeating: 5, count: 10_000))
            shelf.origin.script(path) { $0.bytesPerSecond = 200_000 }
        }
        // So that it cannot be over before the signal comes.
        shelf.origin.script("/60.mp4") { $0.holdBody = true }
        let command = try ReelcacheCommand.start(arguments(shelf, paths, places ? ["-o", directory.path] : []))
        try command.waitForLine(containing: "completed ")
        command.signal(SIGINT)
        #expect(try command.waitForExit() == .signalled(SIGINT))

        func count(_ listing: Any?, _ state: String) throws -> Int {
            try #require(listing as? [[String: Any]]).count { $0["state"] as? String == state }
        }
        let paused = try count(shelf.json("downloads")["downloads"], "paused")
        let completed = try count(shelf.json("downloads", "--all")["downloads"], "completed")
        #expect(paused + completed == 60 && paused > 0)
        let lines = command.stdout.lines
        #expect(
            lines.count { $0.hasPrefix("paused ") } == paused
                && lines.count { $0.hasPrefix("completed ") } == completed, "\(command.stdout)")
        let unplaced = places ? try completed - names.count : 0
        let said =
            "\(paused) download\(paused == 1 ? " is" : "s are") paused"
            + (unplaced == 0 ? "" : ", \(unplaced) completed file\(unplaced == 1 ? " is" : "s are") not placed")
        #expect(command.stderr == "reelcache: interrupted: \(said); the same command continues\n")
    }

    @Test func onATerminalThereAreBarsAndCtrlCPauses() throws {
        let shelf = try Shelf()
        for path in ["/a.mp4", "/b.mp4"] { shelf.origin.serve(path, shelf.film) }
        shelf.origin.serve("/c.mp4", bytes: [UInt8](repeating: 7, count: 200_000))
        shelf.origin.script("/a.mp4") { $0.stallAfter = 524_288 }
        shelf.origin.script("/b.mp4") { $0.holdBody = true }
        let first = try TerminalProcess.reelcache(arguments(shelf, ["/a.mp4", "/b.mp4", "/c.mp4"]))
        try first.waitForLine(containing: "completed c.mp4, 200 kB")
        let bars = try first.waitForScreen("a bar that stands at half") { lines in
            lines.contains { $0.hasPrefix("a.mp4  ") && $0.contains("██") && $0.contains("52 %") } ? lines : nil
        }
        #expect(
            bars.contains { $0.hasPrefix("b.mp4  ") }
                && bars.last?.hasPrefix("1 of 3 completed, 2 downloading") == true, "\(bars)")
        // In a narrow window the lines are shorter.
        try first.resize(columns: 40, rows: 10)
        try first.waitForScreen("lines that fit") { lines in
            lines.contains { $0.hasPrefix("a.mp4") && $0.contains("52 %") && $0.count < 40 }
                && lines.allSatisfy { $0.count < 40 } ? () : nil
        }
        // And however often that changes, each line is there once.
        for columns in [100, 30, 60] {
            try first.resize(columns: columns, rows: 10)
            try first.waitForScreen("lines for \(columns) columns, each of them once") { lines in
                lines.count { $0.hasPrefix("a.mp4") } == 1 && lines.count { $0.hasPrefix("b.mp4") } == 1
                    && lines.count { $0.contains("of 3 completed") } == 1
                    && lines.contains { $0.hasPrefix("a.mp4") && $0.contains("█") == (columns > 30) } ? () : nil
            }
        }
        try first.interrupt()
        #expect(try first.waitForExit() == .signalled(SIGINT))
        // Nothing of the bars is left.
        #expect(!first.lines.contains { $0.contains("█") }, "\(first.lines)")
        #expect(
            first.lines.contains { $0.hasPrefix("paused a.mp4, ") }
                && first.lines.contains { $0.hasPrefix("completed c.mp4") }, "\(first.lines)")
        #expect(
            first.output.contains("interrupted: 2 downloads are paused; the same command continues"), "\(first.output)")

        for path in ["/a.mp4", "/b.mp4"] { shelf.origin.release(path) }
        let second = try TerminalProcess.reelcache(arguments(shelf, ["/a.mp4", "/b.mp4", "/c.mp4"]))
        #expect(try second.waitForExit() == .exited(0))
        #expect(second.lines.last == "3 of 3 downloads completed, 2.20 MB", "\(second.lines)")
        #expect(shelf.origin.requestCount("/c.mp4") == 1)
        #expect(try shelf.plays("/a.mp4") && shelf.plays("/b.mp4"))
    }

    @Test func aTerminalThatCannotDrawGetsLines() throws {
        let shelf = try Shelf(.alone)
        shelf.origin.serve("/a.mp4", shelf.film)
        let prefetch = try TerminalProcess.reelcache(arguments(shelf, ["/a.mp4"]), environment: ["TERM": "dumb"])
        #expect(try prefetch.waitForExit() == .exited(0))
        #expect(
            !prefetch.output.contains("\u{1B}") && prefetch.lines.last == "completed a.mp4, 1.00 MB",
            "\(prefetch.lines)")
    }

    @Test func aProxyThatGoesAwayIsTold() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.stallAfter = 600_000 }
        let first = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4"]))
        try first.waitForLine(containing: "downloading a.mp4")
        try #require(shelf.proxy).process.killNow()
        #expect(try first.waitForExit() == .exited(1))
        #expect(
            first.stderr.lines.count == 1 && first.stderr.contains("has ended: 1 download stays queued")
                && first.stderr.contains("with the same command"), "\(first.stderr)")
        shelf.origin.release("/a.mp4")
        let second = try prefetch(shelf, ["/a.mp4"])
        #expect(second.exit == .exited(0) && second.lines.last == "completed a.mp4, 1.00 MB", "\(second)")
    }

    @Test func whatSomebodyElseDoesIsTold() throws {
        let shelf = try Shelf()
        for path in ["/a.mp4", "/b.mp4"] {
            shelf.origin.serve(path, shelf.film)
            shelf.origin.script(path) { $0.stallAfter = 600_000 }
        }
        let command = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4", "/b.mp4"]))
        for path in ["/a.mp4", "/b.mp4"] { try shelf.origin.waitUntil("600 kB") { $0.bytesSent(path) == 600_000 } }
        #expect(try shelf.say("downloads", "pause", shelf.origin.url("/a.mp4")).contains("paused"))
        let line = try command.waitForLine(containing: "paused a.mp4, ")
        #expect(line.contains(", by someone else; resume it with: reelcache downloads resume "), "\(line)")
        #expect(try shelf.say("downloads", "cancel", shelf.origin.url("/b.mp4")).contains("cancelled"))
        try command.waitForLine(containing: "cancelled \(shelf.origin.url("/b.mp4"))", on: .stderr)
        shelf.origin.release("/a.mp4")
        #expect(try shelf.say("downloads", "resume", shelf.origin.url("/a.mp4")).contains("a.mp4"))
        #expect(try command.waitForExit() == .exited(3))
        #expect(command.stdout.lines.last == "1 of 2 downloads completed, 1.00 MB", "\(command.stdout)")
    }

    // MARK: Queueing

    @Test func whatIsQueuedGoesOnWithTheNextProxy() throws {
        let shelf = try Shelf(.alone)
        for path in ["/a.mp4", "/b.mp4"] { shelf.origin.serve(path, shelf.film) }
        let said = try shelf.say("prefetch", shelf.origin.url("/a.mp4"), shelf.origin.url("/b.mp4"), "--detach").lines
        #expect(
            said == [
                "queued a.mp4", "queued b.mp4",
                "no proxy is running: these 2 downloads start when one is started, or with reelcache prefetch",
            ])
        #expect(
            try shelf.say("downloads").lines.last
                == "2 waiting; no proxy is running: they continue when one is started, or with reelcache prefetch")
        #expect(shelf.origin.requestCount("/a.mp4") == 0)
        let outcome = try prefetch(shelf, ["/b.mp4"])
        #expect(
            outcome.exit == .exited(0)
                && outcome.stderr == "reelcache: 1 download left in the queue continues as well\n", "\(outcome)")
        let proxy = try ProxyProcess(cacheDirectory: shelf.cache.path)
        #expect(try prefetch(shelf, ["/a.mp4"]).exit == .exited(0))
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(try shelf.plays("/a.mp4") && shelf.plays("/b.mp4"))
    }

    @Test func aRunningProxyTakesWhatIsQueued() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        #expect(try shelf.say("prefetch", shelf.origin.url("/a.mp4"), "--detach").hasPrefix("queued a.mp4"))
        #expect(try prefetch(shelf, ["/a.mp4"]).exit == .exited(0))
        #expect(shelf.origin.bytesSent("/a.mp4") == shelf.film.size)
    }

    // MARK: Files

    @Test(arguments: Ownership.allCases) func aFinishedFileIsPlacedUnderItsOwnName(ownership: Ownership) throws {
        let shelf = try Shelf(ownership)
        for path in ["/get?id=1", "/vod/My%20Film.mp4"] { shelf.origin.serve(path, shelf.film) }
        shelf.origin.script("/get?id=1") {
            $0.headers = [
                ("Content-Disposition", "attachment; filename=\"x\"; filename*=UTF-8''..%2FDvo%C5%99%C3%A1k.mp4")
            ]
        }
        let outcome = try prefetch(shelf, ["/get?id=1", "/vod/My%20Film.mp4"], ["-o", directory.path])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect(try names == ["Dvořák.mp4", "My Film.mp4"])
        #expect(outcome.lines.contains("placed \(directory.file("Dvořák.mp4"))"), "\(outcome)")
        for name in try names { #expect(shelf.film.difference(try contents(name), from: 0..<shelf.film.size) == nil) }
    }

    @Test func noFileIsOverwritten() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        shelf.origin.serve("/other/a.mp4", Media(seed: 102, size: 400_000))
        try Data("mine".utf8).write(to: URL(fileURLWithPath: directory.file("a.mp4")))
        #expect(try prefetch(shelf, ["/a.mp4"], ["-o", directory.path]).exit == .exited(0))
        #expect(try names == ["a (2).mp4", "a.mp4"] && contents("a.mp4") == Array("mine".utf8))
        // Two of one name, one of which is there.
        let outcome = try prefetch(shelf, ["/a.mp4", "/other/a.mp4"], ["-o", directory.path, "--json"])
        #expect(outcome.exit == .exited(0), "\(outcome)")
        #expect(try names == ["a (2).mp4", "a (3).mp4", "a.mp4"])
        #expect(shelf.film.difference(try contents("a (2).mp4"), from: 0..<shelf.film.size) == nil)
        #expect(Media(seed: 102, size: 400_000).difference(try contents("a (3).mp4"), from: 0..<400_000) == nil)
        let files = try events(outcome).filter { $0["event"] as? String == "file" }
        #expect(
            files.first { $0["url"] as? String == shelf.origin.url("/a.mp4") }?["method"] as? String == "there",
            "\(files)")
        #expect(
            files.first { $0["url"] as? String == shelf.origin.url("/other/a.mp4") }?["file"] as? String
                == directory.file("a (3).mp4"), "\(files)")
    }

    @Test func aFileThatIsNotKeptUntilItIsPlacedIsTold() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.holdBody = true }
        let command = try ReelcacheCommand.start(arguments(shelf, ["/a.mp4"], ["--no-pin", "-o", directory.path]))
        try command.waitForLine(containing: "downloading a.mp4")
        // It sleeps until the file is there and gone again.
        command.signal(SIGSTOP)
        shelf.origin.release("/a.mp4")
        #expect(try prefetch(shelf, ["/a.mp4"], ["--no-pin"]).exit == .exited(0))
        _ = try shelf.say("rm", shelf.origin.url("/a.mp4"))
        command.signal(SIGCONT)
        #expect(try command.waitForExit() == .exited(1))
        let reason =
            "it was evicted before its file was placed: without --no-pin, downloads are kept until then"
        #expect(command.stderr == "reelcache: \(shelf.origin.url("/a.mp4")): \(reason)\n")
        #expect(try names == [])
    }

    @Test func aTypeGivesANameItsExtension() throws {
        let shelf = try Shelf(whole: ["/watch?v=1"])
        #expect(try prefetch(shelf, ["/watch?v=1"], ["-o", directory.path]).exit == .exited(0))
        #expect(try names == ["watch.mp4"])
    }

    @Test func aPlaceThatTakesNoFilesIsNamedBeforeAnythingIsFetched() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: directory.file("file")))
        for place in [directory.file("file"), directory.file("file/none")] {
            let line = try #require(try prefetch(shelf, ["/a.mp4"], ["-o", place]).failureLine)
            #expect(line.contains(place), "\(line)")
        }
        #expect(shelf.origin.requestCount("/a.mp4") == 0)
    }

    @Test(.enabled(if: SmallDisk.obstacle == nil, "no small disk can be mounted here"))
    func aDiskThatIsFullFailsThatFileAlone() throws {
        let shelf = try Shelf()
        let disk = try SmallDisk(size: 600_000)
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.serve("/b.mp4", Media(seed: 103, size: 200_000))
        let outcome = try prefetch(shelf, ["/a.mp4", "/b.mp4"], ["-o", disk.path])
        #expect(outcome.exit == .exited(3), "\(outcome)")
        #expect(
            outcome.stderr
                == "reelcache: \(shelf.origin.url("/a.mp4")): cannot write \(disk.path)/a.mp4: No space left on device\n",
            "\(outcome)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == ["b.mp4"])
        #expect(outcome.lines.last == "1 of 2 downloads completed, 200 kB")
        #expect(try shelf.plays("/a.mp4"))
    }
}
