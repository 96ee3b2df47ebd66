import CCurl

/// What is known of one exchange with one server. A value.
struct Hop {
    /// Bytes of a redirect's body that are read to keep its connection; beyond that a new one is cheaper.
    static let discardLimit = 64 * 1024

    var collector = HeadCollector()
    /// Where the head redirects to.
    var location = ""
    /// Bytes of a redirect's body.
    private var discarded = 0
    /// An address that the policy does not permit.
    var refused: String?
    /// No socket could be made, as too many files are open.
    var lacksDescriptors = false
    /// Why a callback made curl give up.
    var fault: UpstreamError?
    /// Made for it. None where a connection is used again.
    var sockets: [Int32] = []
    /// Of the connection that the request goes over.
    var ends: OriginSockets.Ends?
    /// There was something to read on that connection before the request was sent.
    var foundSurplus = false

    /// So much of a redirect's body has come. Answers whether it is worth to read on.
    mutating func discard(_ count: Int) -> Bool {
        discarded += count
        return discarded <= Self.discardLimit
    }

    /// Whether what came was the rest of an answer to somebody before, on a connection that was used again, and nothing
    /// of our own.
    /// - Parameter error: what curl's end means, where it is known.
    func isSpoiled(by error: UpstreamError?) -> Bool {
        guard sockets.isEmpty, fault == nil else { return false }
        if foundSurplus { return true }
        guard !collector.hasBegun, case .protocolViolation? = error else { return false }
        return true
    }

    /// What the callbacks know better than curl's code does; nil where they know nothing.
    func error(for code: CURLcode, host: String) -> UpstreamError? {
        if let fault { return fault }
        if code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK, let refused {
            return .addressRefused(host: host, address: refused)
        }
        return code == CURLE_COULDNT_CONNECT && lacksDescriptors ? .outOfDescriptors(host: host) : nil
    }
}
