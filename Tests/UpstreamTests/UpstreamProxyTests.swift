import CachePolicy
import EventIO
import Glibc
import HTTPModel
import TestSupport
import Testing

@testable import Upstream

/// Origins behind another proxy: the setting `upstream_proxy`. The origins' names do not exist here: whoever looked them
/// up would fail.
@Suite struct UpstreamProxyTests {
    private static let film = Media(seed: 5, size: 300_000)
    private let origin: ScriptedOrigin

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", Self.film)
    }

    private func upstreams(
        _ scheme: String, _ proxy: ScriptedProxy, user: String? = nil, except: [String] = [], allow: [String] = []
    ) throws -> Upstreams {
        var outgoing = try OutgoingProxy("\(scheme)://\(user.map { $0 + "@" } ?? "")127.0.0.1:\(proxy.port)")
        outgoing.exceptions = try ProxyExceptions(except)
        return try Upstreams(allow: allow, outgoing: outgoing)
    }

    @Test(arguments: [ScriptedProxy.Kind.http, .socks]) func originIsReachedThroughTheProxyByItsName(
        kind: ScriptedProxy.Kind
    ) throws {
        let proxy = try ScriptedProxy(kind, to: origin.port)
        defer { proxy.stop() }
        let upstreams = try upstreams(kind == .http ? "http" : "socks5h", proxy)
        for number in 1...2 {
            let (recorder, error) = try upstreams.fetch("http://origin.test/film.mp4", span: .from(100))
            #expect(error == nil && recorder.received(Self.film, 100..<Self.film.size))
            #expect(recorder.heads.first?.isFromPublicAddress == false, "only the proxy knows the address")
            #expect(recorder.heads.first?.finalURL == "http://origin.test/film.mp4")
            #expect(origin.requestCount("/film.mp4") == number)
        }
        #expect(
            proxy.requests.first?.line == (kind == .http ? "GET http://origin.test/film.mp4" : "SOCKS origin.test:80"))
        #expect(origin.requests("/film.mp4").first?.headers["Host"] == "origin.test")
        #expect(origin.requests("/film.mp4").first?.headers["Proxy-Connection"] == nil)
    }

    /// Nobody but the proxy knows where the first one is.
    @Test func scopeOfARedirectCounts() throws {
        let proxy = try ScriptedProxy(.http, to: origin.port)
        defer { proxy.stop() }
        origin.script("/old.mp4") { $0.redirect = "http://8.8.8.8/film.mp4" }
        let heads = try ["http://origin.test/old.mp4", "http://8.8.8.8/old.mp4"].map {
            try upstreams("http", proxy).fetch($0).0.heads.first
        }
        #expect(heads.map { $0?.scope } == [.unknown, .public])
        #expect(heads.allSatisfy { $0?.status == 200 && $0?.finalURL == "http://8.8.8.8/film.mp4" })
    }

    /// A SOCKS proxy speaks no HTTP, so what comes is the origin's.
    @Test func statusOfAnOriginBehindATunnelIsTheOrigins() throws {
        let proxy = try ScriptedProxy(.socks, to: origin.port)
        defer { proxy.stop() }
        origin.script("/film.mp4") { $0.status = 407 }
        let (recorder, error) = try upstreams("socks5h", proxy).fetch("http://origin.test/film.mp4")
        #expect(error == nil && recorder.heads.first?.status == 407)
    }

    @Test func httpsGoesThroughATunnelOfTheProxy() throws {
        let proxy = try ScriptedProxy(.http, to: origin.port)
        defer { proxy.stop() }
        // The origin speaks no TLS: this shows the tunnel alone.
        guard case .tls? = try upstreams("http", proxy, user: "me:pw").fetch("https://origin.test/film.mp4").error
        else {
            Issue.record("the handshake did not reach the origin")
            return
        }
        #expect(proxy.requests.map(\.line) == ["CONNECT origin.test:443"])
        #expect(proxy.requests.first?.credentials == "Basic bWU6cHc=")
    }

    @Test(arguments: [ScriptedProxy.Kind.http, .socks]) func credentialsAreForTheProxyAlone(kind: ScriptedProxy.Kind)
        throws
    {
        let proxy = try ScriptedProxy(kind, to: origin.port, credentials: "me:p@ss")
        defer { proxy.stop() }
        let scheme = kind == .http ? "http" : "socks5h"
        #expect(try upstreams(scheme, proxy, user: "me:p%40ss").fetch("http://origin.test/film.mp4").error == nil)
        for user in [nil, "me:wrong"] {
            let error = try upstreams(scheme, proxy, user: user).fetch("http://origin.test/film.mp4").error
            #expect(error == .proxyDenied(proxy: "127.0.0.1:\(proxy.port)"), "\(String(describing: error))")
            #expect(error?.isTransient == false)
        }
        #expect(origin.requestCount("/film.mp4") == 1)
    }

    @Test func wrongCredentialsForATunnelAreToldLikeThat() throws {
        let proxy = try ScriptedProxy(.http, to: origin.port, credentials: "me:pw")
        defer { proxy.stop() }
        let error = try upstreams("http", proxy).fetch("https://origin.test/film.mp4").error
        #expect(error == .proxyDenied(proxy: "127.0.0.1:\(proxy.port)"), "\(String(describing: error))")
    }

    @Test(arguments: [("http", "https"), ("socks5h", "http"), ("socks5h", "https")]) func proxyThatRefusesIsNamed(
        scheme: String, ofOrigin: String
    ) throws {
        let proxy = try ScriptedProxy(scheme == "http" ? .http : .socks, to: origin.port, refuses: true)
        defer { proxy.stop() }
        let error = try upstreams(scheme, proxy).fetch("\(ofOrigin)://origin.test/film.mp4").error
        guard case .proxyFailed(proxy: "127.0.0.1:\(proxy.port)", host: "origin.test", _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(arguments: ["http", "socks5h"]) func deadProxyIsNamedInOneLineWithoutItsPassword(scheme: String) throws {
        let free = try HeldPort(), port = free.port
        defer { withExtendedLifetime(free) {} }
        let upstreams = try Upstreams(allow: [], outgoing: OutgoingProxy("\(scheme)://me:secret@127.0.0.1:\(port)"))
        let error = try #require(try upstreams.fetch("http://origin.test/film.mp4").error)
        #expect(
            "\(error)".hasPrefix("origin.test: cannot be reached through 127.0.0.1:\(port) (upstream_proxy): "),
            "\(error)")
        #expect(!"\(error)".contains("secret") && !"\(error)".contains("\n") && error.isTransient)
    }

    @Test func proxyWhoseNameDoesNotExistIsNamed() throws {
        let upstreams = try Upstreams(allow: [], outgoing: OutgoingProxy("http://proxy.invalid:3128"))
        let error = try #require(try upstreams.fetch("http://origin.test/film.mp4").error)
        #expect(
            "\(error)" == "origin.test: cannot be reached through proxy.invalid:3128 (upstream_proxy): no such host")
    }

    @Test func exceptionIsReachedDirectlyAndChecked() throws {
        let proxy = try ScriptedProxy(.http, to: origin.port)
        defer { proxy.stop() }
        let excepted = try upstreams("http", proxy, except: ["127.0.0.0/8"], allow: ["127.0.0.1"])
        #expect(try excepted.fetch(origin.url("/film.mp4")).error == nil)
        let refused = try upstreams("http", proxy, except: ["localhost"])
        guard case .addressRefused = try refused.fetch(origin.url("/film.mp4", host: "localhost")).error else {
            Issue.record("an excepted host was not checked")
            return
        }
        #expect(proxy.requests.isEmpty)
    }

    @Test(arguments: ["127.0.0.1", "localhost", "[::1]", "10.1.2.3", "0x7f.1", "a.localhost"])
    func privateAddressInAURLIsRefusedBeforeTheProxy(host: String) throws {
        let proxy = try ScriptedProxy(.http, to: origin.port)
        defer { proxy.stop() }
        let error = try upstreams("http", proxy).fetch("http://\(host)/film.mp4").error
        guard case .addressRefused = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(proxy.requests.isEmpty)
    }

    /// The connection to the proxy is no way to it as an origin.
    @Test func addressOfTheProxyIsNoOrigin() throws {
        let proxy = try ScriptedProxy(.http, to: origin.port)
        defer { proxy.stop() }
        let upstreams = try upstreams("http", proxy, except: ["127.0.0.1"])
        #expect(try upstreams.fetch("http://origin.test/film.mp4").error == nil)
        let error = try upstreams.fetch("http://127.0.0.1:\(proxy.port)/film.mp4").error
        #expect(error == .addressRefused(host: "127.0.0.1", address: "127.0.0.1"))
        #expect(proxy.requests.count == 1)
    }
}

