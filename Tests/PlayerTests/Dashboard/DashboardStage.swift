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

    func waitUntilLive() throws { try tab.wait(for: "document.querySelector('#state').textContent == 'Live'") }

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
