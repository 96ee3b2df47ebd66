import Foundation
import TestSupport
import Testing

/// A proxy, an origin, and a browser that shows the dashboard.
final class DashboardStage {
    let origin: ScriptedOrigin
    let cache: TemporaryDirectory
    private(set) var proxy: ProxyProcess
    let browser: Chromium
    let tab: ChromiumTab
    private let arguments: [String]

    /// - Parameter arguments: further ones for `serve`; `ORIGIN` stands for the origin's URL.
    init(_ arguments: [String] = []) throws {
        origin = try ScriptedOrigin()
        cache = try TemporaryDirectory()
        let url = origin.url("")
        self.arguments = arguments.map { $0.replacing("ORIGIN", with: url) }
        proxy = try ProxyProcess(cacheDirectory: cache.path, arguments: self.arguments)
        browser = try Chromium()
        tab = try browser.openTab(proxy.baseURL + "/")
    }

    /// A dashboard with something in each of its lists, and everything unfolded.
    static func full() throws -> DashboardStage {
        let stage = try DashboardStage(), tab = stage.tab
        // A name that can only be broken anywhere.
        let name = String(repeating: "nosferatu", count: 13) + ".mp4"
        let film = "/" + name, other = "/other/" + name
        stage.origin.serve(film, Media(seed: 5, size: 3_000_000))
        stage.origin.script(film) { $0.stallAfter = 1_000_000 }
        stage.origin.serve(other, Media(seed: 6, size: 10_000))
        let feed = "<rss version=\"2.0\"><channel><title>\(name)</title></channel></rss>"
        stage.origin.serve("/feed.xml", bytes: Array(feed.utf8), contentType: "application/rss+xml")
        // Before the page asks what is cached: it asks again ten seconds later.
        _ = try stage.proxy.get(stage.origin.url(other))
        try stage.signIn()
        try tab.wait(for: "document.querySelector('#plays .card')")
        for (url, field, shown) in [
            ("/missing/" + name, "order", "#failed-list .card"), ("/feed.xml", "subscribe", "#feeds-list .card"),
            (film, "order", "#downloads-list [data-state=downloading]"),
        ] {
            try tab.paste(stage.origin.url(url), into: "#\(field)-url")
            try tab.press("Enter")
            try tab.wait(for: "document.querySelector('\(shown)')")
        }
        try tab.wait(for: "document.querySelector('#cache-list tr')")
        try stage.showHistory()
        try tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        try tab.paste(stage.origin.url("/film.mp4"), into: "#try-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#space-next li')")
        try tab.wait(for: "document.querySelector('#try-address').checkVisibility()")
        return stage
    }

    /// Orders a film without being signed in, for which the page then waits.
    func orderUnsigned() throws {
        origin.serve("/film.mp4", Media(seed: 5, size: 1000))
        try waitUntilLive()
        try tab.paste(origin.url("/film.mp4"), into: "#order-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#sign-in').open")
    }

    /// Scrolls to what is over time, which the page requests by that.
    func showHistory() throws {
        try tab.evaluate("document.querySelector('#history').scrollIntoView()")
        try tab.wait(for: "document.querySelector('.plot')")
    }

    /// Starts the proxy again, at the same address.
    func restartProxy() throws {
        proxy = try ProxyProcess(
            cacheDirectory: cache.path, arguments: arguments + ["--listen", "127.0.0.1:\(proxy.port)"])
    }

    var token: String {
        get throws {
            try String(contentsOfFile: cache.file("control-token"), encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }

    /// The link that `reelcache dashboard` prints.
    func link() throws -> String {
        let outcome = try ReelcacheCommand.run(["dashboard", "--print", "--cache-dir", cache.path])
        try #require(outcome.exit == .exited(0), "\(outcome)")
        return outcome.stdout.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Opens the link, and waits until the page is signed in.
    func signIn() throws {
        try tab.open(link())
        try tab.wait(for: "document.body.classList.contains('signed-in')")
        try waitUntilLive()
    }

    func waitUntilLive() throws {
        try tab.wait(
            for: "document.querySelector('#state').textContent == 'Live' && !document.querySelector('.waiting')")
    }

    /// What the proxy answers to somebody with the token.
    func ask(_ path: String) throws -> [String: Any] {
        let response = try RawClient.get(
            port: proxy.port, path: "/api/v1/" + path, headers: [("Authorization", "Bearer \(token)")])
        return try #require(JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
    }

    /// The page did nothing that its policy forbids, and no script of it failed.
    func expectNoComplaints(sourceLocation: SourceLocation = #_sourceLocation) {
        // Complaints are read along with answers.
        _ = try? tab.evaluate("1")
        #expect(browser.complaints.isEmpty, sourceLocation: sourceLocation)
    }
}

/// A text as a literal of JavaScript.
func literal(_ text: String) -> String {
    let data = try? JSONSerialization.data(withJSONObject: text, options: .fragmentsAllowed)
    return String(decoding: data ?? Data(), as: UTF8.self)
}

/// Functions of JavaScript about colours as styles have them: `alpha(color)`, `ground(element)`, which is what is behind a text,
/// and `contrast(color, color)` (WCAG 2.2, 1.4.3).
let colorFunctions = #"""
    const numbers = color => color.match(/[\d.]+/g).map(Number), alpha = color => numbers(color)[3] ?? 1;
    const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const light = color => numbers(color).slice(0, 3)
        .reduce((sum, value, index) => sum + [0.2126, 0.7152, 0.0722][index] * linear(value), 0);
    const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const line = element => element ? [element, ...line(element.parentElement)] : [];
    const ground = element => line(element).map(one => getComputedStyle(one).backgroundColor)
        .find(color => alpha(color) == 1) ?? "rgb(255, 255, 255)";
    const inkOf = element => getComputedStyle(element)[element instanceof SVGElement ? "fill" : "color"];
    const hasText = element => [...element.childNodes].some(node => node.nodeType == 3 && node.textContent.trim());
    """#
