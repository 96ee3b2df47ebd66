import Reelcache
import Upstream

/// A running Reelcache that has another cache than this user's: that of the household or of another user.
enum NeighborProxy {
    /// How long it may take to tell its health and to send the first byte, in seconds.
    private static let patience = (health: 2.0, media: 30.0)

    /// The URL under which a proxy at the configured address serves a media URL. Blocks.
    /// - Returns: nil if no Reelcache listens there, or it refuses the URL.
    static func url(for url: String, _ configuration: ProxyConfiguration) -> String? {
        guard let base = configuration.baseURL,
            let proxied = url.hasPrefix(base + "/") ? url : try? configuration.url(for: url, through: base),
            let health = try? BlockingFetch.get(url: base + "/healthz", timeout: patience.health),
            health.status == 200, health.body == Array("ok\n".utf8)
        else { return nil }
        var request = BlockingFetch(proxied)
        request.timeout = patience.media
        request.fields.append("Range", "bytes=0-0")
        guard let head = try? request.perform({ _, _ in .enough }), head.status < 400 else { return nil }
        return proxied
    }
}