/// Parents, as one transfer asks them.
@Suite struct ParentTransferTests {
    private let parent: ScriptedOrigin

    init() throws { parent = try ScriptedOrigin() }

    private func fetch(_ url: String, _ upstreams: Upstreams) throws -> (Recorder, UpstreamError?) {
        var request = UpstreamRequest(url: url)
        request.parent = "http://127.0.0.1:\(parent.port)/"
        let recorder = Recorder()
        upstreams.start(request, recorder)
        return (recorder, try recorder.outcome())
    }

    @Test(arguments: [
        ("https://origin.test/film.mp4?a=1", "origin.test"), ("http://origin.test:8080/film.mp4", "origin.test:8080"),
    ]) func parentIsAskedInAbsoluteFormAlsoForHTTPS(url: String, host: String) throws {
        let film = Media(seed: 6, size: 1000)
        parent.serve(url, film)
        let (recorder, error) = try fetch(url, Upstreams(allow: []))
        #expect(error == nil && recorder.received(film))
        #expect(recorder.heads.first?.finalURL == url)
        #expect(parent.requests(url).first?.headers.all("Host") == [host])
    }

    @Test func redirectThatAParentPassesOnIsFollowedThroughIt() throws {
        let film = Media(seed: 6, size: 1000)
        parent.script("https://origin.test/a") { $0.redirect = "https://other.test/b" }
        parent.serve("https://other.test/b", film)
        let (recorder, error) = try fetch("https://origin.test/a", Upstreams(allow: []))
        #expect(error == nil && recorder.received(film) && recorder.heads.first?.finalURL == "https://other.test/b")
    }

