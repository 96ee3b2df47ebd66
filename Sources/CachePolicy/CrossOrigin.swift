import HTTPModel

/// Which pages' scripts may read what the proxy answers (CORS: Fetch standard §3.2).
///
/// In path form a browser takes the proxy for the media's origin, and what the origin itself says of other sites means nothing there. Then
/// the proxy decides: media from public addresses is for every page, as any page can have it from elsewhere. What comes from a private
/// address is for pages of hosts that `allow` names: any other page would read the local network through the proxy.
package enum CrossOrigin: Sendable, Equatable {
    case everyone
    /// For the page of that origin, and others get another answer.
    case only(String)
    case nobody

    /// - Parameters:
    ///   - origin: the request's `Origin`.
    ///   - isPublic: whether the media came from a public address.
    package init(origin: String?, isPublic: Bool, policy: AddressPolicy) {
        guard !isPublic else {
            self = .everyone
            return
        }
        // `null` is any sandboxed page.
        guard let origin, let page = try? OriginURL(url: origin), origin == page.origin, policy.names(page.host) else {
            self = .nobody
            return
        }
        self = .only(origin)
    }

    package var fields: FieldLines {
        switch self {
        case .everyone: Self.lines(("Access-Control-Allow-Origin", "*"), Self.exposed)
        case .only(let origin): Self.lines(("Access-Control-Allow-Origin", origin), Self.exposed, ("Vary", "Origin"))
        // RFC 9110 §12.5.5: a browser's cache must not give this answer to a page that may read it.
        case .nobody: Self.lines(("Vary", "Origin"))
        }
    }

    private static let exposed = ("Access-Control-Expose-Headers", "Accept-Ranges, Age, Cache-Status, Content-Length, Content-Range, ETag")

    /// What a browser is answered that asks before it sends a request (§3.2.2): who asks, and for what, is decided by the request itself.
    /// - Parameter request: the fields of an OPTIONS request; nil where it is no such question.
    package static func preflight(_ request: FieldLines) -> FieldLines? {
        guard request["Access-Control-Request-Method"] != nil else { return nil }
        var fields = lines(
            ("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
            ("Access-Control-Allow-Headers", names(request.combined("Access-Control-Request-Headers")) ?? usual), ("Access-Control-Max-Age", "86400"),
            ("Vary", "Access-Control-Request-Headers, Access-Control-Request-Private-Network"))
        // Private Network Access: a page of a public site asks something of this machine.
        if request["Access-Control-Request-Private-Network"] == "true" { fields.append("Access-Control-Allow-Private-Network", "true") }
        return fields
    }

    /// What players send.
    private static let usual = "Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control"

    /// - Returns: nil where it is no list of names.
    private static func names(_ field: String?) -> String? {
        guard let field else { return nil }
        let names = field.utf8.split(separator: ASCII.comma).map { ASCII.trimmed($0) }.filter { !$0.isEmpty }
        guard !names.isEmpty, names.allSatisfy({ $0.allSatisfy(ASCII.isToken) }) else { return nil }
        return names.map { String(Substring($0)) }.joined(separator: ", ")
    }

    private static func lines(_ lines: (String, String)...) -> FieldLines {
        FieldLines(lines.map { .init(name: $0.0, value: $0.1) })
    }
}

extension OriginURL {
    /// As browsers write it in `Origin` (RFC 6454 §6.2).
    fileprivate var origin: String { scheme.rawValue + "://" + authority }
}
