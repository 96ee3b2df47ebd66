import Foundation
import TestSupport
import Testing

/// What a person sees and does on the dashboard, in a real browser.
@Suite(.serialized, Player.areExpected(.ffmpeg, .chromium))
struct DashboardTests {
    private static func strip(_ list: String) -> String {
        "Number(document.querySelector('#\(list) .strip')?.dataset.cached ?? -1)"
    }

    @Test func stripOfAFilmGrowsWhileItIsPlayed() throws {
        let stage = try DashboardStage(), film = Film.mkv
        let bytes = try film.bytes()
        stage.origin.serve(film.path, bytes: bytes, contentType: film.contentType)
        stage.origin.script(film.path) { $0.stallAfter = Int64(bytes.count / 2) }
        try stage.waitUntilLive()
        let player = try ChildProcess(
            Player.ffmpeg.location(),
            ["-nostdin", "-v", "error", "-i", stage.proxy.url(stage.origin.url(film.path)), "-f", "null", "-"],
            environment: ReelcacheCommand.neutral)
        try stage.tab.wait(for: "\(Self.strip("plays")) > 10 && \(Self.strip("plays")) < 90")
        #expect(try stage.tab.text("document.querySelector('#plays h4').textContent") == "film.mkv")
        #expect(try stage.tab.text("document.querySelector('#plays .facts').textContent").contains("FFmpeg"))
        let card = "document.querySelector('#plays .card').textContent"
        #expect(try stage.tab.text(card).contains("nothing of it was cached"))
        #expect(try stage.tab.text("document.querySelector('#sum-playing').textContent") == "1")
        let mark = "document.querySelector('#plays .readers').getAttribute('d')"
        try stage.tab.wait(for: mark)
        let place = try stage.tab.text(mark)
        stage.origin.releaseAll()
        try stage.tab.wait(for: "\(mark) != '\(place)'")
        try stage.tab.wait(for: "\(Self.strip("plays")) == 100")
        #expect(try player.waitForExit() == .exited(0))
        try stage.tab.wait(for: "!(\(card)).includes('nothing of it was cached')")
        stage.expectNoComplaints()
    }

    /// With keys alone: each control is reached by Tab, and does its work by Enter or Space.
    @Test func downloadIsOrderedByPastingThenPausedResumedAndRemoved() throws {
        let stage = try DashboardStage(), film = Media(seed: 5, size: 4_000_000)
        stage.origin.serve("/film.mp4", film)
        stage.origin.script("/film.mp4") { $0.stallAfter = 1_000_000 }
        try stage.signIn()
        let tab = stage.tab
        try tab.paste(stage.origin.url("/film.mp4"), into: "#order-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#downloads-list .badge')?.textContent == 'downloading'")
        try Self.tab(to: "Pause film.mp4", tab)
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#downloads-list .badge')?.textContent == 'paused'")
        #expect((try stage.ask("downloads")["downloads"] as? [[String: Any]])?.first?["state"] as? String == "paused")
        stage.origin.releaseAll()
        try Self.tab(to: "Resume film.mp4", tab)
        try tab.press(" ")
        try tab.wait(for: "document.querySelector('#downloads-list').children.length == 0")
        try tab.wait(for: "\(Self.strip("cache-list")) == 100")
        try Self.tab(to: "Remove film.mp4", tab)
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#confirm').open")
        // The disk has blocks of 4 kB.
        let question = try tab.text("document.querySelector('#confirm-text').textContent")
        #expect(question.hasPrefix("Remove film.mp4? That frees 4.0"))
        try Self.tab(to: "Remove it", tab)
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#news-text').textContent.startsWith('Removed film.mp4: 4.0')")
        #expect(try stage.ask("resources")["total"] as? Int == 0)
        stage.expectNoComplaints()
    }

