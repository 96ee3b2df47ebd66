import Foundation
import TestSupport
import Testing

/// What changes on the dashboard while somebody looks: several tabs, ends of downloads, a proxy that falls silent.
@Suite(.serialized, Player.areExpected(.ffmpeg, .chromium))
struct DashboardLiveTests {
    @Test func questionsAreAskedOneAfterTheOther() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for name in ["a", "b"] {
            stage.origin.serve("/\(name).mp4", Media(seed: 5, size: 1000))
            _ = try stage.proxy.get(stage.origin.url("/\(name).mp4"))
        }
        try stage.signIn()
        try tab.wait(for: "document.querySelectorAll(`#cache-list [aria-label^='Remove']`).length == 2")
        try tab.evaluate(
            "for (const one of document.querySelectorAll(`#cache-list [aria-label^='Remove']`)) one.click()")
        let question = "document.querySelector('#confirm-text').textContent"
        try tab.wait(for: "document.querySelector('#confirm').open")
        let first = try tab.text(question)
        try tab.click("#confirm-yes")
        try tab.wait(for: "document.querySelector('#confirm').open && \(question) != \(literal(first))")
        try tab.press("Escape")
        try tab.wait(for: "document.querySelector('#cache-list').children.length == 1")
        #expect(try stage.ask("resources")["total"] as? Int == 1)
        stage.expectNoComplaints()
    }

    @Test func downloadThatFailsIsShownWithItsReasonAndRetried() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.signIn()
        try tab.paste(stage.origin.url("/film.mp4"), into: "#order-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#failed-list .error').textContent.includes('404')")
        try tab.wait(
            for: "document.querySelector('#news-text').textContent.startsWith('film.mp4 could not be downloaded: ')")
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        try tab.click("#failed-list button")
        try tab.wait(for: "!document.querySelector('#failed').checkVisibility()")
        try tab.wait(for: "document.querySelector('#cache-list [data-cached=\"100\"]')")
        stage.expectNoComplaints()
    }

    /// A former error, which somebody has dismissed, keeps nothing back.
    @Test func endOfADownloadIsToldAfterAnErrorWasDismissed() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 3_000_000))
        stage.origin.script("/film.mp4") { $0.stallAfter = 1_000_000 }
        try stage.signIn()
        for (path, shown) in [("/film.mp4", "#downloads-list .card"), ("/missing.mp4", "#news.error")] {
            try tab.paste(stage.origin.url(path), into: "#order-url")
            try tab.press("Enter")
            try tab.wait(for: "document.querySelector('\(shown)')")
        }
        try tab.click("#news-dismiss")
        stage.origin.releaseAll()
        try tab.wait(for: "document.querySelector('#news-text').textContent == 'film.mp4 is in the cache.'")
        stage.expectNoComplaints()
    }

    @Test func optionsOfTheFormReachTheOrder() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for path in ["/film.mp4", "/film.m3u8"] { stage.origin.hold(path) }
        try stage.signIn()
        try tab.evaluate("document.querySelector('#order details').open = true")
        func order(_ path: String, _ fields: [String: String]) throws -> [String: Any] {
            for (name, value) in fields {
                try tab.evaluate("document.querySelector('#order-\(name)').value = \(literal(value))")
            }
            try tab.paste(stage.origin.url(path), into: "#order-url")
            try tab.press("Enter")
            try tab.wait(for: "document.querySelector('#order-url').value == ''")
            let listed = try stage.ask("downloads?state=all")["downloads"] as? [[String: Any]] ?? []
            return try #require(listed.first { ($0["url"] as? String)?.hasSuffix(path) == true })
        }
        let film = try order("/film.mp4", ["first": "64KiB", "priority": "high", "category": "films"])
        #expect(film["first"] as? Int == 65536 && film["priority"] as? String == "high")
        #expect(film["category"] as? String == "films")
        let stream = try order("/film.m3u8", ["quality": "720p", "priority": "low"])
        #expect(stream["quality"] as? String == "720p" && stream["priority"] as? String == "low")
        stage.origin.releaseAll()
        stage.expectNoComplaints()
    }

    @Test func signingInInAnotherTabLeavesThisOneSignedIn() throws {
        let stage = try DashboardStage()
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        _ = try stage.proxy.get(stage.origin.url("/film.mp4"))
        try stage.signIn()
        let other = try stage.browser.openTab(stage.link())
        try other.wait(for: "document.body.classList.contains('signed-in')")
        try stage.tab.ask("Page.bringToFront")
        try stage.tab.click("#cache-list [aria-label='Pin film.mp4']")
        try stage.tab.wait(for: "document.querySelector(`#cache-list [aria-label='Unpin film.mp4']`)")
        stage.expectNoComplaints()
    }

    /// What the form was opened for is done by signing in, here or in another tab, and not by leaving the form.
    @Test func signingInElsewhereDoesWhatTheFormWasOpenedFor() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.orderUnsigned()
        let other = try stage.browser.openTab(stage.link())
        try other.wait(for: "document.body.classList.contains('signed-in')")
        try tab.ask("Page.bringToFront")
        try tab.wait(
            for: "!document.querySelector('#sign-in').open && document.querySelector('#order-url').value == ''")
        stage.expectNoComplaints()
    }

    /// What is typed while an answer is awaited stays, and has no foreign error beneath it.
    @Test(arguments: [true, false]) func formKeepsWhatIsTypedMeanwhile(isFeed: Bool) throws {
        let stage = try DashboardStage(), tab = stage.tab
        let feed = "<rss version=\"2.0\"><channel/></rss>"
        if isFeed { stage.origin.serve("/feed.xml", bytes: Array(feed.utf8), contentType: "text/xml") }
        stage.origin.holdHeads("/feed.xml")
        try stage.signIn()
        try tab.paste(stage.origin.url("/feed.xml"), into: "#subscribe-url")
        try tab.press("Enter")
        try stage.origin.waitForRequests("/feed.xml", count: 1)
        try tab.evaluate("document.querySelector('#subscribe-url').value = 'https://example.org/next.xml'")
        stage.origin.releaseAll()
        try tab.wait(for: "!document.querySelector('#news').hidden")
        #expect(
            try tab.text("document.querySelector('#subscribe-url').value") == "https://example.org/next.xml")
        #expect(try tab.text("document.querySelector('#subscribe-error').textContent").isEmpty)
    }

    /// A connection that is open and silent is as good as lost.
    @Test func silentProxyIsNoticedAndComesBack() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 100_000_000))
        stage.origin.script("/film.mp4") { $0.bytesPerSecond = 100_000 }
        try stage.signIn()
        try tab.evaluate(
            """
            document.body.dataset.silence = 4; globalThis.reports = 0; globalThis.losses = 0;
            const parse = JSON.parse; JSON.parse = text => (reports++, parse(text));
            new MutationObserver(() => losses += document.body.classList.contains("lost"))
                .observe(document.body, {attributes: true})
            """)
        try tab.paste(stage.origin.url("/film.mp4"), into: "#order-url")
        try tab.press("Enter")
        // There are four in a second at most: the connection is older than what counts as silence, and is not silent.
        try tab.wait(for: "reports > 24")
        #expect(try tab.text("losses") == "0")
        stage.proxy.process.signal(SIGSTOP)
        try tab.wait(for: "document.body.classList.contains('lost')")
        #expect(try tab.text("document.querySelector('#state').textContent") == "The proxy is silent. Trying again.")
        try tab.evaluate("document.body.dataset.silence = 40")
        stage.proxy.process.signal(SIGCONT)
        try stage.waitUntilLive()
        stage.expectNoComplaints()
    }

    /// Without being signed in, what is hidden is not asked for; the page says why there is no strip.
    @Test func hiddenAddressesAskToSignIn() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4?token=annasecret", Media(seed: 5, size: 1000))
        _ = try stage.proxy.get(stage.origin.url("/film.mp4?token=annasecret"))
        try tab.wait(for: "document.querySelector('#cache-list .strips').textContent.includes('sign in')")
        try tab.click("#cache-list [aria-label='Map of film.mp4']")
        try tab.paste(stage.token, into: "#token")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#map').open && document.querySelector('#map [data-cached=\"100\"]')")
        try tab.press("Escape")
        try tab.wait(for: "document.querySelector('#cache-list [data-cached=\"100\"]')")
        stage.expectNoComplaints()
    }

    @Test func streamHasAStripForEachRendition() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for (name, bytes) in try StreamForm.hlsVariants.files() {
            stage.origin.serve("/nosferatu/\(name)", bytes: bytes, contentType: StreamForm.contentType(of: name))
        }
        try stage.waitUntilLive()
        let url = stage.proxy.url(stage.origin.url("/nosferatu/\(StreamForm.hlsVariants.entry)"))
        let outcome = try Player.ffmpeg.run(["-nostdin", "-v", "error", "-i", url, "-f", "null", "-"])
        #expect(outcome.exit == .exited(0), "\(outcome.stderr)")
        try tab.wait(for: "document.querySelectorAll('#plays .named-strip').length == 3")
        #expect(try tab.text("document.querySelector('#plays h4').textContent") == "nosferatu")
        try tab.click("#plays button")
        try tab.wait(for: "document.querySelectorAll('#map .named-strip').length == 3")
        let names = try tab.text(
            "[...document.querySelectorAll('#map .rendition')].map(one => one.textContent).join('\\n')")
        #expect(names.split(separator: "\n").allSatisfy { $0.hasSuffix(", segments 1 to 10 of 10") }, "\(names)")
        try tab.press("+")
        try tab.wait(for: "document.querySelector('#map-text').textContent == '25 % to 75 % of each rendition'")
        stage.expectNoComplaints()
    }

    /// Renditions of unequal length show the same share; what their playlist calls them is text without marks of direction.
    @Test func renditionsAreTextAndShowTheSameShare() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.waitUntilLive()
        try tab.evaluate(
            """
            const told = globalThis.fetch, name = "audio \\u202e\\u0645\\u06cc\\u200c\\u062e";
            globalThis.fetch = async (path, options) => {
                if (!path.includes("coverage?url=http%3A%2F%2Fx")) return told(path, options);
                const asked = new URL(path, location).searchParams;
                const strips = [["video", 100], [name, 40]].map(([name, length]) => {
                    const from = Math.min(length, asked.get("from") ?? 0), to = Math.min(length, asked.get("to") ?? length);
                    return {name, length, from, to, unit: "segments", cells: [100], arriving: [], readers: []} });
                return new Response(JSON.stringify({strips})) };
            import("/api/dashboard/coverage.js").then(coverage => coverage.showMap("http://x/a.m3u8", "a"))
            """)
        let names = "[...document.querySelectorAll('#map .rendition')].map(one => one.textContent).join('; ')"
        try tab.wait(
            for:
                "\(names) == 'video, segments 1 to 100 of 100; audio  \\u0645\\u06cc\\u200c\\u062e, segments 1 to 40 of 40'"
        )
        try tab.press("+")
        try tab.wait(
            for: "\(names).includes('segments 26 to 75 of 100') && \(names).includes('segments 11 to 30 of 40')")
        #expect(try tab.text("document.querySelectorAll('#map .rendition bdi').length") == "2")
        stage.expectNoComplaints()
    }

    @Test func valuesStayUnderThePointerAndInTheTable() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        _ = try stage.proxy.get(stage.origin.url("/film.mp4"))
        try stage.waitUntilLive()
        try stage.showHistory()
        try tab.evaluate("document.querySelector('#history details').open = true")
        try tab.wait(
            for:
                "document.querySelectorAll('.plot path')[6].getAttribute('d') && document.querySelector('#history-table tbody tr')"
        )
        try tab.evaluate(
            """
            const figure = document.querySelectorAll(".plot")[3], svg = figure.querySelector("svg"), bounds = svg.getBoundingClientRect();
            globalThis.reading = figure.querySelector(".reading"); globalThis.row = document.querySelector("#history-table tbody tr");
            for (let x = bounds.right; x > bounds.left && !reading.textContent.includes("size "); x -= .5)
                svg.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: bounds.top + 5}));
            globalThis.answers = () => performance.getEntriesByType("resource").filter(one => one.name.includes("/history")).length
            """)
        #expect(try tab.text("reading.textContent").contains("size "))
        for _ in 0..<2 {
            let answers = try tab.text("answers()")
            try tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            try tab.wait(for: "answers() > \(answers)")
        }
        #expect(
            try tab.text("String(reading.isConnected && reading.textContent.includes('size ') && row.isConnected)")
                == "true")
        stage.expectNoComplaints()
    }

    /// The list's filter has nothing to do with what is evicted.
    @Test func whatGoesNextIsToldWhateverIsSearched() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000), contentType: "video/mp4")
        _ = try stage.proxy.get(stage.origin.url("/film.mp4"))
        try stage.waitUntilLive()
        try tab.paste("nothing", into: "#cache-filter")
        try tab.wait(for: "document.querySelector('#cache-count').textContent == 'Nothing has this in its URL.'")
        try tab.evaluate("document.querySelector('#space').open = true")
        try tab.wait(for: "document.querySelector('#space-next li')?.textContent.startsWith('film.mp4')")
        #expect(try tab.text("document.querySelector('#space-kinds bdi').textContent") == "films")
        stage.expectNoComplaints()
    }

    /// Only one request for the map of a play is under way, however long the answer takes.
    @Test func mapOfAPlayIsAskedForOnceAtATime() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 100_000_000))
        stage.origin.script("/film.mp4") { $0.bytesPerSecond = 100_000 }
        try stage.waitUntilLive()
        try tab.evaluate(
            """
            globalThis.asked = 0; globalThis.reports = 0;
            const told = globalThis.fetch, parse = JSON.parse;
            JSON.parse = text => (reports += asked > 0, parse(text));
            globalThis.fetch = (path, options) =>
                path.includes("buckets=400") ? (asked++, new Promise(() => {})) : told(path, options)
            """)
        let player = try ChildProcess(
            Player.ffmpeg.location(),
            [
                "-nostdin", "-v", "error", "-f", "s16le", "-i", stage.proxy.url(stage.origin.url("/film.mp4")), "-f",
                "null", "-",
            ],
            environment: ReelcacheCommand.neutral)
        // There are four in a second at most, and a map is due every two seconds.
        try tab.wait(for: "reports > 12")
        #expect(try tab.text("asked") == "1")
        _ = try player.killNow()
        stage.expectNoComplaints()
    }

    /// A page of a hundred rows would otherwise make as many requests.
    @Test func nothingMoreIsRequestedOfFilesThatAreThereAsAWhole() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        try stage.signIn()
        try tab.paste(stage.origin.url("/film.mp4"), into: "#order-url")
        try tab.press("Enter")
        let isShown = "document.querySelector('#cache-list .strip')?.dataset.cached == '100'"
        try tab.wait(for: isShown)
        try tab.open("about:blank")
        try tab.open(stage.proxy.baseURL + "/")
        try tab.wait(for: isShown)
        let isAsked = "performance.getEntriesByType('resource').some(one => one.name.includes('/resources/coverage'))"
        #expect(try tab.text("String(\(isAsked))") == "false")
        stage.expectNoComplaints()
    }

    @Test func completeFileIsSaved() throws {
        let stage = try DashboardStage(), tab = stage.tab, film = Media(seed: 5, size: 100_000)
        let place = try TemporaryDirectory()
        stage.origin.serve("/film.mp4?token=annasecret", film, contentType: "video/mp4")
        _ = try stage.proxy.get(stage.origin.url("/film.mp4?token=annasecret"))
        try stage.signIn()
        try stage.browser.saveDownloads(in: place.path)
        try tab.click("#cache-list [aria-label='Save film.mp4 as a file'][aria-disabled=false]")
        try stage.browser.waitForDownload()
        #expect(FileManager.default.contents(atPath: place.file("film.mp4")).map(Array.init) == film.allBytes)
        stage.expectNoComplaints()
    }

    /// The browser would save the refusal, under the name of the film.
    @Test func fileThatIsNotPlayedWithoutItsOriginIsNotSavedAndThePageSaysHow() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        stage.origin.script("/film.mp4") { $0.headers = [("Cache-Control", "no-cache, must-revalidate")] }
        _ = try stage.proxy.get(stage.origin.url("/film.mp4"))
        stage.origin.stop()
        try stage.waitUntilLive()
        try tab.click("#cache-list [aria-label='Save film.mp4 as a file'][aria-disabled=false]")
        try tab.wait(for: "document.querySelector('#news-text').textContent.includes('reelcache export')")
        #expect(try tab.text("document.querySelector('#news').className").contains("error"))
    }

    /// Addresses with many hidden parts, such as a page can embed that somebody visits, take no time to tell apart.
    @Test func addressesWithManyHiddenPartsDoNotFreezeThePage() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.waitUntilLive()
        try tab.evaluate(
            """
            globalThis.whole = async (url, ...known) => {
                const { whole } = await import("/api/dashboard/api.js");
                return whole(url, async () => known).catch(error => error.status);
            }
            """)
        let hidden = "https://a.example/" + String(repeating: "***a", count: 40)
        let other = "https://a.example/" + String(repeating: "a", count: 200) + "!"
        #expect(try tab.text("whole(\(literal(hidden)), \(literal(other)))") == "404")
        for (shown, known, found) in [
            ("https://a/***b***c", ["https://a/1b2c", "https://a/1c2b"], "https://a/1b2c"),
            ("https://a/***", ["https://a/", "https://b/1"], "https://a/"), ("https://a/x***x", ["https://a/x"], "404"),
            ("https://a/***a***a", ["https://a/a", "https://a/1aa"], "https://a/1aa"),
            ("https://a/******b", ["https://a/*b"], "https://a/*b"),
            ("https://a/***b", ["https://a/1b", "https://a/2b"], "409"), ("https://a/b", [], "https://a/b"),
        ] {
            let list = known.map { ", " + literal($0) }.joined()
            #expect(try tab.text("whole(\(literal(shown))\(list))") == found, "\(shown)")
        }
        stage.expectNoComplaints()
    }

    /// The live state shows one address for both.
    @Test func marksAreThoseOfTheFileThatIsPlayed() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for (viewer, size) in [("anna", 1_000_000), ("bert", 2_000_000)] {
            stage.origin.serve("/film.mp4?token=\(viewer)secret", Media(seed: 5, size: Int64(size)))
        }
        try stage.signIn()
        try tab.paste(stage.origin.url("/film.mp4?token=annasecret"), into: "#order-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#cache-list [data-cached=\"100\"]')")
        stage.origin.script("/film.mp4?token=bertsecret") { $0.stallAfter = 1_000_000 }
        let player = try RawClient(port: stage.proxy.port)
        try player.send(player.request(ProxyProcess.target(stage.origin.url("/film.mp4?token=bertsecret"))))
        _ = try player.readHead()
        _ = try player.readBody(exactly: 1000)
        let row = "[...document.querySelectorAll('#cache-list tr')]"
        func marks(_ text: String) -> String {
            "\(row).find(row => row.textContent.includes('\(text)')).querySelector('.readers').getAttribute('d')"
        }
        try tab.wait(for: "\(row).length == 2 && \(marks("%"))")
        // Both are drawn with each report.
        #expect(try tab.text("\(row).filter(row => row.querySelector('.readers')?.getAttribute('d')).length") == "1")
        stage.expectNoComplaints()
    }

    private static let asked =
        "performance.getEntriesByType('resource').map(one => new URL(one.name).searchParams.get('id')).filter(Boolean)"

    /// Those beyond what a report lists are not gone; one that is gone is asked for alone.
    @Test func manyOrdersAreNotAskedForOneByOne() throws {
        let stage = try DashboardStage(["--offline"]), tab = stage.tab
        try stage.signIn()
        let urls = (1...300).map { "https://a.example/\($0).mp3" }.joined(separator: " ")
        try tab.evaluate("document.querySelector('#order-url').value = \(literal(urls))")
        try tab.click("#order .primary")
        try tab.wait(for: "document.querySelector('#news-text').textContent == 'Ordered: 300 downloads.'")
        try tab.wait(for: "document.querySelector('#downloads-note').textContent.includes('200 more are not shown.')")
        let number = try tab.text("document.querySelector('#downloads-list .card').dataset.id")
        try tab.click("#downloads-list .card button:last-child")
        try tab.click("#confirm-yes")
        try tab.wait(for: "\(Self.asked).includes('\(number)')")
        // A report that was on its way when they were ordered lists none of them: then they are asked for once, in two
        // parts, of which the second may still be to come.
        let others = "\(Self.asked).filter(one => one != '\(number)')"
        let parts = try tab.text("\(others).map(one => one.split(',').length).join()")
        #expect(["", "200", "200,100"].contains(parts), "\(parts)")
        stage.expectNoComplaints()
    }

    @Test func endsOfManyDownloadsAreAskedForInParts() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.waitUntilLive()
        try tab.evaluate(
            """
            import("/api/dashboard/downloads.js").then(({ show }) => {
                const one = number => ({ id: number, url: "https://a.example/1.mp3", state: "waiting", bytes: 0 });
                show({ downloads: Array.from({ length: 450 }, (_, place) => one(1000 + place)) });
                show({ downloads: [] });
            })
            """)
        try tab.wait(for: "\(Self.asked).length == 3")
        #expect(try tab.text("\(Self.asked).map(one => one.split(',').length).join(' ')") == "200 200 50")
        stage.expectNoComplaints()
    }

    /// A slow proxy is not asked again before it has answered, but once more for who signs in meanwhile.
    @Test func listsAreAskedForOneAtATime() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.waitUntilLive()
        try tab.wait(for: "document.querySelector('#cache-count').textContent != ''")
        try tab.evaluate(
            """
            globalThis.lists = 0; globalThis.answer = null;
            const ask = fetch;
            globalThis.fetch = async (url, options) => {
                if (!String(url).includes("/resources?brief")) return ask(url, options);
                lists++;
                if (lists === 1) await new Promise(done => answer = done);
                return ask(url, options);
            };
            for (let turn = 0; turn < 5; turn++) document.dispatchEvent(new Event("visibilitychange"));
            """)
        try tab.wait(for: "answer")
        #expect(try tab.text("lists") == "1")
        try tab.click("#sign")
        try tab.paste(stage.token, into: "#token")
        try tab.press("Enter")
        try tab.wait(for: "document.body.classList.contains('signed-in')")
        #expect(try tab.text("lists") == "1")
        try tab.evaluate("answer()")
        try tab.wait(for: "lists >= 2")
        stage.expectNoComplaints()
    }

    @Test func fileThatIsNotCompleteIsNotSavedAndThePageSaysWhy() throws {
        let stage = try DashboardStage(), tab = stage.tab
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1_000_000))
        _ = try stage.proxy.get(stage.origin.url("/film.mp4"), range: 0..<1000)
        try stage.waitUntilLive()
        try tab.click("#cache-list [aria-label='Save film.mp4 as a file'][aria-disabled=true]")
        try tab.wait(for: "document.querySelector('#news-text').textContent == 'Only a part is cached.'")
        stage.expectNoComplaints()
    }
}
