/// Settings for the transfers of one client.
package struct UpstreamSettings: Sendable {
    /// Seconds for looking up the name, connecting and shaking hands.
    package var connectTimeout: Double
    /// Seconds without a byte, once connected, after which a transfer that is not paused fails.
    package var stallTimeout: Double
    /// As many as browsers follow (Fetch, HTTP-redirect fetch).
    package var maxRedirects: Int
    /// A file of PEM certificates that are trusted instead of the system's.
    package var caFile: String?
    /// Sent if the request has no `User-Agent` of its own.
    package var userAgent: String
    /// Added to `Via` (RFC 9110 §7.6.3); nil to add nothing.
    package var via: String?
    /// How much curl reads from a socket at a time, 16 KiB to 512 KiB.
    package var receiveBufferBytes: Int
    /// Seconds without a byte in either direction after which a tunnel is closed.
    package var tunnelIdleTimeout: Double = 300
    /// Seconds for connecting to a parent, if that is less than `connectTimeout`: parents are near, and there is another
    /// way.
    package var parentConnectTimeout: Double = 2
    /// How many unused connections a client keeps.
    package var idleConnections = 64

    package init(
        connectTimeout: Double = 10, stallTimeout: Double = 30, maxRedirects: Int = 20, caFile: String? = nil,
        userAgent: String = "reelcache/0.1", via: String? = nil, receiveBufferBytes: Int = 262_144
    ) {
        self.connectTimeout = connectTimeout
        self.stallTimeout = stallTimeout
        self.maxRedirects = maxRedirects
        self.caFile = caFile
        self.userAgent = userAgent
        self.via = via
        self.receiveBufferBytes = receiveBufferBytes
    }
}
