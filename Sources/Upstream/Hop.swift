import CCurl
import HTTPModel

/// The state of one exchange with one server. A value.
struct Hop {
    /// How much of a redirect's body to read so that its connection can be reused; beyond that, a new connection is
    /// cheaper.
    static let discardLimit = 64 * 1024

    var collector = HeadCollector()
    /// Those of the host's name; none if it is an address.
    var addresses: [String] = []
    /// The target of a redirect, its status and its fields.
    var location = ""
    var redirectStatus = 0
    var redirectFields = HeaderFields()
    /// Bytes of the redirect's body read so far.
    private var discarded = 0
    /// An address that the policy does not permit.
    var refused: String?
    /// No socket could be created because too many files are open.
    var lacksDescriptors = false
    /// The reason why a callback made curl give up.
    var fault: UpstreamError?
    /// The sockets created for this hop; none if a connection is reused.
    var sockets: [Int32] = []
    /// The ends of the connection that carries the request.
    var ends: OriginSockets.Ends?
    /// Whether the connection had unread bytes before the request was sent.
    var foundSurplus = false

    /// Counts bytes of a redirect's body. Returns whether to read on.
    mutating func discard(_ count: Int) -> Bool {
        discarded += count
        return discarded <= Self.discardLimit
    }

    /// Whether a reused connection delivered only the rest of an earlier answer.
    /// - Parameter error: the meaning of curl's result, if known.
    func isSpoiled(by error: UpstreamError?) -> Bool {
        guard sockets.isEmpty, fault == nil else { return false }
        if foundSurplus { return true }
        guard !collector.hasBegun, case .protocolViolation? = error else { return false }
        return true
    }

    /// The error as the callbacks know it; nil if curl's code says more.
    func error(for code: CURLcode, host: String) -> UpstreamError? {
        if let fault { return fault }
        if code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK, let refused {
            return .addressRefused(host: host, address: refused)
        }
        return code == CURLE_COULDNT_CONNECT && lacksDescriptors ? .outOfDescriptors(host: host) : nil
    }
}
