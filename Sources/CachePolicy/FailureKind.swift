/// Why requested bytes did not arrive, as one name: the `detail` in `Cache-Status`, the key in `errors` of
/// `/stats`, and `failure` in the log.
package enum FailureKind: String, Sendable, CaseIterable {
    /// The proxy may not connect to the origin's address.
    case addressRefused = "address-refused"
    /// This proxy is overloaded, and did not contact the origin.
    case proxyBusy = "proxy-busy"
    /// The origin's name does not resolve to an address.
    case originUnresolved = "origin-unresolved"
    /// No connection to the origin could be made.
    case originUnreachable = "origin-unreachable"
    /// The origin's certificate is not trusted, or TLS failed for another reason.
    case originTLS = "origin-tls"
    /// The origin was silent for too long.
    case originTimeout = "origin-timeout"
    /// The origin's answer broke off midway.
    case originBroken = "origin-broken"
    /// The origin asked to be left alone for now.
    case originBusy = "origin-busy"
    /// The origin answered with an error.
    case originError = "origin-error"
    /// The origin has another version by now.
    case originChanged = "origin-changed"
    /// The origin's answer does not match the request.
    case originUnusable = "origin-unusable"
    /// A parent did not deliver; the next one, or the origin, was asked.
    case parentFailed = "parent-failed"
    /// A resolver found no media.
    case resolverFailed = "resolver-failed"
    /// A resolver took too long.
    case resolverTimeout = "resolver-timeout"
    /// A web page arrived in place of media.
    case page
    /// The store has no room, or the disk failed.
    case noRoom = "no-room"
    /// The proxy is offline: it contacts no origin.
    case offline
}
