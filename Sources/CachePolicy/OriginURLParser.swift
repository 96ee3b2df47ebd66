import HTTPModel

/// Parses a URL from left to right (RFC 3986 §3), byte by byte. It rejects anything that two parsers could
/// interpret in two ways.
struct OriginURLParser {
    private var rest: ArraySlice<UInt8>

    init(_ text: String) { rest = Array(text.utf8)[...] }

    /// Parses `/https/host/path` and `/https://host/path`. Intermediaries that merge slashes turn the latter into
    /// `/https:/host/path`.
    func parseTarget() throws(OriginURLError) -> OriginURL {
        var parser = self
        guard parser.take("/") else {
            throw OriginURLError(reason: "the path must be /https/host/path or /http/host/path")
        }
        let scheme = try parser.takeScheme()
        guard parser.takeSlashes() else { throw .noHost }
        parser.decodeBrackets()
        return try parser.parse(after: scheme)
    }

    /// Clients encode the brackets of an IPv6 address inside a path (RFC 3986 §3.3).
    private mutating func decodeBrackets() {
        guard rest.starts(with: "%5B".utf8) || rest.starts(with: "%5b".utf8) else { return }
        let authority = String(decoding: take { !Self.endsAuthority($0) }, as: UTF8.self).lowercased()
        rest = Array(authority.replacing("%5b", with: "[").replacing("%5d", with: "]").utf8) + rest
    }

    /// `https://host/path`
    func parseURL() throws(OriginURLError) -> OriginURL {
        if beginsWithHost { throw .noScheme(rest) }
        var parser = self
        let scheme = try parser.takeScheme()
        guard parser.take("://") else { throw .notAbsolute }
        return try parser.parse(after: scheme)
    }

    /// Whether the scheme is missing, as people often omit it: `example.org/film.mp4`, `localhost:8000/film.mp4`.
    /// In practice, a scheme contains no dot, and no digit follows its colon.
    private var beginsWithHost: Bool {
        var parser = self
        let name = Self.lowercased(parser.take(while: Self.isSchemeCharacter))
        guard !name.isEmpty, OriginURL.Scheme(rawValue: name) == nil, !parser.rest.starts(with: "://".utf8) else {
            return false
        }
        if parser.take(":") { return parser.rest.first.map(ASCII.isDigit) ?? false }
        return parser.rest.first == UInt8(ascii: "/") || parser.rest.isEmpty && name.contains(".")
    }

    private mutating func takeSlashes() -> Bool { take("://") || take(":/") || take("/") }

    private mutating func parse(after scheme: OriginURL.Scheme) throws(OriginURLError) -> OriginURL {
        let authority = take { !Self.endsAuthority($0) }
        let at = authority.lastIndex(of: UInt8(ascii: "@"))
        let (host, port) = try Self.split(at.map { authority[($0 + 1)...] } ?? authority) // no trap: an index of it
        let url = OriginURL(
            scheme: scheme, host: try Self.host(host), port: try Self.port(port), pathAndQuery: try takePathAndQuery())
        if let at { throw .credentials(authority[..<at], for: url) }
        return url
    }

    // MARK: - Scheme

    private mutating func takeScheme() throws(OriginURLError) -> OriginURL.Scheme {
        let name = Self.lowercased(take(while: Self.isSchemeCharacter))
        guard rest.first.map(Self.endsScheme) ?? true, !name.isEmpty else { throw .notAbsolute }
        guard let scheme = OriginURL.Scheme(rawValue: name) else { throw .unknownScheme(name) }
        return scheme
    }

    /// RFC 3986 §3.1
    private static func isSchemeCharacter(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "+-.".utf8.contains(byte)
    }

    private static func endsScheme(_ byte: UInt8) -> Bool { byte == ASCII.colon || byte == UInt8(ascii: "/") }

    // MARK: - Authority

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// The port follows the colon; colons in brackets belong to an address.
    private static func split(_ authority: ArraySlice<UInt8>) throws(OriginURLError) -> (
        ArraySlice<UInt8>, ArraySlice<UInt8>?
    ) {
        let isAddress = authority.first == UInt8(ascii: "[")
        let tail = isAddress ? authority.drop { $0 != UInt8(ascii: "]") } : authority
        guard let colon = tail.firstIndex(of: ASCII.colon) else { return (authority, nil) }
        return (authority[..<colon], authority[authority.index(after: colon)...])
    }

    private static func host(_ bytes: ArraySlice<UInt8>) throws(OriginURLError) -> String {
        guard !bytes.isEmpty else { throw .noHost }
        let name = lowercased(bytes)
        if bytes.first == UInt8(ascii: "[") {
            guard bytes.last == UInt8(ascii: "]"), IPAddress(name) != nil else {
                throw .badHost(name, "it is not an IPv6 address")
            }
            return name
        }
        return bytes.allSatisfy(isHostCharacter) ? name : try international(name)
    }

