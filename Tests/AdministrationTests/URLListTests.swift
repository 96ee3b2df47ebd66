import Administration
import CachePolicy
import Reelcache
import Testing

@Suite struct URLListTests {
    @Test func eachLineIsAURL() throws {
        var list = try ProxyConfiguration().urlList()
        list.add(argument: "http://a/1.mp4")
        list.add(
            lines:
                "\u{FEFF}http://a/2.mp4\r\n\n  # http://a/no.mp4\n\thttp://a/3.mp4 \nhttp://a/1.mp4\nHTTP://A:80/2.mp4",
            of: "list")
        #expect(
            list.urls.map(\.absolute) == ["http://a/1.mp4", "http://a/2.mp4", "http://a/3.mp4"] && list.problems.isEmpty
        )
    }

    @Test func theURLsOfPlayersAreUnderstood() throws {
        var configuration = ProxyConfiguration()
        configuration.mounts = ["/tv/": "https://origin.example/vod/"]
        var list = try configuration.urlList()
        for url in [
            "http://127.0.0.1:7335/https/a.example/1.mp4", "http://localhost:7335/tv/2.mp4", "https://a.example/1.mp4",
        ] { list.add(argument: url) }
        #expect(list.urls.map(\.absolute) == ["https://a.example/1.mp4", "https://origin.example/vod/2.mp4"])
    }

    @Test func whatIsNoneIsNamedWithItsLine() throws {
        var list = try ProxyConfiguration().urlList()
        list.add(argument: "film.mp4")
        list.add(lines: "http://a/1.mp4\n\nftp://a/2.mp4\n", of: "list")
        #expect(list.urls.count == 1 && list.problems.count == 2)
        #expect(
            list.problems[0].hasPrefix("film.mp4: ") && list.problems[1].hasPrefix("list:3: ftp://a/2.mp4: "),
            "\(list.problems)")
    }
}
