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
        if let plain = UpstreamURL(plain: text) { self = plain } else { self.init(base: nil, text) }
    }

    /// A URL that has only one reading, and that curl leaves as it is: a name in lower case or an IPv4 address, perhaps
    /// a port, and a path. Nil for any other, which only curl reads.
    init?(plain text: String) {
        var copy = text
        guard let parts = copy.withUTF8({ Self.plainParts(UnsafeRawBufferPointer($0)) }) else { return nil }
        (self.text, scheme, host, port) = (text, parts.scheme, parts.host, parts.port)
        name = parts.isName && !Self.isThisMachine(host) ? host : nil
    }

    private static func plainParts(_ text: UnsafeRawBufferPointer) -> (
        scheme: String, host: String, isName: Bool, port: String
    )? {
        let isTLS = text.starts(with: "https://".utf8)
        guard isTLS || text.starts(with: "http://".utf8) else { return nil }
        let rest = text.dropFirst(isTLS ? 8 : 7)
        let host = rest.prefix { ASCII.isDigit($0) || 0x61...0x7A ~= $0 || $0 == UInt8(ascii: "-") || $0 == dot }
        var path = rest[host.endIndex...], port = isTLS ? "443" : "80"
        if path.first == ASCII.colon {
            let digits = path.dropFirst().prefix(while: ASCII.isDigit)
            guard digits.first != UInt8(ascii: "0"), ASCII.decimal(digits, upTo: 65535) != nil else { return nil }
            (port, path) = (String(decoding: digits, as: UTF8.self), rest[digits.endIndex...])
        }
        guard path.first == UInt8(ascii: "/"), path.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") })
        else { return nil }
        let name = String(decoding: host, as: UTF8.self)
        return isName(name).map { (isTLS ? "https" : "http", name, $0, port) }
    }

    private static let dot = UInt8(ascii: ".")

    /// Whether it is a name, whose last label begins with a letter, rather than four decimal numbers; nil if it has an
    /// empty label, or other numbers, of which curl makes addresses, too.
    private static func isName(_ host: String) -> Bool? {
        var previous = dot, beginsLast = dot
        for byte in host.utf8 {
            if byte == dot, previous == dot { return nil }
            if previous == dot { beginsLast = byte }
            previous = byte
        }
        guard previous != dot else { return nil }
        if ASCII.isLetter(beginsLast) { return true }
        return IPAddress(host) != nil ? false : nil
    }

    private static func isThisMachine(_ host: String) -> Bool { host == "localhost" || host.hasSuffix(".localhost") }

    /// The target of `Location: reference` in a response from here (RFC 9110 §10.2.2); nil if it cannot be fetched.
    func resolving(_ reference: String) -> UpstreamURL? {
        UpstreamURL(base: text, reference)
    }

    /// Whether scheme, host and port are the same (RFC 9110 §4.3.1).
    func hasSameOrigin(as other: UpstreamURL) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    /// Reads a URL as curl does, until that changes nothing: curl makes addresses of numbers as it reads, before it
    /// decodes percent signs, and other alphabets become ASCII only here.
    init?(base: String?, _ reference: String) {
        guard var read = UpstreamURL(reading: reference, from: base) else { return nil }
        for _ in 0..<Self.mostReadings {
            // Nearly all are as curl writes them.
            let isSame = base == nil && read.text == reference
            guard let again = isSame ? read : UpstreamURL(reading: read.text, from: nil) else { return nil }
            if again == read {
                // Other resolvers may decode it once more.
                guard read.name?.contains("%") != true else { return nil }
                self = read
                return
            }
            read = again
        }
        return nil
    }

    /// How often a URL is read: a host has no reason to change more often.
    private static let mostReadings = 4

    /// WHATWG URL, "ends in a number": a malformed address, of which other resolvers may make one.
    var endsInNumber: Bool { name.map(Self.endsInNumber) ?? false }

    private static func endsInNumber(_ name: String) -> Bool {
        guard let last = name.utf8.split(separator: dot).last else { return true }
        if last.starts(with: "0x".utf8) { return last.dropFirst(2).allSatisfy { ASCII.hexValue($0) != nil } }
        return last.allSatisfy(ASCII.isDigit)
    }

    /// Leaves out dots at the end of an address or of this machine's names: neither is asked of a name server.
    private static func withoutDots(_ host: String) -> String {
        guard let end = host.utf8.lastIndex(where: { $0 != dot }) else { return host }
        let bare = String(Substring(host.utf8[...end]))
        return endsInNumber(bare) || isThisMachine(bare) ? bare : host
    }

    private init?(reading reference: String, from base: String?) {
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
        guard let written = Self.part(CURLUPART_HOST, of: handle),
            let host = HostName.inASCII(written).map(Self.withoutDots),
            !host.isEmpty,
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
        let isKnown = self.host.contains(":") || IPAddress(self.host) != nil || Self.isThisMachine(self.host)
        name = isKnown ? nil : self.host
    }

    private static func part(_ part: CURLUPart, of handle: OpaquePointer, flags: UInt32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(handle, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
