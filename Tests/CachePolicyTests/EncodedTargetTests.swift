import CachePolicy
import Testing

/// Targets whose URL a client has percent-encoded, as if it were a segment of a path.
@Suite struct EncodedTargetTests {
    @Test(arguments: [
        ("/http%3A%2F%2Fa.example/film.mp4", "http://a.example/film.mp4"),
        ("/https%3a%2f%2fa.example:8443/film%20one.mp4?x=%2F", "https://a.example:8443/film%20one.mp4?x=%2F"),
        ("/https:%2F%2Fa.example/f", "https://a.example/f"), ("/https%3A//a.example/f", "https://a.example/f"),
        // encodeURIComponent
        (
            "/https%3A%2F%2Fa.example%2Fv%2Ffilm%2520one.mp4%3Fid%3D1%26x%3D%252F",
            "https://a.example/v/film%20one.mp4?id=1&x=%2F"
        ),
        ("/https%3A%2F%2Fa.example%2Ffilm%20one.mp4", "https://a.example/film%20one.mp4"),
        ("/http%3A%2F%2Fa.example", "http://a.example/"),
        ("/https%3A%2F%2Fa.example%2Ff?x=1", "https://a.example/f?x=1"),
        ("/http%3A%2F%2F%5B::1%5D%2Ff", "http://[::1]/f"),
        ("/https%3A%2F%2Fa.example%2F%C3%BC", "https://a.example/%C3%BC"),
    ])
    func encodedURLIsRead(target: String, url: String) throws {
        #expect(OriginURL.isTarget(target) && Mount.isReserved(target))
        #expect(try OriginURL(target: target).absolute == url)
    }

    @Test(arguments: [
        "/https%3A%2F%2F", "/http%3A%2F%2Fuser%40a.example%2Ff", "/https%3A%2F%2Fa.example%2F%0D%0Af",
        "/https%3A%2F%2Fa.example%2F%",
    ])
    func whatIsNoURLIsRefused(target: String) {
        #expect(OriginURL.isTarget(target))
        #expect(throws: OriginURLError.self) { try OriginURL(target: target) }
    }

    @Test(arguments: [
        "/https%3A", "/https%3A%2F", "/httpx%3A%2F%2Fa", "/a/http%3A%2F%2Fa.example/f", "/ftp%3A%2F%2Fa.example/f",
    ])
    func otherTargetsAreNone(target: String) {
        #expect(!OriginURL.isTarget(target))
    }

    /// On a command line a space can mean nothing else.
    @Test func spaceInAnArgumentIsEncoded() throws {
        let place = ProxyPlace(url: "http://127.0.0.1:7335")
        #expect(
            try OriginURL(argument: "https://a.example/my film.mp4?q=a b", at: place).absolute
                == "https://a.example/my%20film.mp4?q=a%20b")
        #expect(
            try OriginURL(argument: "http://127.0.0.1:7335/https/a.example/my film.mp4", at: place).absolute
                == "https://a.example/my%20film.mp4")
        #expect(throws: OriginURLError.self) { try OriginURL(argument: "https://a b.example/film.mp4", at: place) }
        #expect(throws: OriginURLError.self) { try OriginURL(argument: "https://a.example/film\t.mp4", at: place) }
    }
}