    /// A name in other letters than those of DNS, as they are or percent-encoded in UTF-8 (RFC 3986 §3.2.2).
    private static func international(_ name: String) throws(OriginURLError) -> String {
        // Encoded ASCII would give a host a second spelling.
        guard let decoded = PercentEncoding.decoded(name[...].utf8), decoded.contains(where: { $0 >= 0x80 }) else {
            throw .badHost(name, "it contains an invalid character")
        }
        guard let ascii = HostName.inASCII(String(decoding: decoded, as: UTF8.self)), !ascii.isEmpty,
            ascii.utf8.allSatisfy(isHostCharacter)
        else { throw .badHost(name, "it is not a valid international name (IDNA 2008)") }
        return ascii
    }

    /// `reg-name` without percent-encoding (RFC 3986 §3.2.2).
    private static func isHostCharacter(_ byte: UInt8) -> Bool {
        PercentEncoding.isUnreserved(byte) || "!$&'()*+,;=".utf8.contains(byte)
    }

    private static func port(_ bytes: ArraySlice<UInt8>?) throws(OriginURLError) -> Int? {
        // RFC 3986 §6.2.3: an empty port means the default.
        guard let bytes, !bytes.isEmpty else { return nil }
        guard let port = ASCII.decimal(bytes), 1...65535 ~= port else {
            throw OriginURLError(reason: "the port \(printable(bytes)) is not a number from 1 to 65535")
        }
        return Int(port)
    }

    // MARK: - Path and query

    private mutating func takePathAndQuery() throws(OriginURLError) -> String {
        let sent = take { $0 != UInt8(ascii: "#") }
        guard sent.allSatisfy({ $0 > ASCII.space && $0 != 0x7F }) else {
            throw OriginURLError(
                reason: "the URL contains a space or a control character: percent-encode it, a space as %20")
        }
        let path =
            sent.allSatisfy { $0 < 0x80 }
            ? String(decoding: sent, as: UTF8.self) : PercentEncoding.encodingNonASCII(sent)
        return path.utf8.first == UInt8(ascii: "/") ? path : "/" + path
    }

    // MARK: - Bytes

    private mutating func take(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest.removeFirst(text.utf8.count)
        return true
    }

    private mutating func take(while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = rest.prefix(while: condition)
        rest = rest[taken.endIndex...]
        return taken
    }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.withUnsafeBytes { ASCII.lowercased($0) }
    }

    fileprivate static func printable(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.prefix(64).map { 0x21...0x7E ~= $0 ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}

extension OriginURLError {
    fileprivate static let noHost = OriginURLError(reason: "the URL has no host: write https://host/path")
    fileprivate static let notAbsolute = OriginURLError(reason: "the URL must begin with http:// or https://")

    /// Names the rule that sends them, without the password: errors end in logs.
    fileprivate static func credentials(_ text: ArraySlice<UInt8>, for url: OriginURL) -> OriginURLError {
        // A name without a password is often a token.
        let parts = String(decoding: text, as: UTF8.self).split(separator: ":", maxSplits: 1)
        let name = parts.count == 2 ? PercentEncoding.decoded(parts[0].utf8) ?? [] : []
        let isPlain = name.allSatisfy { PercentEncoding.isUnreserved($0) || $0 == UInt8(ascii: "@") }
        let user = isPlain && 1...64 ~= name.count ? String(decoding: name, as: UTF8.self) : "USER"
        let host = url.scheme.rawValue + "://" + url.authority
        return OriginURLError(
            reason: "credentials in the URL are not supported: remove the part before the @, and write in the "
                + "configuration file rules: [{host: '\(host)', headers: {Authorization: Basic BASE64}}], "
                + "where BASE64 is the output of printf %s '\(user):PASSWORD' | base64 -w0")
    }

    fileprivate static func noScheme(_ text: ArraySlice<UInt8>) -> OriginURLError {
        // The part before an @ may be a password.
        let shown =
            text.count > 64 || text.contains(UInt8(ascii: "@"))
            ? "" : ", as in https://\(OriginURLParser.printable(text))"
        return OriginURLError(reason: "the URL has no scheme: write https:// before it\(shown)")
    }

    fileprivate static func unknownScheme(_ name: String) -> OriginURLError {
        OriginURLError(reason: "\(OriginURLParser.printable(name.utf8)) is not supported: use http or https")
    }

    fileprivate static func badHost(_ name: String, _ why: String) -> OriginURLError {
        OriginURLError(reason: "the host \(OriginURLParser.printable(name.utf8)) cannot be used: \(why)")
    }
}
