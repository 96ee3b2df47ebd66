import CachePolicy
import Testing

@Suite struct CacheKeyTests {
    // RFC 3986 §6.2.2 and §6.2.3
    @Test(arguments: [
        ("https://a/b", "https://a/b"), ("HTTPS://A:443/B#c", "https://a/B"), ("http://a:80", "http://a/"),
        ("http://a:8080/", "http://a:8080/"),
        ("https://a/%7euser/%41%2d%2E%5f", "https://a/~user/A-._"),
        ("https://a/%2f%3f%c3%a9?%26=%3d", "https://a/%2F%3F%C3%A9?%26=%3D"),
        ("https://a/%2541", "https://a/%2541"), ("https://a/100%", "https://a/100%"), ("https://a/%4", "https://a/%4"),
        ("https://a/%zz%+1", "https://a/%zz%+1"),
        ("https://a/%%411", "https://a/%%411"), ("https://a/%41%", "https://a/%41%"),
        ("https://a/b/../c/./d", "https://a/b/../c/./d"),
        ("https://a/\u{E9}", "https://a/%C3%A9"),
        ("https://a/?", "https://a/?"), ("https://a/+%20", "https://a/+%20"),
    ])
    func spellingsShareOneKey(url: String, key: String) throws {
        #expect(try OriginURL(url: url).cacheKey.text == key)
        #expect(try OriginURL(url: url).cacheKey == CacheKey(text: key))
    }

    @Test(arguments: [
        ("https://a/b", "http://a/b"), ("https://a/b", "https://a/B"), ("https://a/b", "https://a/b/"),
        ("https://a/b", "https://a/b?"),
        ("https://a/%2F", "https://a//"), ("https://a/%%411", "https://a/%A1"),
    ])
    func differentResourcesHaveDifferentKeys(a: String, b: String) throws {
        #expect(try OriginURL(url: a).cacheKey != OriginURL(url: b).cacheKey)
    }
}