    /// Presses Tab until the element of this name has the focus, which can be seen.
    private static func tab(to name: String, _ tab: ChromiumTab) throws {
        let focused = "document.activeElement"
        for _ in 0..<200 {
            let found = try tab.text("\(focused).getAttribute('aria-label') ?? \(focused).textContent")
            guard found == name else {
                try tab.press("Tab")
                continue
            }
            #expect(try tab.text("getComputedStyle(\(focused)).outlineStyle") == "solid", "\(name)")
            return
        }
        Issue.record("Tab does not lead to \(name)")
    }

    @Test func connectionIsLostAndComesBackByItself() throws {
        let stage = try DashboardStage()
        try stage.signIn()
        _ = try stage.proxy.process.killNow()
        try stage.tab.wait(for: "document.body.classList.contains('lost')")
        #expect(try stage.tab.text("document.querySelector('#state').textContent").contains("Trying again"))
        let verdict = "document.querySelector('#verdict').textContent"
        #expect(try stage.tab.text(verdict).contains("What is below may be out of date."))
        // The first attempt to connect again says more.
        try stage.tab.wait(for: "\(verdict).includes('start it with reelcache serve')")
        // Wherever somebody looks.
        try stage.tab.evaluate("scrollTo(0, document.body.scrollHeight)")
        try stage.tab.wait(for: "document.querySelector('#verdict').getBoundingClientRect().top == 0")
        try stage.restartProxy()
        try stage.waitUntilLive()
        // Sessions end with their proxy.
        try stage.tab.wait(for: "!document.body.classList.contains('signed-in')")
        stage.expectNoComplaints()
    }

    @Test func firstLineJudges() throws {
        let stage = try DashboardStage(), tab = stage.tab
        let verdict = "document.querySelector('#verdict').innerText"
        try stage.signIn()
        #expect(try tab.text(verdict) == "All is well.")
        #expect(try tab.text("document.querySelector('#sum-disk-more').textContent").contains(" free"))
        stage.origin.script("/film.mp4") { $0.status = 503 }
        for _ in 1...3 { _ = try stage.proxy.get(stage.origin.url("/film.mp4")) }
        try tab.wait(for: "\(verdict).startsWith('3 responses to players failed within five minutes: ')")
        try tab.paste(stage.origin.url("/none.mp4"), into: "#order-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#failed-list .card')")
        // What changes slowly is requested once a minute.
        try tab.open(stage.proxy.baseURL + "/")
        try tab.wait(for: "\(verdict).startsWith('1 download failed within a day. ')")
        stage.expectNoComplaints()
    }

    /// While the page appears, and when something begins to play: what somebody is about to click stays where it is
    /// (https://web.dev/articles/cls).
    @Test func nothingMovesUnderTheHand() throws {
        let stage = try DashboardStage(), tab = stage.tab
        var players: [RawClient] = []
        func play(_ number: Int) throws {
            stage.origin.serve("/\(number).mp4", Media(seed: UInt64(number), size: 3_000_000))
            stage.origin.script("/\(number).mp4") { $0.stallAfter = 1_000_000 }
            let player = try RawClient(port: stage.proxy.port)
            let target = ProxyProcess.target(stage.origin.url("/\(number).mp4"))
            try player.send("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(stage.proxy.port)\r\n\r\n")
            players.append(player)
            try tab.wait(for: "document.querySelectorAll('#plays .strip').length == \(number)")
        }
        try tab.resize(width: 1200, height: 1000)
        for number in 1...3 { try play(number) }
        try tab.open(stage.proxy.baseURL + "/")
        try tab.wait(for: "document.querySelectorAll('#plays .strip').length == 3")
        try tab.evaluate(
            """
            window.shift = 0;
            window.note = list => list.forEach(one => window.shift += one.value);
            window.observer = new PerformanceObserver(list => note(list.getEntries()));
            observer.observe({ type: "layout-shift", buffered: true });
            """)
        try play(4)
        try tab.wait(
            for: "[...document.querySelectorAll('#plays .facts')].some(one => one.textContent.includes(' fetched'))")
        let drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        let found = try tab.evaluate("\(drawn).then(() => (note(observer.takeRecords()), window.shift))")
        let shift = try #require(found as? Double)
        #expect(shift <= 0.05)
        stage.expectNoComplaints()
    }

