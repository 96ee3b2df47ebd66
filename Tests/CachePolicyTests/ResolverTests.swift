import HTTPModel
import Testing

@testable import CachePolicy

/// Which programs are run for which pages, and what their results are.
@Suite struct ResolverTests {
    private func resolver(_ command: [String], path: String = "/*") throws -> Resolver {
        try Resolver(hosts: [], paths: [Glob(path: path)], command: command, timeout: 30)
    }

    @Test(
        arguments: [
            ["sh", "-c", "find {url} | head -1"], ["/bin/bash", "-ec", "find {url}"], ["sh", "-c"],
            ["env", "A=b", "dash", "-c", "find '{url}'"],
        ]) func shellThatWouldRunTheURLIsRefused(command: [String])
    {
        #expect(throws: RuleError.self) { try resolver(command) }
    }

    @Test(
        arguments: [
            ["sh", "-c", "find \"$1\" | head -1", "sh", "{url}"], ["sh", "-c", "find \"$0\" | head -1"],
            ["find", "-c", "{url}"], ["sh", "find.sh", "{url}"],
        ]) func shellThatGetsTheURLAsAnArgumentIsNot(command: [String])
    {
        #expect(throws: Never.self) { try resolver(command) }
    }

    @Test func namesOfMediaBelongToOneProgramAndOneScheme() throws {
        var policy = ProxyPolicy()
        policy.resolvers = [try resolver(["find"], path: "/watch*"), try resolver(["search"], path: "/show*")]
        let pages = try [
            "https://a.example/watch/1", "https://a.example/watch/2", "https://b.example/show/1",
            "http://a.example/watch/3",
        ].map { try OriginURL(url: $0) }
        for page in pages { policy.learn("1042", ofMediaAt: page) }
        let keys = pages.map { policy.resolve($0).key }
        #expect(keys == [pages[0], pages[0], pages[2], pages[3]].map(\.cacheKey))
    }

    @Test func anotherOriginLearnsNoPageFromTheProgramsFields() throws {
        let location = MediaLocation(
            url: try OriginURL(url: "https://cdn.example/a"),
            headers: ["Referer: https://site.example/watch?token=1", "User-Agent: Find/1"])
        var same = HeaderFields(), other = HeaderFields()
        location.addHeaders(to: &same, for: "https://cdn.example/b")
        location.addHeaders(to: &other, for: "https://else.example/a")
        #expect(same["Referer"] == "https://site.example/watch?token=1")
        #expect(other["Referer"] == "https://site.example/" && other["User-Agent"] == "Find/1")
    }
}
