import HTTPModel

/// Which pages' scripts may read what the proxy answers (CORS: Fetch standard §3.2).
///
/// In path form a browser takes the proxy for the media's origin, and what the origin itself says of other sites means
/// nothing there. Then the proxy decides:
///
/// | | media, playlists, subtitles, keys | all else |
/// |---|---|---|
/// | from public addresses | every page, as any page can have them from elsewhere | pages that `web_origins` lists |
/// | from private addresses, or with fields that a rule adds | these, and pages of hosts that `allow` names | the same |
///
/// Else any page would read the local network through the proxy, and sites that know this user by address.
package enum CrossOrigin: Sendable, Equatable {
    case everyone
    /// For the page of that origin, and others get another answer.
    /// - Parameter showsCache: whether it learns what was cached.
    case only(String, showsCache: Bool)
    /// - Parameter isPrivate: whether pages of other sites may not even embed it.
    case nobody(isPrivate: Bool)

    /// - Parameters:
    ///   - isPublic: whether the response came from a public address, and anybody could have the same.
    ///   - isMedia: whether it is media, a playlist, subtitles or a key.
    ///   - policy: looked at only for pages of other sites.
    package init(_ requester: Requester, isPublic: Bool, isMedia: Bool, policy: @autoclosure () -> AddressPolicy) {
        switch requester {
        case .trusted(let origin): self = .only(origin, showsCache: true)
        case _ where isPublic: self = isMedia ? .everyone : .nobody(isPrivate: false)
        case .own: self = .nobody(isPrivate: true)
        case .foreign(let origin):
            // `null` is any sandboxed page.
            guard let origin, let page = try? OriginURL(url: origin), origin == page.origin, policy().names(page.host)
            else {
                self = .nobody(isPrivate: true)
                return
            }
            self = .only(origin, showsCache: false)
        }
    }

    package var fields: HeaderFields {
        switch self {
        case .everyone:
            Self.lines(("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", Self.exposed))
        case .only(let origin, let showsCache):
            Self.lines(
                ("Access-Control-Allow-Origin", origin),
                ("Access-Control-Expose-Headers", Self.exposed + (showsCache ? ", Age, Cache-Status" : "")),
                ("Vary", "Origin"))
        // RFC 9110 §12.5.5: a browser's cache must not give this answer to a page that may read it.
        case .nobody(isPrivate: false): Self.lines(("Vary", "Origin"))
        case .nobody(isPrivate: true): Self.lines(("Cross-Origin-Resource-Policy", "same-origin"), ("Vary", "Origin"))
        }
    }

    private static let exposed = "Accept-Ranges, Content-Length, Content-Range, ETag"

    /// What a browser is answered that asks before it sends a request (§3.2.2). The pages that may send one are those
    /// that may read the answer, as far as that is known before anything is asked of the origin.
    /// - Parameters:
    ///   - request: an OPTIONS request.
    ///   - host: what the target names.
    ///   - isOpen: whether the origin is asked without anything that a rule adds.
    /// - Returns: nil where it is no such question.
    package static func preflight(
        _ request: RequestHead, host: String, isOpen: Bool, policy: AddressPolicy, _ trusted: WebOrigins
    ) -> HeaderFields? {
        guard request.value(of: "Access-Control-Request-Method") != nil else { return nil }
        let isPublic = isOpen && !policy.names(host) && IPAddress(host).map(policy.isPublic) != false
        let requester = Requester(request, trusted)
        var fields = lines(("Vary", "Origin, Access-Control-Request-Private-Network"))
        var headers = usual
        switch CrossOrigin(requester, isPublic: isPublic, isMedia: true, policy: policy) {
        case .everyone: fields.append("Access-Control-Allow-Origin", "*")
        case .only(let origin, let showsCache):
            fields.append("Access-Control-Allow-Origin", origin)
            // Others have no reason to ask the cache alone.
            if showsCache { headers += ", Cache-Control" }
        case .nobody: return fields
        }
        fields.append("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
        fields.append("Access-Control-Allow-Headers", headers)
        fields.append("Access-Control-Max-Age", "86400")
        // Private Network Access: a page of a public site asks something of this machine.
        if case .trusted = requester, request.value(of: "Access-Control-Request-Private-Network") == "true" {
            fields.append("Access-Control-Allow-Private-Network", "true")
        }
        return fields
    }

    /// What players send. Others could mean anything to an origin, to which the request does not come from the page.
    private static let usual = "Range, If-Range, If-None-Match, If-Modified-Since, Accept, Authorization"

    private static func lines(_ lines: (String, String)...) -> HeaderFields {
        HeaderFields(lines.map { .init(name: $0.0, value: $0.1) })
    }
}
