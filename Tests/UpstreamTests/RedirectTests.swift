import HTTPModel
import TestSupport
import Testing
import Upstream

@Suite struct RedirectTests {
    private let origin: ScriptedOrigin
    private let media = Media(seed: 2, size: 100_000)

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/final.mp4", media)
    }

    private var credentials: HeaderFields {
        HeaderFields([
            .init(name: "Authorization", value: "Bearer x"), .init(name: "cookie", value: "a=b"),
            .init(name: "If-Range", value: "\"v1\""),
        ])
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectIsFollowedWithItsRange(_ status: Int) throws {
        origin.script("/a") {
            $0.redirect = "/final.mp4"; $0.status = status; $0.body = [UInt8](repeating: 65, count: 1000)
        }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a"), span: .bounded(5..<50_000), fields: credentials)
        #expect(error == nil)
        #expect(recorder.heads.map(\.status) == [206])
        #expect(recorder.heads.first?.finalURL == origin.url("/final.mp4"))
        #expect(recorder.received(media, 5..<50_000))
        let last = try #require(origin.requests("/final.mp4").first)
        #expect(last.headers["Range"] == "bytes=5-49999")
        #expect(last.headers["If-Range"] == "\"v1\"")
        // A body whose end does not come soon costs the connection.
        #expect(origin.snapshot.connectionCount <= 2)
    }

    @Test func shortBodyOfARedirectIsReadToItsEndAndTheConnectionKept() throws {
        // Head and body come in one piece.
        let origin = try TalkativeOrigin("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 3\r\n\r\nabc")
        #expect(try Upstreams().fetch(origin.url).error == .tooManyRedirects(limit: 20))
        #expect(origin.connections == 1)
    }

    @Test func chainOfTwentyIsFollowedAndALongerOneIsNot() throws {
        for hop in 0..<20 { origin.script("/\(hop)") { $0.redirect = "\(hop + 1)" } }
        origin.script("/20") { $0.redirect = "/final.mp4" }
        // 1 to 20 and on to the media.
        let (recorder, error) = try Upstreams().fetch(origin.url("/1"))
        #expect(error == nil)
        #expect(recorder.received(media))
        #expect(try Upstreams().fetch(origin.url("/0")).error == .tooManyRedirects(limit: 20))
    }

    @Test func loopEnds() throws {
        origin.script("/loop") { $0.redirect = "/loop" }
        let (recorder, error) = try Upstreams().fetch(origin.url("/loop"))
        #expect(error == .tooManyRedirects(limit: 20))
        #expect(recorder.heads.isEmpty)
        #expect(origin.requestCount("/loop") == 21)
    }

    @Test func credentialsStayOnTheSameOrigin() throws {
        origin.script("/a") { $0.redirect = "/final.mp4" }
        _ = try Upstreams().fetch(origin.url("/a"), fields: credentials)
        let headers = try #require(origin.requests("/final.mp4").first).headers
        #expect(headers["Authorization"] == "Bearer x")
        #expect(headers["Cookie"] == "a=b")
    }

    @Test func credentialsAreDroppedAcrossOriginsAndDoNotComeBack() throws {
        origin.script("/a") { $0.redirect = origin.url("/b", host: "localhost") }
        origin.script("/b") { $0.redirect = origin.url("/final.mp4") }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a"), fields: credentials)
        #expect(error == nil)
        #expect(recorder.received(media))
        #expect(origin.requests("/a").first?.headers["Authorization"] == "Bearer x")
        for path in ["/b", "/final.mp4"] {
            let headers = try #require(origin.requests(path).first).headers
            #expect(headers["Authorization"] == nil)
            #expect(headers["Cookie"] == nil)
            #expect(headers["If-Range"] == "\"v1\"")
        }
    }

    /// What the owner of the fields calls confined, in whatever letters.
    @Test func confinedFieldsAreForTheFirstOrigin() throws {
        let other = try ScriptedOrigin()
        other.serve("/final.mp4", media)
        origin.script("/a") { $0.redirect = "/b" }
        origin.script("/b") { $0.redirect = other.url("/c") }
        other.script("/c") { $0.redirect = origin.url("/final.mp4") }
        let fields = HeaderFields([.init(name: "X-Key", value: "secret"), .init(name: "X-Other", value: "o")])
        let (recorder, error) = try Upstreams().fetch(origin.url("/a"), fields: fields, confined: ["x-key"])
        #expect(error == nil && recorder.received(media))
        #expect(["/a", "/b"].map { origin.requests($0).first?.headers["X-Key"] } == ["secret", "secret"])
        #expect(
            other.requests("/c").map { $0.headers["X-Key"] } == [nil]
                && origin.requests("/final.mp4").map { $0.headers["X-Key"] } == [nil])
        #expect(origin.requests("/final.mp4").map { $0.headers["X-Other"] } == ["o"])
    }

    @Test func anotherPortIsAnotherOrigin() throws {
        let other = try ScriptedOrigin()
        other.serve("/final.mp4", media)
        origin.script("/a") { $0.redirect = other.url("/final.mp4") }
        _ = try Upstreams().fetch(origin.url("/a"), fields: credentials)
        #expect(other.requests("/final.mp4").first?.headers["Authorization"] == nil)
    }

    @Test(arguments: ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://", "gopher://127.0.0.1:70/"])
    func redirectElsewhereThanHTTPIsRefused(_ location: String) throws {
        origin.script("/a") { $0.redirect = location }
        #expect(try Upstreams().fetch(origin.url("/a")).error == .badRedirect(location: location))
    }

    @Test func redirectWithoutLocationIsAResponse() throws {
        origin.script("/a") {
            $0.status = 302; $0.body = Array("look elsewhere".utf8)
        }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a"))
        #expect(error == nil)
        #expect(recorder.heads.map(\.status) == [302])
        #expect(recorder.body == Array("look elsewhere".utf8))
    }

    @Test func longOrEndlessBodyOfARedirectIsAbandoned() throws {
        origin.script("/long") {
            $0.redirect = "/final.mp4"; $0.body = [UInt8](repeating: 65, count: 10_000_000)
        }
        let (recorder, error) = try Upstreams().fetch(origin.url("/long"))
        #expect(error == nil)
        #expect(recorder.received(media))
        #expect(origin.snapshot.connectionCount == 2)
    }

    /// As of a script that states the film's length with its Location. Browsers follow at the head.
    @Test func bodyOfARedirectIsNotWaitedFor() throws {
        origin.script("/held") {
            $0.redirect = "/final.mp4"; $0.body = [UInt8](repeating: 65, count: 1000); $0.holdBody = true
        }
        let upstreams = try Upstreams(UpstreamSettings(stallTimeout: 3600))
        let (recorder, error) = try upstreams.fetch(origin.url("/held"))
        #expect(error == nil)
        #expect(recorder.received(media))
        origin.releaseAll()
    }

    @Test func brokenBodyOfARedirectIsNoMatter() throws {
        origin.script("/cut") {
            $0.redirect = "/final.mp4"; $0.body = [UInt8](repeating: 65, count: 1000); $0.cutAfter = 10
        }
        let (recorder, error) = try Upstreams().fetch(origin.url("/cut"))
        #expect(error == nil)
        #expect(recorder.received(media))
    }

    @Test func spacesInALocationAreEncoded() throws {
        origin.serve("/a%20b.mp4", media)
        origin.script("/a") { $0.redirect = "/a b.mp4" }
        let (recorder, error) = try Upstreams().fetch(origin.url("/a"))
        #expect(error == nil)
        #expect(recorder.heads.first?.finalURL == origin.url("/a%20b.mp4"))
    }

    /// Of a server whose file names are in ISO-8859-1.
    @Test func bytesOfALocationAreEncoded() throws {
        origin.serve("/K%E9se.mp4", media)
        let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: \(origin.url("/K"))"
        let old = try CannedOrigin(bytes: Array(head.utf8) + [0xE9] + Array("se.mp4\r\n\r\n".utf8))
        let (recorder, error) = try Upstreams().fetch(old.url)
        #expect(error == nil && recorder.received(media))
    }
}
