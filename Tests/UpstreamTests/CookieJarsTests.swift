import CachePolicy
import HTTPModel
import Testing

@testable import Upstream

@Suite struct CookieJarsTests {
    private let jars = CookieJars()
    private let key = CacheKey(text: "https://a.example/film.m3u8")

    private func line(_ name: String, _ domain: String = "a.example", expires: Int64 = 0) -> String {
        "\(domain)\tFALSE\t/\tFALSE\t\(expires)\t\(name)\tv"
    }

    private func names(_ key: CacheKey) -> [String] {
        jars.jar(of: key).lines.map { String($0.split(separator: "\t")[5]) }
    }

    @Test func changesOfOthersStay() {
        jars.change(key, from: [], to: [line("a"), line("b")])
        jars.change(key, from: [], to: [line("c")])
        jars.change(key, from: [line("a"), line("b")], to: [line("a")])
        #expect(names(key) == ["a", "c"])
        jars.change(key, from: [line("a")], to: ["#HttpOnly_a.example\tFALSE\t/\tFALSE\t0\ta\tw"])
        #expect(names(key) == ["c", "a"])
        #expect(names(CacheKey(text: "https://a.example/other.m3u8")).isEmpty)
    }

    // RFC 6265bis §5.7: what has expired goes first.
    @Test func numberAndSizeAreBounded() {
        jars.change(key, from: [], to: [line("token")])
        for number in 0..<100 { jars.change(key, from: [], to: [line("old\(number)", expires: 1)]) }
        #expect(names(key) == ["token"])
        for number in 0..<100 { jars.change(key, from: [], to: [line("n\(number)", expires: 4_102_444_800)]) }
        #expect(names(key).count == 64 && names(key).last == "n99")
        jars.change(key, from: [], to: [line(String(repeating: "x", count: 65_000)), line("y")])
        #expect(jars.jar(of: key).lines.reduce(0) { $0 + $1.utf8.count } <= 65_536 && names(key).last == "y")
        for number in 0..<200 {
            jars.change(CacheKey(text: "https://b.example/\(number)"), from: [], to: [line("a")])
        }
        #expect(names(key).isEmpty && names(CacheKey(text: "https://b.example/199")) == ["a"])
    }

    // RFC 6265bis §5.1.4
    @Test(arguments: [
        ("/live/1/index.m3u8?a=/b/", "/live/1"), ("/index.m3u8", "/"), ("/", "/"), ("/live/", "/live"),
    ])
    func cookieWithoutAPathHasThatOfItsURL(target: String, path: String) {
        var lines = [line("a"), line("b"), line("c")]
        let fields = HeaderFields([
            .init(name: "Set-Cookie", value: "a=v"), .init(name: "set-cookie", value: "b=v; Secure; PATH=/"),
        ])
        CookieJars.Jar.place(&lines, by: fields, from: target)
        #expect(lines.map { $0.split(separator: "\t")[2] } == [Substring(path), "/", "/"])
    }

    @Test(arguments: [
        ("a.example", "a.example", true), (".a.example", "a.example", true), (".a.example", "cdn.A.example", true),
        ("a.example", "ba.example", false), ("a.example", "b.example", false), ("example", "a.example", true),
        ("#HttpOnly_.a.example", "x.a.example", true),
    ])
    func hostGetsWhatCurlMaySendIt(domain: String, host: String, isForIt: Bool) {
        #expect(CookieJars.Jar([line("a", domain)]).lines(for: host).isEmpty == !isForIt)
    }
}