    @Test func withoutTheTokenThePageAsksForItAndChangesNothing() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.orderUnsigned()
        try tab.paste(String(repeating: "0", count: 64), into: "#token")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#sign-in-error').textContent.startsWith('this is not the token')")
        #expect(stage.origin.requestCount("/film.mp4") == 0)
        try tab.paste(stage.token, into: "#token")
        try tab.press("Enter")
        // What was asked for happens now.
        try tab.wait(for: "\(Self.strip("cache-list")) == 100")
        #expect(try tab.text("document.cookie") == "")
        stage.expectNoComplaints()
    }

    @Test func linkIsWorthlessOnceItWasUsed() throws {
        let stage = try DashboardStage()
        let link = try stage.link()
        try stage.waitUntilLive()
        // The page is not loaded again for what follows the #.
        try stage.tab.open(link)
        try stage.tab.wait(for: "document.body.classList.contains('signed-in')")
        #expect(try stage.tab.text("location.hash") == "")
        let other = try Chromium().openTab(link)
        try other.wait(for: "document.querySelector('#news-text').textContent.startsWith('this link was used')")
        #expect(try other.text("String(document.body.classList.contains('signed-in'))") == "false")
        stage.expectNoComplaints()
    }

    @Test func titlesAreTextWhateverIsInThem() throws {
        let stage = try DashboardStage()
        let path = "/%3Cimg%20src=x%20onerror=alert(1)%3E%E2%80%AE%00%1B%5B31mlive.mp4"
        stage.origin.serve(path, Media(seed: 5, size: 1000))
        _ = try stage.proxy.get(stage.origin.url(path))
        try stage.waitUntilLive()
        try stage.tab.wait(for: "document.querySelector('#cache-list bdi')")
        let title = try stage.tab.text("document.querySelector('#cache-list bdi').textContent")
        #expect(title.hasPrefix("<img src=x onerror=alert(1)>") && title.hasSuffix("live.mp4"))
        #expect(title.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202E })
        #expect(try stage.tab.text("document.querySelectorAll('img').length") == "0")
        stage.expectNoComplaints()
    }

    @Test func listIsShownAPageAtATime() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try play(100..<310, on: stage)
        try tab.open(stage.proxy.baseURL + "/")
        try tab.wait(for: "document.querySelector('#cache-count').textContent == '1 to 100 of 210'")
        #expect(try tab.text("document.querySelector('#cache-list').children.length") == "100")
        // A line each.
        let tallest = "Math.max(...[...document.querySelectorAll('#cache-list tr')].map(row => row.offsetHeight))"
        #expect(try Double(tab.text(tallest)) ?? 99 < 45)
        try tab.click("#cache-later")
        try tab.click("#cache-later")
        try tab.wait(for: "document.querySelector('#cache-count').textContent == '201 to 210 of 210'")
        try tab.paste("film-133", into: "#cache-filter")
        try tab.wait(for: "document.querySelector('#cache-count').textContent == '1 to 1 of 1'")
        stage.expectNoComplaints()
    }

    private func play(_ numbers: Range<Int>, on stage: DashboardStage) throws {
        for number in numbers {
            stage.origin.serve("/film-\(number).mp4", Media(seed: UInt64(number), size: 100 + Int64(number)))
            _ = try stage.proxy.get(stage.origin.url("/film-\(number).mp4"))
        }
    }

    @Test func headersSortTheList() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try play(1..<4, on: stage)
        _ = try stage.proxy.get(stage.origin.url("/film-2.mp4"))
        try tab.open(stage.proxy.baseURL + "/")
        let names = "[...document.querySelectorAll('#cache-list th > bdi')].map(one => one.textContent[5]).join('')"
        for (column, order, direction) in [
            ("size", "321", "descending"), ("name", "123", "ascending"), ("hits", "2", "descending"),
        ] {
            try tab.click("#cache-table [data-sort=\(column)]")
            try tab.wait(for: "(\(names)).startsWith('\(order)')")
            let sorted = "[...document.querySelectorAll('[aria-sort]')].map(one => one.ariaSort).join()"
            #expect(try tab.text(sorted) == direction)
        }
        stage.expectNoComplaints()
    }

    @Test func whatIsSelectedIsPinnedAndRemovedTogether() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try play(1..<6, on: stage)
        try stage.signIn()
        try tab.wait(for: "document.querySelector('#cache-list').children.length == 5")
        #expect(try tab.text("String(document.querySelector('#cache-remove').ariaDisabled)") == "true")
        for number in 1...2 { try tab.click("#cache-list [aria-label='Select film-\(number).mp4']") }
        try tab.wait(for: "document.querySelector('#cache-chosen').textContent == '2 selected, 203 bytes'")
        #expect(try tab.text("String(document.querySelector('#cache-all').indeterminate)") == "true")
        try tab.click("#cache-pin")
        try tab.wait(for: "document.querySelectorAll(`#cache-list [aria-label^='Unpin']`).length == 2")
        try tab.wait(for: "document.querySelector('#cache-chosen').textContent == 'Nothing is selected.'")
        try tab.click("#cache-all")
        try tab.wait(for: "document.querySelector('#cache-chosen').textContent == '5 selected, 515 bytes'")
        try tab.click("#cache-list [aria-label='Select film-5.mp4']")
        try tab.click("#cache-remove")
        try tab.wait(for: "document.querySelector('#confirm').open")
        let question = try tab.text("document.querySelector('#confirm-text').textContent")
        #expect(question.contains(" and 1 more? That frees about 410 bytes; 2 of them pinned."), "\(question)")
        try tab.click("#confirm-yes")
        try tab.wait(for: "document.querySelector('#cache-list').children.length == 1")
        try tab.wait(for: "document.querySelector('#news-text').textContent == 'Removed 4 of 4 resources.'")
        #expect(try stage.ask("resources")["total"] as? Int == 1)
        stage.expectNoComplaints()
    }

    @Test func addressIsShownAndPlayed() throws {
        let stage = try DashboardStage(), tab = stage.tab, film = Film.mp4MoovFront
        stage.origin.serve(film.path, bytes: try film.bytes(), contentType: film.contentType)
        try stage.waitUntilLive()
        try tab.paste("ftp://example.org/film.mp4", into: "#try-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#try-error').textContent.length > 0")
        try tab.paste(stage.origin.url(film.path), into: "#try-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#try-address').checkVisibility()")
        #expect(
            try tab.text("document.querySelector('#try-address').textContent")
                == stage.proxy.url(stage.origin.url(film.path)))
        try stage.browser.ask(
            "Browser.grantPermissions", ["permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]])
        try tab.ask("Page.bringToFront")
        try tab.click("#try-copy")
        try tab.wait(for: "document.querySelector('#try-note').textContent == 'Copied.'")
        #expect(try tab.text("navigator.clipboard.readText()") == stage.proxy.url(stage.origin.url(film.path)))
        // A phone does not reach the loopback.
        #expect(try tab.text("document.querySelector('#try-qr').textContent").contains("set listen to"))
        try tab.click("#try-play")
        try tab.wait(for: "document.querySelector('#try-player').readyState >= 3")
        stage.expectNoComplaints()
    }

    /// Lists show `***`; what is done is done to the URL as it is.
    @Test func actionsReachURLsWhoseSecretsAreHidden() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for (viewer, size) in [("anna", 1000), ("bert", 2000)] {
            stage.origin.serve("/\(viewer).mp4?token=\(viewer)secret", Media(seed: 5, size: Int64(size)))
            _ = try stage.proxy.get(stage.origin.url("/\(viewer).mp4?token=\(viewer)secret"))
        }
        try stage.signIn()
        try tab.wait(for: "document.querySelector('#cache-count').textContent == '1 to 2 of 2'")
        #expect(!(try tab.text("document.documentElement.outerHTML")).contains("secret"))
        try tab.click("#cache-list [aria-label='Pin bert.mp4']")
        try tab.wait(for: "document.querySelector(`#cache-list [aria-label='Unpin bert.mp4']`)")
        let resources = try #require(try stage.ask("resources?secrets=true")["resources"] as? [[String: Any]])
        let pinned = resources.filter { $0["is_pinned"] as? Bool == true }.compactMap { $0["url"] as? String }
        #expect(pinned == [stage.origin.url("/bert.mp4?token=bertsecret")])
        stage.expectNoComplaints()
    }

    /// Two links to one film show the same text: each has a row, and what is done in a row is done to its own.
    @Test func resourcesThatDifferInSecretsAloneAreToldApart() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for (viewer, size) in [("anna", 1000), ("bert", 2000)] {
            let path = "/film.mp4?token=\(viewer)secret"
            stage.origin.serve(path, Media(seed: 5, size: Int64(size)))
            _ = try stage.proxy.get(stage.origin.url(path))
        }
        let rows = "[...document.querySelectorAll('#cache-list tr')]"
        func row(of size: String) -> String { "\(rows).find(row => row.textContent.includes('\(size)'))" }
        try stage.waitUntilLive()
        try tab.wait(for: "\(row(of: "1.00 kB")) && \(row(of: "2.00 kB")) && \(rows).length == 2")
        try stage.signIn()
        try tab.wait(for: "\(rows).length == 2 && \(rows).every(row => row.querySelector('[data-cached=\"100\"]'))")
        for size in ["2.00 kB", "1.00 kB"] {
            try tab.evaluate("\(row(of: size)).querySelector(`[aria-label='Pin film.mp4']`).click()")
            try tab.wait(for: "\(row(of: size)).querySelector(`[aria-label='Unpin film.mp4']`)")
            let resources = try #require(try stage.ask("resources?secrets=true")["resources"] as? [[String: Any]])
            let pinned = resources.filter { $0["is_pinned"] as? Bool == true }.compactMap { $0["length"] as? Int }
            #expect(Set(pinned) == (size == "2.00 kB" ? [2000] : [1000, 2000]))
        }
        try tab.evaluate("\(row(of: "1.00 kB")).querySelector(`[aria-label='Remove film.mp4']`).click()")
        try tab.click("#confirm-yes")
        try tab.wait(for: "\(rows).length == 1 && \(row(of: "2.00 kB"))")
        #expect(!(try tab.text("document.documentElement.outerHTML")).contains("secret"))
        stage.expectNoComplaints()
    }

    @Test func feedsThatDifferInSecretsAloneAreToldApart() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.signIn()
        for listener in ["anna", "bert"] {
            let path = "/feed.xml?token=\(listener)secret"
            let feed = "<rss version=\"2.0\"><channel><title>\(listener)</title></channel></rss>"
            stage.origin.serve(path, bytes: Array(feed.utf8), contentType: "application/rss+xml")
            try tab.paste(stage.origin.url(path), into: "#subscribe-url")
            try tab.press("Enter")
            try tab.wait(for: "document.querySelector('#news-text').textContent == 'Subscribed to \(listener).'")
        }
        try tab.wait(for: "document.querySelector('#feeds-list').children.length == 2")
        try tab.click("#feeds-list [aria-label='Unsubscribe from bert']")
        try tab.click("#confirm-yes")
        try tab.wait(for: "document.querySelector('#feeds-list').children.length == 1")
        let feeds = try #require(try stage.ask("feeds")["feeds"] as? [[String: Any]])
        #expect(feeds.compactMap { $0["title"] as? String } == ["anna"])
        stage.expectNoComplaints()
    }

    @Test func mapIsZoomedAndMoved() throws {
        let stage = try DashboardStage(), tab = stage.tab, film = Media(seed: 5, size: 10_000_000)
        stage.origin.serve("/film.mp4", film)
        _ = try stage.proxy.get(stage.origin.url("/film.mp4"), range: 0..<5_000_000)
        try tab.open(stage.proxy.baseURL + "/")
        try tab.click("#cache-list [aria-label='Map of film.mp4']")
        try tab.wait(for: "document.querySelector('#map-text').textContent.startsWith('0 bytes to 10.0 MB of 10.0 MB')")
        try tab.press("+")
        try tab.wait(for: "document.querySelector('#map-text').textContent.startsWith('2.50 MB to 7.50 MB')")
        try tab.press("ArrowRight")
        try tab.wait(for: "document.querySelector('#map-text').textContent.startsWith('3.75 MB to 8.75 MB')")
        try tab.wait(for: "Math.abs(document.querySelector('#map .strip').dataset.cached - 25) < 3")
        try tab.press("Home")
        try tab.wait(for: "document.querySelector('#map-text').textContent.startsWith('0 bytes to 10.0 MB')")
        try tab.press("Escape")
        try tab.wait(for: "!document.querySelector('#map').open")
        stage.expectNoComplaints()
    }

    @Test func feedIsSubscribedToCheckedAndRemoved() throws {
        let stage = try DashboardStage(), tab = stage.tab
        let feed = """
            <rss version="2.0"><channel><title>Silent Reels</title><item><title>One</title>\
            <enclosure url="\(stage.origin.url("/one.mp3"))" type="audio/mpeg" length="1000"/><guid>1</guid></item></channel></rss>
            """
        stage.origin.serve("/feed.xml", bytes: Array(feed.utf8), contentType: "application/rss+xml")
        stage.origin.serve("/one.mp3", Media(seed: 5, size: 1000), contentType: "audio/mpeg")
        try stage.signIn()
        try tab.paste("https://", into: "#subscribe-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#subscribe-error').textContent.length > 0")
        try tab.paste(stage.origin.url("/feed.xml"), into: "#subscribe-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#feeds-list h3')?.textContent == 'Silent Reels'")
        try tab.wait(for: "document.querySelector('#feeds-list .facts').textContent.includes('1 episode')")
        try tab.click("#feeds-list button")
        try tab.wait(for: "document.querySelector('#news-text').textContent == 'Silent Reels: 0 new episodes.'")
        try tab.click("#feeds-list button + button")
        try tab.wait(for: "document.querySelector('#confirm').open")
        try tab.click("#confirm-yes")
        try tab.wait(for: "document.querySelector('#feeds-list').children.length == 0")
        stage.expectNoComplaints()
    }

    @Test func droppedURLIsTaken() throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        try stage.tab.evaluate(
            """
            const data = new DataTransfer();
            data.setData("text/uri-list", "# a comment\\r\\nhttps://example.org/film.mp4\\r\\n");
            document.querySelector("#order").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}))
            """)
        #expect(try stage.tab.text("document.querySelector('#order-url').value") == "https://example.org/film.mp4")
        stage.expectNoComplaints()
    }

    @Test func beyondThisMachineNothingIsShownWithoutTheToken() throws {
        let stage = try DashboardStage(["--listen", "0.0.0.0:0"]), tab = stage.tab
        try tab.wait(for: "document.body.classList.contains('locked')")
        #expect(try tab.text("document.querySelector('#state').textContent") == "Sign in to see what happens.")
        let sections = "[...document.querySelectorAll('section')].filter(one => one.checkVisibility()).length"
        #expect(try tab.text(sections) == "0")
        try tab.click("#sign")
        try tab.paste(stage.token, into: "#token")
        try tab.press("Enter")
        try stage.waitUntilLive()
        try tab.click("#sign")
        try tab.wait(for: "document.body.classList.contains('locked')")
        stage.expectNoComplaints()
    }
}
