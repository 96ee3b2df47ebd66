import CCurl
import CachePolicy
import Glibc
import HTTPModel

/// The state of one exchange with one server. A value.
struct Hop {
    /// How much of a redirect's body to read so that its connection can be reused; beyond that, a new connection is
    /// cheaper.
    static let discardLimit = 64 * 1024

    /// Whom it connects to.
    let way: Way
    /// Tells apart events of a hop that is over.
    let number: Int
    /// Whether a reused connection must not carry it.
    let needsNewConnection: Bool
    /// Nil before its request is sent, and after its end.
    var easy: EasyHandle?
    /// The running look-up of its host's name.
    var lookUp: NameResolver.Ticket?
    var collector = HeadCollector()
    /// Those of the host's name; none if it is an address.
    var addresses: [String] = []
    /// The target of a redirect, its status and its fields.
    var location = ""
    var redirectStatus = 0
    var redirectFields = HeaderFields()
    /// The lines of the cookies with which curl began.
    var cookies: [String] = []
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
    /// Whether that leads to an address that is not public.
    private(set) var isPrivate = false
    /// Whether the connection had unread bytes before the request was sent.
    var foundSurplus = false

    init(_ way: Way = .direct, number: Int = 0, onNewConnection: Bool = false) {
        (self.way, self.number, needsNewConnection) = (way, number, onNewConnection)
    }

    /// Counts bytes of a redirect's body. Returns whether to read on.
    mutating func discard(_ count: Int) -> Bool {
        discarded += count
        return discarded <= Self.discardLimit
    }

    /// Whether a reused connection delivered only the rest of an earlier answer.
    /// - Parameter error: the meaning of curl's result, if known.
    func isSpoiled(by error: UpstreamError?) -> Bool {
        guard !needsNewConnection, sockets.isEmpty, fault == nil else { return false }
        if foundSurplus { return true }
        guard !collector.hasBegun, case .protocolViolation? = error else { return false }
        return true
    }

    /// The error as the callbacks know it; nil if curl's code says more.
    func error(for code: CURLcode, host: String) -> UpstreamError? {
        if let fault { return fault }
        if code == CURLE_COULDNT_CONNECT, lacksDescriptors { return .outOfDescriptors(host: host) }
        // If a permitted address was tried, too, its failure is the reason.
        let isRefusal = code == CURLE_COULDNT_CONNECT && sockets.isEmpty || code == CURLE_ABORTED_BY_CALLBACK
        return isRefusal ? refused.map { .addressRefused(host: host, address: $0) } : nil
    }
}

// MARK: Its connection

extension Hop {
    /// Creates the socket for an address, which is the very one that curl connects to, whatever the name meant in an
    /// earlier look-up.
    mutating func openSocket(
        to address: UnsafeMutablePointer<curl_sockaddr>, of host: String, _ client: UpstreamClient
    ) -> curl_socket_t {
        guard let peer = SocketPeer(address) else { return CURL_SOCKET_BAD }
        // A parent's or a proxy's address is configured. It is not an origin's: nobody else can name it as one.
        guard !way.isDirect || client.policy.value.permits(host: host, address: peer.address) else {
            if refused == nil { refused = peer.text }
            client.originSockets.hasFailedAttempt = true
            return CURL_SOCKET_BAD
        }
        let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue) // no trap: constants
        let made = client.makeSocket(address.pointee.family, address.pointee.socktype | flags, address.pointee.protocol)
        if made < 0 {
            lacksDescriptors = lacksDescriptors || UpstreamError.isLackOfDescriptors(errno)
            client.originSockets.hasFailedAttempt = true
        } else {
            sockets.append(made)
            client.originSockets.opened(made)
        }
        return made
    }

    /// Whether the request may be sent over a connection. A reused one may have been established under another policy,
    /// and its origin may have sent more after its last answer.
    mutating func mayRequest(
        _ ends: OriginSockets.Ends, of host: String, _ policy: AddressPolicy, _ client: UpstreamClient
    ) -> Bool {
        guard let peer = IPAddress(ends.address), !way.isDirect || policy.permits(host: host, address: peer) else {
            refused = ends.address
            return false
        }
        self.ends = ends
        isPrivate = way.isDirect && !policy.isPublic(peer)
        if sockets.isEmpty {
            foundSurplus = client.originSockets.hasSurplus(ends)
            return !foundSurplus
        }
        client.originSockets.named(ends, among: sockets)
        return true
    }
}

// MARK: Its request

extension Hop {
    /// Prepares its request.
    mutating func begin(
        _ request: UpstreamRequest, to url: UpstreamURL, by route: Route, _ client: UpstreamClient
    ) -> EasyHandle {
        let easy = client.makeHandle(), jar = route.cookies, lines = jar.lines.isEmpty ? [] : jar.lines(for: url.host)
        easy.setUp(
            request, of: self, to: url, route.fields, cookies: request.method.followsRedirects ? lines : nil, client)
        // As curl writes them.
        if !lines.isEmpty { cookies = easy.cookies }
        self.easy = easy
        return easy
    }

    /// Takes the cookies that an answer sets, for what follows it and for the presentation.
    mutating func takeCookies(_ fields: HeaderFields, _ route: inout Route?, _ use: CookieJars.Use?) {
        guard fields["Set-Cookie"] != nil, var current = easy?.cookies, current != cookies else { return }
        if cookies.isEmpty, let route { CookieJars.Jar.place(&current, by: fields, from: route.url.target) }
        route?.cookies.change(from: cookies, to: current)
        if let use { use.jars.change(use.key, from: cookies, to: current) }
        cookies = current
    }
}

extension EasyHandle {
    /// How much curl reads at a time where many transfers run: each has a buffer of its own.
    private static let smallBuffer = 32 << 10

    /// Sets all that is sent, and to whom.
    func setUp(
        _ request: UpstreamRequest, of hop: Hop, to url: UpstreamURL, _ fields: HeaderFields, cookies: [String]?,
        _ client: UpstreamClient
    ) {
        let peer = hop.way.peer(of: url), settings = client.settings
        // Path and query are set by `go`; curl needs the path to choose cookies.
        if case .parent = hop.way {
            setUp(client.origin(of: peer), settings: settings)
        } else if cookies?.isEmpty == false {
            setUp(url: url.text, settings: settings)
        } else {
            setUp(client.origin(of: url), settings: settings)
        }
        if client.slots.isCrowded { set(CURLOPT_BUFFERSIZE, min(settings.receiveBufferBytes, Self.smallBuffer)) }
        go(hop.way, to: url, settings: settings)
        set(addresses: hop.addresses, of: peer)
        set(request, fields: fields, cookies: cookies, settings: settings)
        if hop.needsNewConnection { set(CURLOPT_FRESH_CONNECT, 1) }
    }
}
