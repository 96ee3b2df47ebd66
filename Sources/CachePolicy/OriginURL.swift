import HTTPModel

/// The location of a resource: the URL that a client requests from the proxy, parsed and checked.
package struct OriginURL: Sendable, Hashable {
    package enum Scheme: String, Sendable, CaseIterable {
        case http, https

        package var defaultPort: Int {
            switch self {
            case .http: 80
            case .https: 443
            }
        }
    }

    package let scheme: Scheme
    /// In lower case; an IPv6 address is in brackets.
    package let host: String
    /// 1 to 65535; nil for the scheme's default.
    package let port: Int?
    /// Begins with "/"; as the client sent it, but always ASCII and without a fragment.
    package let pathAndQuery: String

    init(scheme: Scheme, host: String, port: Int?, pathAndQuery: String) {
        self.scheme = scheme
        self.host = host
        self.port = port == scheme.defaultPort ? nil : port
        self.pathAndQuery = pathAndQuery
    }

    /// Parses the target of a request to the proxy: `/https/host[:port]/path?query`,
    /// `/https://host[:port]/path?query`, or `/http` likewise.
    package init(target: String) throws(OriginURLError) {
        self = try OriginURLParser(Self.decodedTarget(target) ?? target).parseTarget()
    }

    /// Parses a URL as people write it: `https://host[:port]/path?query#fragment`.
    package init(url: String) throws(OriginURLError) {
        self = try OriginURLParser(url).parseURL()
    }

    /// Whether two URLs have the same scheme, host and port (RFC 9110 §4.3.1).
    package static func areSameOrigin(_ a: String, _ b: String) -> Bool {
        guard let a = try? OriginURL(url: a), let b = try? OriginURL(url: b) else { return false }
        return areSameOrigin(a, b)
    }

    package static func areSameOrigin(_ a: OriginURL, _ b: OriginURL) -> Bool {
        a.scheme == b.scheme && a.host == b.host && a.port == b.port
    }

    /// Host and port as written in a URL and in `Host`.
    package var authority: String { port.map { host + ":" + String($0) } ?? host }

    /// `https://host[:port]/path?query`
    package var absolute: String { text("", "://", pathAndQuery) }

    /// In one allocation, and in one go: each request makes one.
    func text(_ before: StaticString, _ between: StaticString, _ path: String) -> String {
        // The longest scheme, separator and port have 5, 3 and 6 bytes.
        String(upTo: 16 + host.utf8.count + path.utf8.count) { text in
            text.append(before)
            text.append(text: scheme.rawValue)
            text.append(between)
            text.append(text: host)
            if let port {
                text.append(":")
                text.append(decimal: Int64(port))
            }
            text.append(text: path)
        }
    }

    /// The parameter by which the URL of a recording differs from its stream's. No origin has one of this name.
    package static let recordingParameter = "reelcache-recording"

    /// Whether it is that of a recording: it is in this cache or nowhere, and no origin is contacted for it.
    package var isOfRecording: Bool { ASCII.contains(pathAndQuery, Self.recordingParameter + "=") }

    /// `/https/host[:port]/path?query`, which `init(target:)` reads back to an equal value.
    package var proxyPath: String { text("/", "/", pathAndQuery) }
}

/// Why a URL cannot be fetched, in one line that states what to write instead.
package struct OriginURLError: Error, Sendable, Equatable, CustomStringConvertible {
    package let reason: String

    package init(reason: String) { self.reason = reason }

    package var description: String { reason }

    /// The reason, behind the text that is not a URL. Its secrets are masked: errors end in logs.
    package func naming(_ text: String) -> String { "\(URLMask.standard.masked(text)): \(reason)" }
}

extension OriginURL {
    /// The same URL in the normalised spelling of its percent-encoding (RFC 3986 §6.2.2): players do not always write
    /// it as a feed does.
    package var normalized: OriginURL {
        guard hasEncoded else { return self }
        return OriginURL(scheme: scheme, host: host, port: port, pathAndQuery: PercentEncoding.normalized(pathAndQuery))
    }

    /// Whether anything is percent-encoded. Most URLs have nothing, so their spelling is the normalised one.
    package var hasEncoded: Bool { ASCII.contains(pathAndQuery, UInt8(ascii: "%")) }
}
