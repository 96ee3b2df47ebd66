/// Why bytes that somebody waits for do not come, in one word: the same as `detail` in `Cache-Status`, among the
/// `errors` of `/stats`, and as `failure` in the log.
package enum FailureKind: String, Sendable, CaseIterable {
    /// The origin's address is one that may not be fetched from.
    case addressRefused = "address-refused"
    /// This proxy has too much to do: the origin has not been asked.
    case proxyBusy = "proxy-busy"
    /// The origin's name has no address.
    case originUnresolved = "origin-unresolved"
    /// There is no connection to the origin.
    case originUnreachable = "origin-unreachable"
    /// The origin's certificate is not trusted, or there is no secure connection for another reason.
    case originTLS = "origin-tls"
    /// The origin was silent for too long.
    case originTimeout = "origin-timeout"
    /// The origin's answer broke off.
    case originBroken = "origin-broken"
    /// The origin wants to be left alone for now.
    case originBusy = "origin-busy"
    /// The origin answers with an error.
    case originError = "origin-error"
    /// The origin has another version by now.
    case originChanged = "origin-changed"
    /// The origin's answer cannot be what was asked for.
    case originUnusable = "origin-unusable"
    /// A web page came in the place of media.
    case page
    /// The store has no room, or the disk failed.
    case noRoom = "no-room"
    /// No origin is asked.
    case offline
}
