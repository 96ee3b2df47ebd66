import Foundation
import TestSupport
import Testing

/// `reelcache feeds` and `reelcache prefetch --feed`.
@Suite struct FeedsTests {
    private let directory: TemporaryDirectory
    private let origin: ScriptedOrigin

    init() throws {
        (directory, origin) = (try TemporaryDirectory(), try ScriptedOrigin())
        origin.serveFeed([5, 4, 3, 2, 1])
    }

    private var cache: String { directory.file("cache") }
    private var feed: String { origin.url("/feed.xml") }

    private func run(_ arguments: String...) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(
            arguments + ["--cache-dir", cache], environment: ["REELCACHE_ALLOW": "127.0.0.1"])
    }

    /// The episodes that are cached, and how often each was requested.
    private func requests() -> [String: Int] {
        Dictionary(
            uniqueKeysWithValues: (1...9).map { ("e\($0)", origin.requestCount("/e\($0).mp3")) }.filter { $0.1 > 0 })
    }

    private func members(_ outcome: ChildProcess.Outcome) throws -> [[String: Any]] {
        try #require(JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [[String: Any]], "\(outcome)")
    }

    /// States of the episodes, newest first.
    private func states() throws -> [String] {
        let outcome = try run("feeds", "show", feed, "--json")
        let detail = try #require(
            JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any], "\(outcome)")
        return try #require(detail["episodes"] as? [[String: Any]]).compactMap { $0["state"] as? String }
    }

    private func waitForCached(_ count: Int) throws {
        let deadline = ContinuousClock.now + .patience
        while try states().count(where: { $0 == "cached" }) < count {
            guard .now < deadline else { throw DeadlinePassed(what: "\(count) episodes", instead: "\(try states())") }
        }
    }

    // MARK: Usage

    @Test(arguments: [
        ["add"], ["add", "http://a/b", "--latest", "-1"], ["add", "http://a/b", "--latest", "1001"],
        ["add", "http://a/b", "--every", "1m"], ["add", "http://a/b", "--every", "60d"],
        ["add", "http://a/b", "--every", "soon"], ["add", "http://a/b", "--keep", "0"],
        ["add", "http://a/b", "--keep", "some"],
        ["add", "http://a/b", "--keep", "5.0"], ["add", "http://a/b", "--allow", "10.0.0.0/99"], ["show"],
        ["show", "http://a/b", "--limit", "0"], ["remove"], ["import"], ["nonsense"],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(["feeds"] + arguments + ["--cache-dir", cache])
        #expect(outcome.exit == .exited(2) && outcome.stdout == "" && outcome.stderr.hasPrefix("Error: "), "\(outcome)")
        #expect(!FileManager.default.fileExists(atPath: cache))
    }

    @Test func queriesCreateNoCache() throws {
        #expect(try run("feeds").stdout == "no feeds: subscribe with reelcache feeds add URL\n")
        #expect(try run("feeds", "--json").stdout == "[\n\n]\n")
        #expect(
            try run("feeds", "show", feed).failureLine
                == "reelcache: there is no cache at \(cache); name another with --cache-dir, or fill one with reelcache serve"
        )
        #expect(try run("feeds", "remove", feed).exit == .exited(1))
        #expect(try run("feeds", "export").exit == .exited(1))
        #expect(!FileManager.default.fileExists(atPath: cache))
    }

    // MARK: Subscribing

    @Test func subscriptionQueuesEpisodesAndACheckDownloadsThem() throws {
        let added = try run("feeds", "add", feed, "--latest", "2", "--category", "talks")
        #expect(added.exit == .exited(0) && added.stdout.hasPrefix("Talk: 2 of 5 episodes queued\n"), "\(added)")
        #expect(added.stdout.contains("no proxy is running"))
        let keeping = "each episode is kept until it was played"
        #expect(added.stdout.contains(keeping))
        #expect(try !run("feeds", "add", feed, "--latest", "2").stdout.contains(keeping), "it is said once")
        #expect(try states() == ["waiting", "waiting", "passed_over", "passed_over", "passed_over"])
        #expect(requests() == [:])

        origin.serveFeed([6, 5, 4, 3, 2, 1])
        let checked = try run("feeds", "check")
        #expect(
            checked.exit == .exited(0) && checked.stdout.contains("Talk: 1 of 1 new episodes queued\n"), "\(checked)")
        #expect(checked.stdout.contains("3 of 3 downloads completed"))
        #expect(try states().prefix(4) == ["cached", "cached", "cached", "passed_over"])
        #expect(requests() == ["e6": 1, "e5": 1, "e4": 1])

        let again = try run("feeds", "check", feed)
        #expect(again.exit == .exited(0) && again.stdout == "Talk: no new episodes\n", "\(again)")
        #expect(try run("history", "--category", "talks").stdout.contains("3 downloads"))
        let listed = try run("feeds")
        #expect(listed.stdout.contains("Talk") && listed.stdout.contains(feed) && listed.stdout.contains("1 feed"))
        let shown = try run("feeds", "show", feed, "--limit", "2").stdout
        #expect(shown.contains("category    talks") && shown.contains("Episode 6") && !shown.contains("Episode 4"))

        #expect(try run("feeds", "remove", feed).stdout == "unsubscribed from Talk\n")
        #expect(try members(run("feeds", "list", "--json")).isEmpty)
        #expect(try run("ls").stdout.contains("3 of 3 resources"), "what is cached stays")
        #expect(
            try run("feeds", "check", feed).failureLine
                == "reelcache: \(feed) is not subscribed: list the feeds to see which are")
    }

    @Test func aCheckDoesNotWaitForTheScheduleOrACap() throws {
        #expect(try run("feeds", "add", feed, "--latest", "2", "--cap", "1/month").exit == .exited(0))
        let capped = try run("feeds", "check")
        #expect(capped.exit == .exited(0) && capped.stdout.contains("1/month of the feed used up until"), "\(capped)")
        // The other may have been stopped in its middle, too.
        #expect(try states().prefix(2).contains("waiting"))

        #expect(try run("feeds", "add", feed, "--cap", "none").exit == .exited(0))
        let directory = directory.file("config.yaml")
        try Data("schedule: {else: off}\n".utf8).write(to: URL(fileURLWithPath: directory))
        let held = try run("feeds", "check", "--config", directory)
        #expect(
            held.exit == .exited(0)
                && held.stdout.contains(/stays? in the queue: the schedule lets no download run/), "\(held)")
        #expect(!held.stderr.contains("at-once"))
        #expect(try run("feeds", "check").exit == .exited(0))
        #expect(try states().prefix(2) == ["cached", "cached"])
    }

    @Test func pagesOfAFeedAreEpisodesWhereAResolverKnowsThem() throws {
        let film = Media(seed: 16, size: 100_000)
        origin.serve("/film-1.mp4", film)
        let item = "<item><title>A</title><link>\(origin.url("/watch?v=1"))</link></item>"
        let text = "<rss version='2.0'><channel><title>C</title>\(item)</channel></rss>"
        origin.serve("/channel.xml", bytes: Array(text.utf8), contentType: "text/xml")
        let resolver = try ScriptedResolver("echo '\(origin.url("/film-1.mp4"))'")
        let file = directory.file("config.yaml")
        try Data("resolvers: [{host: 127.0.0.1, path: /watch, command: [\(resolver.path)]}]\n".utf8).write(
            to: URL(fileURLWithPath: file))
        let channel = origin.url("/channel.xml")
        let added = try run("feeds", "add", channel, "--config", file)
        #expect(added.exit == .exited(0) && added.stdout.contains("1 of 1 episodes queued"), "\(added)")
        #expect(try run("feeds", "check", "--config", file).stdout.contains("completed"))
        #expect(origin.requestCount("/film-1.mp4") == 1 && origin.requestCount("/watch?v=1") == 0)
        #expect(try run("ls").stdout.contains("/watch?v=1"))
    }

    @Test func offlineACheckFailsAtOnce() throws {
        #expect(try run("feeds", "add", feed, "--latest", "1").exit == .exited(0))
        let file = directory.file("config.yaml")
        try Data("offline: true\n".utf8).write(to: URL(fileURLWithPath: file))
        let check = try run("feeds", "check", "--config", file)
        #expect(check.exit == .exited(1) && check.stderr.contains("offline"), "\(check)")
        #expect(requests() == [:])
    }

    @Test func runningProxyDownloadsWhatIsSubscribed() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache)
        let added = try run("feeds", "add", feed, "--latest", "2", "--json")
        let check = try #require(
            JSONSerialization.jsonObject(with: Data(added.stdout.utf8)) as? [String: Any], "\(added)")
        #expect(check["outcome"] as? String == "read" && (check["downloads"] as? [Int])?.count == 2)
        try waitForCached(2)
        origin.serveFeed([6, 5, 4, 3, 2, 1])
        #expect(try run("feeds", "check").stdout == "Talk: 1 of 1 new episodes queued\n")
        try waitForCached(3)
        #expect(requests() == ["e6": 1, "e5": 1, "e4": 1])
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func episodesBeyondWhatIsKeptAreRemoved() throws {
        #expect(try run("feeds", "add", feed, "--latest", "3", "--keep", "3").exit == .exited(0))
        #expect(try run("feeds", "check").exit == .exited(0))
        origin.serveFeed([7, 6, 5, 4, 3, 2, 1])
        #expect(try run("feeds", "check").exit == .exited(0))
        #expect(try states() == ["cached", "cached", "cached", "removed", "removed", "passed_over", "passed_over"])
        #expect(try run("ls").stdout.contains("3 of 3 resources"))
        #expect(try run("feeds", "add", feed, "--keep", "all").exit == .exited(0))
        #expect(try members(run("feeds", "--json")).first?["keep"] == nil)
    }

    @Test func playedEpisodeStaysAlthoughItIsTooOld() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache)
        #expect(try run("feeds", "add", feed, "--latest", "1", "--keep", "1").exit == .exited(0))
        try waitForCached(1)
        #expect(try proxy.get(origin.url("/e5.mp3")).status == 200)
        origin.serveFeed([6, 5, 4, 3, 2, 1])
        #expect(try run("feeds", "check").exit == .exited(0))
        try waitForCached(2)
        #expect(try states().prefix(2) == ["cached", "cached"])
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func failedDownloadIsTheChecksFailure() throws {
        origin.script("/e4.mp3") { ($0.status, $0.body, $0.media) = (404, [], nil) }
        #expect(try run("feeds", "add", feed, "--latest", "2").exit == .exited(0))
        let outcome = try run("feeds", "check")
        #expect(outcome.exit == .exited(3) && outcome.stderr.contains("the origin answered 404"), "\(outcome)")
        #expect(try states().prefix(2) == ["cached", "failed"])
        #expect(try run("feeds", "check").exit == .exited(0), "it is not tried again by itself")
    }

    // MARK: What is no feed

    @Test(arguments: ["/page", "/missing", "/circle", "/file", "/long"])
    func whatIsNoFeedIsRefusedInOneLine(path: String) throws {
        origin.serve("/page", bytes: Array("<!DOCTYPE html><html></html>".utf8), contentType: "text/html")
        origin.script("/missing") { $0.status = 404 }
        origin.script("/circle") { $0.redirect = "/circle" }
        origin.script("/file") { $0.redirect = "file:///etc/passwd" }
        origin.serve("/long", Media(seed: 1, size: 200_000_000), contentType: "application/rss+xml")
        let reasons = [
            "/page": "this is an HTML page, not a feed",
            "/missing": "the origin answered 404: there is nothing at this URL",
            "/circle": "more than 20 redirects", "/file": "redirected to file:///etc/passwd, which cannot be fetched",
            "/long": "the feed cannot be read: it is longer than 32 MiB",
        ]
        let outcome = try run("feeds", "add", origin.url(path))
        #expect(outcome.failureLine == "reelcache: \(origin.url(path)): \(reasons[path] ?? "")", "\(outcome)")
        #expect(try members(run("feeds", "--json")).isEmpty)
    }

    @Test func privateOriginIsRefusedUnlessAllowed() throws {
        let outcome = try ReelcacheCommand.run(["feeds", "add", feed, "--cache-dir", cache])
        #expect(outcome.failureLine?.hasSuffix("to fetch from it, use --allow 127.0.0.1") == true, "\(outcome)")
        #expect(origin.requestCount("/feed.xml") == 0)
        let allowed = try ReelcacheCommand.run(["feeds", "add", feed, "--allow", "127.0.0.1", "--cache-dir", cache])
        #expect(allowed.exit == .exited(0), "\(allowed)")
    }

    /// 200 MB without a length: it is refused at the limit, and memory does not grow with it.
    @Test func feedWithoutAnEndIsRefusedInBoundedMemory() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache)
        origin.serve("/long", Media(seed: 1, size: 200_000_000), contentType: "application/rss+xml")
        origin.script("/long") { $0.chunkedEncoding = true }
        let outcome = try run("feeds", "add", origin.url("/long"))
        #expect(outcome.failureLine?.hasSuffix("it is longer than 32 MiB") == true, "\(outcome)")
        #expect(origin.bytesSent("/long") < 80_000_000)
        let status = try String(contentsOfFile: "/proc/\(proxy.process.pid)/status", encoding: .utf8)
        let peak = try #require(status.firstMatch(of: /VmHWM:\s*(\d+) kB/).flatMap { Int($0.1) })
        #expect(peak < 400_000, "\(peak) kB")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func feedThatBecomesAPageStaysAndHeals() throws {
        #expect(try run("feeds", "add", feed, "--latest", "1").exit == .exited(0))
        origin.serve("/feed.xml", bytes: Array("<html>Sign in</html>".utf8), contentType: "text/html")
        let broken = try run("feeds", "check")
        #expect(broken.exit == .exited(1), "\(broken)")
        #expect(broken.stderr.contains("\(feed): this is an HTML page, not a feed"))
        let listed = try run("feeds")
        #expect(listed.stdout.contains("broken since ") && listed.stdout.contains("1 feed, 1 broken"), "\(listed)")
        origin.serveFeed([6, 5])
        #expect(try run("feeds", "check").exit == .exited(0))
        #expect(try !run("feeds").stdout.contains("broken"))
    }

    @Test func optionsOfABrokenFeedAreSavedAllTheSame() throws {
        #expect(try run("feeds", "add", feed, "--latest", "1").exit == .exited(0))
        origin.script("/feed.xml") { ($0.status, $0.body, $0.media) = (503, [], nil) }
        let outcome = try run("feeds", "add", feed, "--keep", "5")
        #expect(outcome.exit == .exited(3), "\(outcome)")
        #expect(
            outcome.stderr.hasPrefix("reelcache: the options are saved; the feed could not be read: \(feed): "),
            "\(outcome)")
        #expect(try members(run("feeds", "--json")).first?["keep"] as? String == "5")
    }

    @Test func skippedItemsAreNamed() throws {
        let text = String(decoding: FeedText.rss([1], at: origin), as: UTF8.self).replacing(
            "</channel>", with: "<item><title>Lost</title></item></channel>")
        origin.serve("/feed.xml", bytes: Array(text.utf8), contentType: "application/rss+xml")
        let added = try run("feeds", "add", feed, "--latest", "0")
        #expect(
            added.exit == .exited(0) && added.stderr == "reelcache: skipped: Lost: it has no media file\n", "\(added)")
        #expect(added.stdout.contains("1 item without media"))
        #expect(try run("feeds", "show", feed).stdout.contains("skipped     Lost: it has no media file\n"))
        #expect(try run("feeds", "check").stdout == "Talk: no new episodes\n", "that is said once")
    }

    // MARK: Lists

    @Test func subscriptionsGoOutAsOPMLAndInAgain() throws {
        origin.serve("/b.xml", bytes: FeedText.rss([9], at: origin, title: "B & <b>"), contentType: "text/xml")
        #expect(try run("feeds", "add", feed, "--category", "talks & more").exit == .exited(0))
        #expect(try run("feeds", "add", origin.url("/b.xml"), "--latest", "0").exit == .exited(0))
        let exported = try run("feeds", "export")
        #expect(exported.exit == .exited(0) && exported.stdout.hasPrefix("<?xml"))
        let file = directory.file("list.opml")
        try Data(exported.stdout.utf8).write(to: URL(fileURLWithPath: file))
        let other = directory.file("other")
        let imported = try ReelcacheCommand.run(["feeds", "import", file, "--latest", "1", "--cache-dir", other])
        #expect(imported.exit == .exited(0) && imported.stdout.hasPrefix("2 feeds added\n"), "\(imported)")
        let again = try ReelcacheCommand.run(["feeds", "import", file, "--cache-dir", other])
        #expect(again.stdout == "0 feeds added, 2 subscribed before\n", "\(again)")
        let feeds = try members(ReelcacheCommand.run(["feeds", "--json", "--cache-dir", other]))
        #expect(feeds.compactMap { $0["url"] as? String } == [feed, origin.url("/b.xml")])
        #expect(feeds.compactMap { $0["category"] as? String } == ["talks & more"])
        #expect(feeds.compactMap { $0["latest"] as? Int } == [1, 1])
        #expect(try ReelcacheCommand.run(["feeds", "export", "--cache-dir", other]).stdout == exported.stdout)
        let wrong = try ReelcacheCommand.run(["feeds", "import", "/dev/null", "--cache-dir", other])
        #expect(wrong.failureLine == "reelcache: the list cannot be imported: the list is empty", "\(wrong)")
    }

    @Test func importedFeedsAreCheckedWhenAProxyStarts() throws {
        let opml =
            "<opml version=\"2.0\"><body><outline xmlUrl=\"\(feed)\"/><outline xmlUrl=\"file:///x\"/></body></opml>"
        let file = directory.file("list.opml")
        try Data(opml.utf8).write(to: URL(fileURLWithPath: file))
        let imported = try run("feeds", "import", file, "--latest", "2")
        #expect(
            imported.stdout.hasPrefix("1 feed added\n") && imported.stderr.contains("only http and https"),
            "\(imported)")
        #expect(imported.exit == .exited(3))
        try Data(opml.replacing("xmlUrl=\"\(feed)\"", with: "xmlUrl=\"ftp://a/b\"").utf8).write(
            to: URL(fileURLWithPath: file))
        let useless = try run("feeds", "import", file)
        #expect(useless.exit == .exited(1), "\(useless)")
        let proxy = try ProxyProcess(cacheDirectory: cache)
        try waitForCached(2)
        #expect(requests() == ["e5": 1, "e4": 1])
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func feedIsNamedByItsNumberOrAPartOfItsTitle() throws {
        origin.serve("/b.xml", bytes: FeedText.rss([2], at: origin, title: "Small Talk"), contentType: "text/xml")
        #expect(try run("feeds", "add", feed, "--latest", "1").exit == .exited(0))
        #expect(try run("feeds", "add", origin.url("/b.xml"), "--latest", "0").exit == .exited(0))
        #expect(try run("feeds").stdout.contains(/2  Small Talk/))
        for name in ["2", "small", "ALL T"] {
            #expect(try run("feeds", "show", name).stdout.hasPrefix("title       Small Talk\n"), "\(name)")
        }
        #expect(try run("feeds", "check", "1").exit == .exited(0))
        let refusals = [
            ("talk", "2 feeds have 'talk' in their titles"), ("3", "there is no feed 3"),
            ("none", "no feed has 'none'"),
        ]
        for (name, words) in refusals {
            let outcome = try run("feeds", "remove", name)
            #expect(outcome.exit == .exited(1) && outcome.stderr.contains(words), "\(outcome)")
        }
        let player = try ScriptedResolver("")
        let played = try run("play", "--feed", "1", "--player", player.path, "--listen", "127.0.0.1:0")
        #expect(played.exit == .exited(0) && player.runs.first?.hasSuffix("/e5.mp3") == true, "\(played)")
        #expect(try run("feeds", "remove", "small").stdout == "unsubscribed from Small Talk\n")
        // Numbers are those of the list before the first is removed.
        #expect(try run("feeds", "add", origin.url("/b.xml"), "--latest", "0").exit == .exited(0))
        let removed = try run("feeds", "remove", "1", "2")
        #expect(removed.exit == .exited(0) && removed.stdout.split(separator: "\n").count == 2, "\(removed)")
    }

    @Test func feedIsNamedByItsTitleThatIsANumber() throws {
        origin.serve("/b.xml", bytes: FeedText.rss([2], at: origin, title: "1619"), contentType: "text/xml")
        #expect(try run("feeds", "add", origin.url("/b.xml"), "--latest", "0").exit == .exited(0))
        #expect(try run("feeds", "show", "1619").stdout.hasPrefix("title       1619\n"))
        let refused = try run("feeds", "remove", "16")
        #expect(refused.exit == .exited(1) && refused.stderr.contains("there is no feed 16;"), "\(refused)")
    }

    /// Earlier versions imported the proxy's URLs as they were, and removed the origin's feed in place of them.
    @Test func feedIsNamedByItsNumberWhateverItsURL() throws {
        let (list, config) = (directory.file("list.opml"), directory.file("config.yaml"))
        let proxied = "http://nas.invalid:7335/" + feed.replacing("://", with: "/")
        try Data("<opml version=\"2.0\"><body><outline xmlUrl=\"\(proxied)\"/></body></opml>".utf8).write(
            to: URL(fileURLWithPath: list))
        try Data("names: [nas.invalid]\n".utf8).write(to: URL(fileURLWithPath: config))
        #expect(try run("feeds", "import", list).exit == .exited(0))
        #expect(try run("feeds", "add", feed, "--latest", "0").exit == .exited(0))
        let removed = try run("feeds", "remove", "1", "--config", config)
        #expect(removed.exit == .exited(0), "\(removed)")
        #expect(try members(run("feeds", "--json")).compactMap { $0["url"] as? String } == [feed])
    }

    /// A station lists hourly news, too, which the subscription passes over.
    @Test func playFindsTheDownloadedEpisodeBehindManyNewerItems() throws {
        let news = (0..<150).map { number in
            """
            <item><title>News</title><guid>n\(number)</guid>\
            <pubDate>\(1 + number / 12) Feb 2024 \(10 + number % 12):00:00 GMT</pubDate>\
            <enclosure url="\(origin.url("/n\(number).mp3"))" type="audio/mpeg"/></item>
            """
        }
        let text = String(decoding: FeedText.rss([5], at: origin), as: UTF8.self).replacing(
            "</channel>", with: news.joined() + "</channel>")
        origin.serve("/feed.xml", bytes: Array(text.utf8), contentType: "application/rss+xml")
        #expect(try run("feeds", "add", feed, "--latest", "1", "--title", "Episode").exit == .exited(0))
        #expect(try run("feeds", "check").exit == .exited(0))
        let player = try ScriptedResolver("")
        let played = try run("play", "--feed", "1", "--player", player.path, "--listen", "127.0.0.1:0")
        #expect(played.exit == .exited(0) && player.runs.first?.hasSuffix("/e5.mp3") == true, "\(played)")
        #expect(!played.stderr.contains("no episode of this feed is downloaded"), "\(played)")
    }

    /// Nobody else would continue what it has queued.
    @Test func checkBesideAPrefetchEndsWhenItsEpisodesAreThere() throws {
        #expect(try run("feeds", "add", feed, "--latest", "0").exit == .exited(0))
        origin.serveFeed([7, 6, 5])
        origin.serve("/a.mp4", Media(seed: 1, size: 1_000_000))
        for path in ["/a.mp4", "/e7.mp3"] { origin.script(path) { $0.stallAfter = 50_000 } }
        let prefetch = try ReelcacheCommand.start(
            ["prefetch", origin.url("/a.mp4"), "--cache-dir", cache, "--allow", "127.0.0.1"])
        try origin.waitForRequests("/a.mp4", count: 1)
        let check = try ReelcacheCommand.start(["feeds", "check", "--cache-dir", cache, "--allow", "127.0.0.1"])
        try origin.waitForRequests("/e7.mp3", count: 1)
        origin.serveFeed([8, 7, 6, 5])
        let added = try run("feeds", "add", feed)
        #expect(added.exit == .exited(0) && added.stdout.contains("no proxy is running: "), "\(added.stdout)")
        origin.release("/a.mp4")
        #expect(try prefetch.waitForExit() == .exited(0))
        origin.release("/e7.mp3")
        #expect(try check.waitForExit() == .exited(0))
        let states = try states()
        #expect(states[1...2] == ["cached", "cached"], "\(states)")
    }

    // MARK: Kills

    /// A proxy that is killed while it reads a feed, and while it downloads an episode, goes on.
    @Test func killedProxyGoesOnAndFetchesNothingTwice() throws {
        #expect(try run("feeds", "add", feed, "--latest", "1").exit == .exited(0))
        #expect(try run("feeds", "check").exit == .exited(0))
        origin.serveFeed([7, 6, 5])
        origin.hold("/feed.xml")
        var proxy = try ProxyProcess(cacheDirectory: cache)
        let check = try ReelcacheCommand.start(["feeds", "check", "--cache-dir", cache])
        try origin.waitForRequests("/feed.xml", count: 3)
        #expect(try proxy.process.killNow() == .signalled(SIGKILL))
        #expect(try check.waitForExit() == .exited(1))
        origin.release("/feed.xml")

        origin.script("/e7.mp3") { $0.stallAfter = 50_000 }
        proxy = try ProxyProcess(cacheDirectory: cache)
        #expect(try run("feeds", "check").exit == .exited(0))
        try origin.waitUntil("the first bytes") { $0.bytesSent("/e7.mp3") >= 50_000 }
        #expect(try proxy.process.killNow() == .signalled(SIGKILL))
        origin.release("/e7.mp3")

        proxy = try ProxyProcess(cacheDirectory: cache)
        try waitForCached(3)
        #expect(try run("feeds", "check").stdout == "Talk: no new episodes\n")
        let downloads = try run("history").stdout
        #expect(downloads.contains("3 downloads"), "\(downloads)")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    // MARK: Other commands

    @Test(arguments: Ownership.allCases) func episodesAreDownloadedWithoutASubscription(ownership: Ownership) throws {
        let proxy = ownership == .running ? try ProxyProcess(cacheDirectory: cache) : nil
        let outcome = try run("prefetch", "--feed", feed, "--latest", "2")
        #expect(outcome.exit == .exited(0) && outcome.stdout.contains("Talk: 2 episodes\n"), "\(outcome)")
        #expect(requests() == ["e5": 1, "e4": 1])
        #expect(try members(run("feeds", "--json")).isEmpty)
        let queued = try run("prefetch", "--feed", feed, "--detach")
        #expect(queued.exit == .exited(0) && queued.stdout.contains("queued Episode 3"), "\(queued)")
        #expect(queued.stdout.contains("no proxy is running") == (proxy == nil))
        #expect(try proxy?.process.terminate() ?? .exited(0) == .exited(0))
    }

    @Test(arguments: [["--latest", "2"], ["--feed", "nonsense"], ["--feed", "http://a/", "--latest", "0"]])
    func wrongUsageOfPrefetchIsNamed(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(["prefetch"] + arguments + ["--cache-dir", cache])
        #expect(outcome.exit != .exited(0) && outcome.stdout == "" && outcome.stderr != "", "\(outcome)")
        #expect(!FileManager.default.fileExists(atPath: cache))
    }

    @Test func secretsInURLsOfFeedsAreMasked() throws {
        let secret = feed + "?token=swordfish"
        #expect(try !run("feeds", "add", secret).stdout.contains("swordfish"))
        for arguments in [["feeds"], ["feeds", "--json"], ["feeds", "show", secret], ["feeds", "check", "--json"]] {
            let outcome = try ReelcacheCommand.run(
                arguments + ["--cache-dir", cache], environment: ["REELCACHE_ALLOW": "127.0.0.1"])
            #expect(
                outcome.exit == .exited(0) && !(outcome.stdout + outcome.stderr).contains("swordfish"), "\(outcome)")
        }
        #expect(try run("feeds", "--secrets").stdout.contains("swordfish"))
        #expect(try run("feeds", "export").stdout.contains("swordfish"))
    }

    @Test(arguments: Ownership.allCases) func subscribedFeedsAreCompleted(ownership: Ownership) throws {
        #expect(try run("feeds", "add", feed, "--latest", "0").exit == .exited(0))
        let proxy = ownership == .running ? try ProxyProcess(cacheDirectory: cache) : nil
        let outcome = try ReelcacheCommand.run(
            ["complete", "zsh", "--", "feeds", "show", "--cache-dir", cache, ""],
            environment: ["REELCACHE_COMPLETION_PATIENCE": "60000000"])
        #expect(outcome.stdout.contains(feed), "\(outcome)")
        #expect(try proxy?.process.terminate() ?? .exited(0) == .exited(0))
    }
}