    @Test func privateAddressInAURLOrRedirectIsRefused() throws {
        let upstreams = try Upstreams(allow: [])
        parent.script("https://origin.test/a") { $0.redirect = "http://10.0.0.1/b" }
        #expect(
            try fetch("https://origin.test/a", upstreams).1 == .addressRefused(host: "10.0.0.1", address: "10.0.0.1"))
        #expect(
            try fetch("http://localhost/a", upstreams).1 == .addressRefused(host: "localhost", address: "127.0.0.1"))
        #expect(parent.snapshot.requests.count == 1)
    }

    /// What curl would make an address of once the URL is written anew, and what a proxy might.
    @Test(arguments: [
        "0x7f%2e1", "２１３０７０６４３３", "１２７.1:81", "127。1", "127.0.0.1.", "169.254.169.254.", "127.1.",
        "0x7f%2e1.", "0x7f%252e1", "127.0.0.1..", "localhost.", "%6cocalhost", "1.2.3.4.5", "a.0x7f", "a.1.",
    ])
    func addressInDisguiseIsNotLeftToAProxy(host: String) throws {
        let upstreams = try Upstreams(allow: [])
        parent.script("https://origin.test/a") { $0.redirect = "http://\(host)/b" }
        for url in ["https://origin.test/a", "http://\(host)/b"] {
            let error = try fetch(url, upstreams).1
            switch error {
            case .addressRefused, .badRedirect, .badURL: break
            default: Issue.record("\(url): \(String(describing: error))")
            }
        }
        #expect(parent.snapshot.requests.count == 1)
    }

    @Test func addressOfAParentIsNoOrigin() throws {
        let upstreams = try Upstreams(allow: [])
        parent.serve("https://origin.test/a", Media(seed: 6, size: 1000))
        #expect(try fetch("https://origin.test/a", upstreams).1 == nil)
        #expect(
            try upstreams.fetch(parent.url("/a")).error == .addressRefused(host: "127.0.0.1", address: "127.0.0.1"))
    }

    @Test func whatIsPublicIsBelievedFromParentsAlone() throws {
        let policy = try AddressPolicy(allow: ["nas.example"])
        let request = { (parent: String?) in
            var request = UpstreamRequest(url: "https://origin.test/")
            request.parent = parent
            return request
        }
        var fields = HeaderFields()
        fields.append("Reelcache-Source", "public")
        let parent = Way(request("http://10.0.0.1/"), to: "origin.test", nil)
        let proxy = Way(request(nil), to: "origin.test", try OutgoingProxy("http://10.0.0.1:3128"))
        func scope(_ way: Way, _ url: String, _ fields: HeaderFields) throws -> AddressScope {
            way.scope(of: try #require(UpstreamURL(url)), fields, policy)
        }
        #expect(try scope(parent, "https://origin.test/", fields) == .public)
        #expect(try scope(parent, "https://origin.test/", HeaderFields()) == .unknown)
        #expect(try scope(parent, "https://nas.example/", fields) == .private)
        #expect(try scope(parent, "https://10.0.0.9/", fields) == .private)
        #expect(try scope(proxy, "https://origin.test/", fields) == .unknown)
        #expect(try scope(proxy, "https://8.8.8.8/", fields) == .public)
    }
}
