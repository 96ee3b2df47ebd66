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
