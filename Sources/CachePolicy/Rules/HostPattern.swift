import HTTPModel

/// The hosts to which a rule applies: `example.org`, `*.example.org`, `*`, `nas.local:8080`, `[::1]`. Without a
/// port, it matches all ports.
///
/// With a scheme (`http://nas.local`, `https://api.example:8443`), it matches that scheme only, and without a port
/// only the scheme's default port; `:*` matches all ports.
package struct HostPattern: Sendable, Equatable {
    /// As it was written.
    let text: String
    private let scheme: OriginURL.Scheme?
    private let name: Glob
    private let port: Port
    /// Whether anybody can run a host that matches.
    let isForAnybody: Bool

    private enum Port: Equatable {
        case unsaid, any
        case number(Int)
    }

    package init(_ text: String) throws(RuleError) {
        let (scheme, rest) = try Self.scheme(of: text)
        let (written, port) = try Self.split(rest, of: text)
        // Part of a label in other letters has no form in those of DNS.
        let name = written.split(separator: ".", omittingEmptySubsequences: false)
            .map { $0.contains("*") ? String($0) : HostName.inASCII(String($0)) ?? String($0) }.joined(separator: ".")
        guard Self.isName(name) else {
            throw RuleError("'\(text)' is not a host; write it like example.org, *.example.org or nas.local:8080")
        }
        self.text = text
        self.scheme = scheme
        self.name = Glob(HostName.normalized(name))
        self.port = port
        isForAnybody = Self.isForAnybody(name)
    }

    private static func scheme(of text: String) throws(RuleError) -> (OriginURL.Scheme?, rest: String) {
        guard let end = text.firstRange(of: "://") else { return (nil, text) }
        guard let scheme = OriginURL.Scheme(rawValue: ASCII.lowercased(String(text[..<end.lowerBound]))) else {
            throw RuleError("'\(text)' has a scheme that is not supported; write http://, https:// or the host alone")
        }
        return (scheme, String(text[end.upperBound...]))
    }

    /// - Parameters:
    ///   - host: the part after the scheme.
    ///   - text: the whole pattern.
    private static func split(_ host: String, of text: String) throws(RuleError) -> (name: String, port: Port) {
        let tail = host.hasPrefix("[") ? host.drop { $0 != "]" }.dropFirst() : host[...]
        guard let colon = tail.firstIndex(of: ":") else { return (host, .unsaid) }
        let digits = tail[tail.index(after: colon)...]
        guard !digits.contains(":") else {
            throw RuleError("'\(text)' is not a host; write an IPv6 address in brackets, such as [::1]")
        }
        let name = String(host[..<colon])
        guard digits != "*" else { return (name, .any) }
        guard let port = ASCII.decimal(digits.utf8), 1...65535 ~= port else {
            throw RuleError("'\(text)' has no port from 1 to 65535 after the colon; write it like nas.local:8080")
        }
        return (name, .number(Int(port)))
    }

    private static func isName(_ name: String) -> Bool {
        if name.hasPrefix("[") {
            return name.hasSuffix("]")
                && name.dropFirst().dropLast().utf8.allSatisfy { ASCII.hexValue($0) != nil || "*:.".utf8.contains($0) }
        }
        let isPlain = name.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || "*-._".utf8.contains($0) }
        return isPlain && name.utf8.contains { $0 != UInt8(ascii: ".") }
    }

    func matches(_ url: OriginURL) -> Bool { matches(url, over: scheme) }

    /// Whether a URL may receive secrets; a pattern without a scheme then means `https://`. So nobody who can make
    /// a player request `http://api.example/`, or another port of that host, learns the secrets for
    /// `https://api.example/`.
    func entrusts(_ url: OriginURL) -> Bool { matches(url, over: scheme ?? .https) }

    private func matches(_ url: OriginURL, over scheme: OriginURL.Scheme?) -> Bool {
        guard scheme == nil || scheme == url.scheme, name.matches(Array(HostName.normalized(url.host).utf8)) else {
            return false
        }
        switch port {
        case .unsaid: return scheme == nil || url.port == nil
        case .any: return true
        case .number(let port): return port == url.port ?? url.scheme.defaultPort
        }
    }

    /// Whether there is no whole domain after the last `*`: anybody can run a host that matches `*`, `example.*` or
    /// `*example.org`.
    private static func isForAnybody(_ name: String) -> Bool {
        if name.hasPrefix("[") { return name.hasPrefix("[*") }
        guard let star = name.lastIndex(of: "*") else { return false }
        let domain = name[star...].dropFirst()
        return !domain.hasPrefix(".") || !domain.utf8.contains { ASCII.isLetter($0) || ASCII.isDigit($0) }
    }
}
