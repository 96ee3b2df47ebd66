import CachePolicy
import Testing

/// Whether a URL's responses are stored for one user or for many.
@Suite struct CacheModeTests {
    private static func kind(
        _ url: String, _ mounts: [(String, String, CacheMode?)] = [], cache: CacheMode? = nil, anyOrigin: Bool = true
    ) throws -> CacheMode {
        var policy = ProxyPolicy()
        policy.mounts = try mounts.map { Mount(path: $0.0, origin: try OriginURL(url: $0.1), cache: $0.2) }
        (policy.cache, policy.servesAnyOrigin) = (cache, anyOrigin)
        return policy.resolve(try OriginURL(url: url)).resolvedRule.terms.kind
    }

    @Test(
        arguments: [
            (nil, true, .private), (nil, false, .shared), (.shared, true, .shared), (.private, false, .private),
        ] as [(CacheMode?, Bool, CacheMode)])
    func whereOnlyMountsAreServedTheyAreForMany(setting: CacheMode?, anyOrigin: Bool, kind: CacheMode) throws {
        let mounts: [(String, String, CacheMode?)] = [("/tv/", "https://a.example/vod/", nil)]
        #expect(try Self.kind("https://a.example/vod/x", mounts, cache: setting, anyOrigin: anyOrigin) == kind)
        #expect(try Self.kind("https://b.example/x", cache: setting, anyOrigin: anyOrigin) == kind)
    }

    @Test(
        arguments: [
            ("https://a.example/vod/x", .shared), ("https://a.example/vod/kids/x", .private),
            ("https://a.example/vod/kids", .shared), ("https://a.example/other/x", .private),
            ("http://a.example/vod/x", .private), ("https://a.example:444/vod/x", .private),
            // The nearest mount states nothing, but the next one does.
            ("https://a.example/vod/news/x", .shared),
            // Two mounts of one place: the stricter one.
            ("https://b.example/x", .shared),
        ] as [(String, CacheMode)])
    func mountThatCoversTheURLSaysSo(url: String, kind: CacheMode) throws {
        let mounts: [(String, String, CacheMode?)] = [
            ("/tv/", "https://a.example/vod/", .shared), ("/kids/", "https://a.example/vod/kids/", .private),
            ("/news/", "https://a.example/vod/news/", nil), ("/b/", "https://b.example/", .private),
            ("/c/", "https://b.example/", .shared),
        ]
        #expect(try Self.kind(url, mounts) == kind)
        #expect(try Self.kind(url, mounts.reversed()) == kind)
    }
}
