import CCurl
import CachePolicy
import HTTPModel

/// Whom a hop connects to: the origin itself, or a server that passes the request on. A value.
enum Way {
    case direct
    /// Another cache, which is asked as an HTTP proxy: `GET https://host/path`, also for https.
    case parent(UpstreamURL)
    /// The proxy of the configuration, and its address as a URL.
    case proxy(OutgoingProxy, UpstreamURL)

    /// - Parameter host: the host of the hop's URL.
    init(_ request: UpstreamRequest, to host: String, _ outgoing: OutgoingProxy?) {
        if let parent = request.parent.flatMap({ UpstreamURL($0) }) {
            self = .parent(parent)
        } else if let outgoing, outgoing.carries(host: host), let url = UpstreamURL("http://\(outgoing.address)/") {
            self = .proxy(outgoing, url)
        } else {
            self = .direct
        }
    }

    /// Whether the connection is to the origin, so that its address can be checked.
    var isDirect: Bool { if case .direct = self { true } else { false } }

    /// The server to connect to for a URL.
    func peer(of url: UpstreamURL) -> UpstreamURL {
        switch self {
        case .direct: url
        case .parent(let peer), .proxy(_, let peer): peer
        }
    }

    /// RFC 9112 §3.2.2
    func wantsAbsoluteForm(of url: UpstreamURL) -> Bool {
        switch self {
        case .direct: false
        case .parent: true
        case .proxy(let proxy, _): proxy.kind == .http && url.scheme == "http"
        }
    }

    /// The host that is at fault if no connection can be made.
    func blamed(for url: UpstreamURL?) -> String {
        if case .parent(let peer) = self { return peer.host }
        return url?.host ?? ""
    }

    /// The address of a URL's host that is not permitted; nil if it is permitted, or has to be looked up by the server
    /// that connects: this one itself, if it is direct.
    func refusedAddress(of url: UpstreamURL, _ policy: @autoclosure () -> AddressPolicy) -> String? {
        guard !isDirect else { return nil }
        guard let address = url.address else { return url.endsInNumber ? url.host : nil }
        return policy().permits(host: url.host, address: address) ? nil : address.description
    }

    /// Where the server of a URL is, as far as that can be known without its address.
    /// - Parameter fields: the response's.
    func scope(of url: UpstreamURL, _ fields: HeaderFields, _ policy: AddressPolicy) -> AddressScope {
        guard !policy.names(url.host), url.address.map(policy.isPublic) != false else { return .private }
        return switch self {
        case .direct: .public
        case .parent: SourceField.statesPublic(fields) ? .public : .unknown
        // Only the proxy knows what a name leads to.
        case .proxy: url.address != nil ? .public : .unknown
        }
    }

    /// What it means that the peer's name cannot be resolved.
    func unresolved(_ host: String) -> UpstreamError {
        guard case .proxy(let proxy, _) = self else { return .cannotResolve(host: host) }
        return .proxyFailed(proxy: proxy.address, host: host, detail: "no such host")
    }

    /// Why an answer is not the origin's; nil if it is.
    func denial(_ status: Int, of url: UpstreamURL?) -> UpstreamError? {
        // What comes through a tunnel is the origin's.
        guard status == 407, case .proxy(let proxy, _) = self, proxy.kind == .http, url?.scheme == "http" else {
            return nil
        }
        return .proxyDenied(proxy: proxy.address)
    }

    /// What an error means if it is the proxy's.
    func error(_ error: UpstreamError, for code: CURLcode, to host: String) -> UpstreamError {
        guard case .proxy(let proxy, _) = self else { return error }
        switch (code, error) {
        case (_, .timedOut(_, .connect)):
            return .proxyFailed(proxy: proxy.address, host: host, detail: "timed out while connecting")
        case (_, .broken(let detail)) where Self.isDenial(code, detail): return .proxyDenied(proxy: proxy.address)
        case (CURLE_RECV_ERROR, .broken(let detail)) where detail.contains("CONNECT"),
            (CURLE_PROXY, .broken(let detail)), (CURLE_COULDNT_RESOLVE_PROXY, .broken(let detail)),
            (_, .cannotConnect(_, let detail)):
            return .proxyFailed(proxy: proxy.address, host: host, detail: detail)
        default: return error
        }
    }

    /// Whether a proxy wants other credentials, by the texts of libcurl 7.88 to 8.
    private static func isDenial(_ code: CURLcode, _ detail: String) -> Bool {
        switch code {
        case CURLE_RECV_ERROR: detail.contains("407") && detail.contains("CONNECT")
        case CURLE_PROXY:
            detail.contains("No authentication method was acceptable")
                || detail.contains("User was rejected by the SOCKS5 server")
        default: false
        }
    }
}

extension UpstreamURL {
    /// The address that stands in place of a name; that of this machine for its own names.
    var address: IPAddress? {
        if name != nil { return nil }
        return IPAddress(host) ?? IPAddress("127.0.0.1")
    }

    /// Scheme, host and port, without the path: `https://host[:port]/`
    var origin: String {
        let target = afterScheme.drop { !Self.endsAuthority($0) }
        return String(Substring(text.utf8[..<target.startIndex])) + "/"
    }

    /// Host and port as they stand in `Host`.
    var authority: String { String(Substring(afterScheme.prefix { !Self.endsAuthority($0) })) }

    /// Path and query.
    var target: String {
        var text = text
        return text.withUTF8 { text in
            let rest = text.dropFirst(scheme.utf8.count + 3) // no trap: its parts
            return String(decoding: rest.drop { !Self.endsAuthority($0) }, as: UTF8.self)
        }
    }

    private var afterScheme: Substring.UTF8View { text.utf8.dropFirst(scheme.utf8.count + 3) } // no trap: its parts

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }
}

extension EasyHandle {
    /// Sets whom to connect to for a URL, and what to ask there: path and query as they were received (RFC 9110 §7.7).
    func go(_ way: Way, to url: UpstreamURL, settings: UpstreamSettings) {
        set(CURLOPT_REQUEST_TARGET, way.wantsAbsoluteForm(of: url) ? url.text : url.target)
        switch way {
        case .direct: break
        case .parent:
            // With `CURLOPT_PROXY`, curl would open a tunnel for https.
            append("Host", url.authority)
            let limit = min(settings.connectTimeout, settings.parentConnectTimeout)
            set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(saturating: limit * 1000)))
        case .proxy(let proxy, _):
            set(CURLOPT_PROXY, "\(proxy.kind.rawValue)://\(proxy.address)")
            set(CURLOPT_PROXYUSERNAME, proxy.user)
            set(CURLOPT_PROXYPASSWORD, proxy.password)
            set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
            removeField("Proxy-Connection")
        }
    }
}
