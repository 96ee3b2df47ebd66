import CCurl
import CachePolicy
import HTTPModel

/// An http or https URL, parsed by curl itself, so that the address policy judges exactly the host that curl connects
/// to.
struct UpstreamURL: Equatable {
    /// Without user and password: this client sends only the credentials in the request's fields.
    let text: String
    let scheme: String
    /// In lower case; an IPv6 address without its brackets.
    let host: String
    /// The name to look up. nil for an address, and for this machine, which curl knows.
    let name: String?
    let port: String

    init?(_ text: String) {
        self.init(base: nil, text)
    }

    /// The target of `Location: reference` in a response from here (RFC 9110 §10.2.2); nil if it cannot be fetched.
    func resolving(_ reference: String) -> UpstreamURL? {
        UpstreamURL(base: text, reference)
    }

    /// Whether scheme, host and port are the same (RFC 9110 §4.3.1).
    func hasSameOrigin(as other: UpstreamURL) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    private init?(base: String?, _ reference: String) {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        if let base, curl_url_set(handle, CURLUPART_URL, base, 0) != CURLUE_OK { return nil }
        // RFC 9110 §7.7: a path is passed on as it was received. Servers put raw spaces and UTF-8 into Location.
        let flags = base == nil ? CURLU_PATH_AS_IS : CURLU_URLENCODE | CURLU_ALLOW_SPACE
        // no trap: constants
        guard curl_url_set(handle, CURLUPART_URL, reference, UInt32(flags)) == CURLUE_OK else { return nil }
        for part in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_FRAGMENT] {
            curl_url_set(handle, part, nil, 0)
        }
        // curl's own conversion depends on the locale.
        guard let written = Self.part(CURLUPART_HOST, of: handle), let host = HostName.inASCII(written), !host.isEmpty,
            host == ASCII.lowercased(written) || curl_url_set(handle, CURLUPART_HOST, host, 0) == CURLUE_OK,
            let text = Self.part(CURLUPART_URL, of: handle),
            let scheme = Self.part(CURLUPART_SCHEME, of: handle), scheme == "http" || scheme == "https",
            let port = Self.part(CURLUPART_PORT, of: handle, flags: UInt32(CURLU_DEFAULT_PORT)) // no trap: a constant
        else { return nil }
        // curl drops an empty query (RFC 3986 §3.4).
        let query = reference.utf8.prefix { $0 != UInt8(ascii: "#") }.drop { $0 != UInt8(ascii: "?") }
        self.text = query.elementsEqual("?".utf8) ? text + "?" : text
        self.scheme = scheme
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.port = port
        let isKnown =
            self.host.contains(":") || IPAddress(self.host) != nil || self.host == "localhost"
            || self.host.hasSuffix(".localhost")
        name = isKnown ? nil : self.host
    }

    private static func part(_ part: CURLUPart, of handle: OpaquePointer, flags: UInt32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(handle, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
