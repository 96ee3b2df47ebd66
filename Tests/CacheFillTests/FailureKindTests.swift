import CacheFill
import CachePolicy
import Foundation
import Testing
import Upstream

/// What goes wrong has one name, in `Cache-Status`, `/stats` and the log.
@Suite struct FailureKindTests {
    @Test(arguments: [
        (FillError.upstream(.addressRefused(host: "nas", address: "10.0.0.2")), "address-refused"),
        (.upstream(.badURL("x")), "origin-unreachable"),
        (.upstream(.cannotResolve(host: "a")), "origin-unresolved"),
        (.upstream(.cannotConnect(host: "a", detail: "refused")), "origin-unreachable"),
        (.upstream(.outOfDescriptors(host: "a")), "proxy-busy"),
        (.upstream(.tls(host: "a", detail: "expired")), "origin-tls"),
        (.upstream(.timedOut(host: "a", phase: .queue)), "proxy-busy"),
        (.upstream(.timedOut(host: "a", phase: .names)), "proxy-busy"),
        (.upstream(.timedOut(host: "a", phase: .connect)), "origin-timeout"),
        (.upstream(.timedOut(host: "a", phase: .response)), "origin-timeout"),
        (.upstream(.timedOut(host: "a", phase: .body)), "origin-timeout"),
        (.upstream(.tooManyRedirects(limit: 5)), "origin-unusable"),
        (.upstream(.badRedirect(location: "ftp://a/")), "origin-unusable"),
        (.upstream(.broken(detail: "reset")), "origin-broken"),
        (.upstream(.protocolViolation(detail: "no head")), "origin-unusable"),
        (.upstream(.interrupted), "origin-broken"),
        (.upstream(.proxyFailed(proxy: "p:1", host: "a", detail: "refused")), "origin-unreachable"),
        (.upstream(.proxyDenied(proxy: "p:1")), "origin-unreachable"),
        (.originStatus(500), "origin-error"), (.changed, "origin-changed"), (.unusable("short"), "origin-unusable"),
        (.strayPage("a web page (text/html)"), "page"), (.notStored("no room"), "no-room"), (.offline, "offline"),
        (.busy(retryAfter: 5), "origin-busy"),
    ])
    func eachErrorHasItsName(error: FillError, name: String) { #expect(error.kind.rawValue == name) }

    /// A page is called alike where it is not stored and where it is not played.
    @Test func aPageIsCalledAsItsReason() { #expect(FailureKind.page.rawValue == Storing.Reason.page.rawValue) }

    @Test func theManualHasEachName() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("docs/dev/http.md"), encoding: .utf8)
        for kind in FailureKind.allCases { #expect(text.contains("`\(kind.rawValue)`"), "\(kind)") }
    }
}
