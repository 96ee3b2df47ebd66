import Foundation
import TestSupport
import Testing

/// Pages that mean harm, in a browser that is signed in: none of them reads or changes anything.
@Suite(.serialized, Player.areExpected(.chromium))
struct DashboardSecurityTests {
    /// Tries everything that a page may send to the proxy, and tells what it could read: in `told` at once, and in
    /// `outcome` when everything has been answered.
    private static func attack(_ proxy: String, _ film: String) -> String {
        """
        const proxy = \(literal(proxy)), order = JSON.stringify({downloads: [{url: \(literal(film))}]});
        const fetched = (path, options) => fetch(proxy + path, options).then(
            async answer => answer.type == "opaque" ? "opaque" : answer.status >= 400 ? "refused" : "READ " + await answer.text(),
            () => "failed");
        const framed = () => new Promise(done => {
            const frame = document.createElement("iframe");
            frame.onload = () => { try { done(frame.contentDocument?.querySelector("#order") ? "READ the page" : "empty") } catch { done("closed") } };
            frame.src = proxy + "/"; document.documentElement.append(frame) });
        const streamed = () => new Promise(done => {
            const source = new EventSource(proxy + "/api/v1/now/events", {withCredentials: true});
            source.onmessage = source.onopen = () => done("READ events"); source.onerror = () => done("failed") });
        const pictured = () => new Promise(done => {
            const image = new Image(); image.onload = () => done("READ"); image.onerror = () => done("failed");
            image.src = proxy + "/api/v1/resources" });
        const posted = () => new Promise(done => {
            const [form, input, sink] = ["form", "input", "iframe"].map(name => document.createElement(name));
            form.method = "POST"; form.enctype = "text/plain"; form.action = proxy + "/api/v1/downloads";
            sink.name = form.target = "sink"; input.name = order.slice(0, -1) + ',"x":"'; input.value = '"}';
            form.append(input); document.documentElement.append(sink, form);
            // The empty page that it has at first was loaded by now.
            sink.onload = () => done("sent"); form.submit() });
        let key = "none"; try { key = localStorage.getItem("reelcache-dashboard-key") ?? "none" } catch { }
        const body = {method: "POST", credentials: "include", body: order};
        const results = {
            key: Promise.resolve(key == "none" ? "none" : "READ " + key), cookie: (() => { try { return Promise.resolve(document.cookie ? "READ cookie" : "none") } catch { return Promise.resolve("none") } })(),
            read: fetched("/api/v1/resources", {credentials: "include"}), stats: fetched("/stats", {credentials: "include"}),
            now: fetched("/api/v1/now", {credentials: "include"}), blind: fetched("/api/v1/downloads", {...body, mode: "no-cors"}),
            order: fetched("/api/v1/downloads", body), header: fetched("/api/v1/downloads", {...body, headers: {"Reelcache-Dashboard": key}}),
            link: fetched("/api/v1/dashboard/link", body), image: pictured(), frame: framed(),
            events: streamed(), form: posted() };
        globalThis.told = {};
        const answers = Object.entries(results).map(async ([name, result]) => [name, told[name] = await result]);
        Promise.all(answers).then(all => {
            globalThis.outcome = all.map(([name, result]) => name + ": " + result).join("\\n") });
        """
    }

    private func expectHarmless(_ stage: DashboardStage, at url: String) throws {
        let tab = try stage.browser.openTab(url)
        try tab.wait(for: "globalThis.outcome")
        let outcome = try tab.text("outcome")
        #expect(!outcome.contains("READ") && outcome.contains("order: "), "\(url)\n\(outcome)")
        #expect(outcome.contains("form: sent"), "\(outcome)")
        try expectNothingHappened(stage)
    }

    private func expectNothingHappened(_ stage: DashboardStage) throws {
        #expect(try stage.ask("downloads?state=all")["total"] as? Int == 0)
        #expect(stage.origin.requestCount("/film.mp4") == 0)
    }

    private func page(_ stage: DashboardStage) -> [UInt8] {
        let script = Self.attack(stage.proxy.baseURL, stage.origin.url("/film.mp4"))
        return Array("<!DOCTYPE html><title>Harm</title><body><script>\(script)</script>".utf8)
    }

    /// What harms nothing elsewhere does what it is for in the dashboard's own tab, and there alone.
    @Test func samePageInTheDashboardsTabReadsAndChanges() throws {
        let stage = try DashboardStage()
        stage.origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        try stage.signIn()
        try stage.tab.evaluate("{ \(Self.attack(stage.proxy.baseURL, stage.origin.url("/film.mp4"))) }")
        for name in ["key", "read", "stats", "now", "events", "header"] {
            try stage.tab.wait(for: "told.\(name)")
            #expect(try stage.tab.text("told.\(name)").hasPrefix("READ"), "\(name)")
        }
        // Without the key, the cookie is worthless here as well.
        for name in ["blind", "order", "link"] {
            try stage.tab.wait(for: "told.\(name)")
            #expect(try stage.tab.text("told.\(name)") == "refused", "\(name)")
        }
        #expect(try stage.ask("downloads?state=all")["total"] as? Int == 1)
    }

    @Test func pageOfAnotherSiteNeitherReadsNorChanges() throws {
        let stage = try DashboardStage()
        try stage.signIn()
        stage.origin.serve("/evil", bytes: page(stage), contentType: "text/html")
        try expectHarmless(stage, at: stage.origin.url("/evil"))
        try expectHarmless(stage, at: stage.origin.url("/evil", host: "localhost"))
        let cookies = stage.origin.requests("/evil").compactMap { $0.headers["Cookie"] }
        #expect(cookies.allSatisfy { !$0.contains("reelcache") }, "\(cookies)")
    }

