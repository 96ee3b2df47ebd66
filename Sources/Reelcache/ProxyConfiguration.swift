import CachePolicy
import HTTPTransport

/// How a proxy works. The defaults are those of `reelcache serve`.
public struct ProxyConfiguration: Sendable {
    /// Where to listen: `host:port`, `[ipv6]:port`, or `:port` for all addresses. Port 0 lets the system choose.
    public var listen = "127.0.0.1:7335"
    /// The cache directory; made where it is missing.
    public var cacheDirectory = Self.defaultCacheDirectory
    /// Bytes that the cache takes on the disk at the most, its index included. At least 16 MB.
    public var maxSize: Int64 = 20_000_000_000
    /// Bytes that always stay free on the disk.
    public var minFree: Int64 = 1_000_000_000
    /// Private origins that may be fetched from: host names, IP addresses, or networks such as `192.168.1.0/24`.
    public var allow: [String] = []
    /// Event loops, each with a thread; nil for one for each core.
    public var threads: Int?
    /// A file of certificates (PEM) to trust instead of the system's, for origins over https.
    public var certificateFile: String?
    /// How cached bytes go from the page cache to the socket: `mapping` or `sendfile`. For measuring; `docs/PERFORMANCE.md` compares them.
    public var transmission = "mapping"

    public init() {}

    /// Where a proxy that works like this can be reached; nil where only the system will know the port, or `listen` cannot work.
    package var baseURL: String? {
        guard let address = ListenAddress(listen), address.port != 0 else { return nil }
        return "http://\(address.reachable)"
    }

    /// `$XDG_CACHE_HOME/reelcache`, else `~/.cache/reelcache`.
    public static var defaultCacheDirectory: String {
        HomeDirectory.directory("XDG_CACHE_HOME", orElse: ".cache") + "/reelcache"
    }
}

/// A configuration that cannot work, or a proxy that cannot start. The description is one line that says what to do.
public struct ProxyError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and what to do about it.
    public let description: String

    init(_ description: String) { self.description = description }
}
