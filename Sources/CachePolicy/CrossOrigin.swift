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

    /// What a browser is answered that asks before it sends a request (§3.2.2). The pages that may send one are those that may read the answer,
    /// as far as that is known before anything is asked of the origin.
    /// - Parameters:
    ///   - request: the fields of an OPTIONS request; nil where it is no such question.
    ///   - host: what the target names.
    ///   - isOpen: whether the origin is asked without anything that a rule adds.
    package static func preflight(_ request: FieldLines, host: String, isOpen: Bool, policy: AddressPolicy) -> FieldLines? {
        guard request["Access-Control-Request-Method"] != nil else { return nil }
        let isPublic = isOpen && !policy.names(host) && IPAddress(host)?.isPublic != false
        var fields = lines(("Vary", "Origin, Access-Control-Request-Private-Network"))
        switch CrossOrigin(origin: request["Origin"], isPublic: isPublic, policy: policy) {
        case .everyone: fields.append("Access-Control-Allow-Origin", "*")
        case .only(let origin): fields.append("Access-Control-Allow-Origin", origin)
        case .nobody: return fields
        }
        fields.append("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
        fields.append("Access-Control-Allow-Headers", usual)
        fields.append("Access-Control-Max-Age", "86400")
        // Private Network Access: a page of a public site asks something of this machine.
        if request["Access-Control-Request-Private-Network"] == "true" { fields.append("Access-Control-Allow-Private-Network", "true") }
        return fields
    }

    /// What players send. Others could mean anything to an origin, to which the request does not come from the page.
    private static let usual = "Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control, Accept, Authorization"

    /// Whether a page of another site sends a request, as far as browsers tell. Programs that are none send neither field.
    package static func isForeign(_ request: RequestHead) -> Bool {
        if request.value(of: "Sec-Fetch-Site") == "cross-site" { return true }
        guard let origin = request.value(of: "Origin") else { return false }
        // `Host` is known to be the proxy's own. The scheme is not: TLS may end before the proxy.
        guard let page = try? OriginURL(url: origin), let host = request.value(of: "Host") else { return true }
        return !ASCII.equalIgnoringCase(page.authority, host)
    }

    private static func lines(_ lines: (String, String)...) -> FieldLines {
        FieldLines(lines.map { .init(name: $0.0, value: $0.1) })
    }
}

extension OriginURL {
    /// As browsers write it in `Origin` (RFC 6454 §6.2).
    fileprivate var origin: String { scheme.rawValue + "://" + authority }
}