    /// Another server of this machine gets the cookie, as cookies know no ports. It is worthless without the key.
    @Test func cookieThatAnotherServerGetsIsWorthless() throws {
        let stage = try DashboardStage()
        try stage.signIn()
        stage.origin.serve("/api/v1/evil", bytes: page(stage), contentType: "text/html")
        try expectHarmless(stage, at: stage.origin.url("/api/v1/evil"))
        let cookie = try #require(stage.origin.requests("/api/v1/evil").first?.headers["Cookie"])
        #expect(cookie.contains("reelcache-\(stage.proxy.port)="))
        func status(_ key: String?) throws -> Int {
            try RawClient.get(
                port: stage.proxy.port, path: "/api/v1/resources?secrets=true",
                headers: [("Cookie", cookie)] + (key.map { [("Reelcache-Dashboard", $0)] } ?? [])
            ).status
        }
        #expect(try status(nil) == 401)
        #expect(try status(String(repeating: "0", count: 64)) == 401)
        #expect(try status(stage.tab.text("localStorage.getItem('reelcache-dashboard-key')")) == 200)
    }

    /// Where scripts run below a mount, they are not the proxy's own.
    @Test func pageBelowAMountNeitherReadsNorChanges() throws {
        let stage = try DashboardStage(["--mount", "/tv/=ORIGIN/"])
        try stage.signIn()
        stage.origin.serve("/evil", bytes: page(stage), contentType: "text/html")
        try expectHarmless(stage, at: stage.proxy.baseURL + "/tv/evil")
    }

    /// In path form nothing runs at all, whatever type it has. A page that is shown requests a picture, after its script
    /// would have run.
    @Test func nothingRunsThatIsServedInPathForm() throws {
        let stage = try DashboardStage()
        try stage.signIn()
        let origin = stage.proxy.url(stage.origin.url(""))
        func script(_ name: String) -> String { "new Image().src = '\(origin)/ran-\(name)'" }
        func html(_ name: String) -> String {
            "<!DOCTYPE html><script>\(script(name))</script><img src='\(origin)/seen-\(name)'>"
        }
        func xhtml(_ name: String) -> String {
            """
            <html xmlns='http://www.w3.org/1999/xhtml'><body><script>\(script(name))</script><img src='\(origin)/seen-\(name)'/></body></html>
            """
        }
        let style = """
            <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><html>\
            <script>\(script("styled"))</script></html></xsl:template></xsl:stylesheet>
            """
        stage.origin.serve("/style.xsl", bytes: Array(style.utf8), contentType: "text/xsl")
        stage.origin.serve("/file.js", bytes: Array(script("file").utf8), contentType: "text/javascript")
        let svg = """
            <svg xmlns='http://www.w3.org/2000/svg'><script>\(script("svg"))</script><image href='\(origin)/seen-svg' width='9' height='9'/></svg>
            """
        let outside = """
            <!DOCTYPE html><script src='\(origin)/file.js'></script><body onload="\(script("handler"))">\
            <iframe srcdoc="<script>\(script("frame"))</script>"></iframe><img src='\(origin)/seen-outside'>
            """
        let pages: [(name: String, type: String?, text: String, isShown: Bool)] = [
            ("html", "text/html", html("html"), true), ("xhtml", "application/xhtml+xml", xhtml("xhtml"), true),
            ("svg", "image/svg+xml", svg, true), ("xml", "text/xml", xhtml("xml"), true),
            ("outside", "text/html", outside, true),
            ("styled", "application/xml", "<?xml-stylesheet type='text/xsl' href='\(origin)/style.xsl'?><a/>", false),
            ("none", nil, html("none"), false), ("two", "video/mp4, text/html", html("two"), false),
            (
                "parts", "multipart/x-mixed-replace; boundary=b",
                "--b\r\nContent-Type: text/html\r\n\r\n\(html("parts"))\r\n--b--", false
            ),
            ("pdf", "application/pdf", "%PDF-1.4\n\(html("pdf"))", false),
            ("film", "video/mp4", html("film"), false),
        ]
        for page in pages {
            stage.origin.serve("/\(page.name)", bytes: Array(page.text.utf8), contentType: page.type)
            _ = try stage.browser.openTab(stage.proxy.url(stage.origin.url("/\(page.name)")))
            try stage.origin.waitForRequests(page.isShown ? "/seen-\(page.name)" : "/\(page.name)", count: 1)
        }
        stage.origin.script("/missing") {
            ($0.status, $0.body, $0.contentType) = (404, Array(html("missing").utf8), "text/html")
        }
        _ = try stage.browser.openTab(stage.proxy.url(stage.origin.url("/missing")))
        try stage.origin.waitForRequests("/seen-missing", count: 1)
        let ran = stage.origin.snapshot.requests.filter { $0.path.hasPrefix("/ran-") }
        #expect(ran.isEmpty, "\(ran)")
    }

    /// A proxy that stands for one origin gives that origin's pages its own name, so there is no dashboard.
    @Test func proxyOfASingleOriginHasNoDashboard() throws {
        let stage = try DashboardStage(["--no-any-origin", "--mount", "/tv/=ORIGIN/"])
        stage.origin.serve("/evil", bytes: page(stage), contentType: "text/html")
        try stage.tab.wait(for: "document.body.innerText.includes('There is no dashboard')")
        let outcome = try ReelcacheCommand.run(["dashboard", "--print", "--cache-dir", stage.cache.path])
        #expect(outcome.exit == .exited(1) && outcome.stderr.contains("there is no dashboard"))
        try expectHarmless(stage, at: stage.proxy.baseURL + "/tv/evil")
    }
}
