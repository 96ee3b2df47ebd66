import HTTPModel

/// The pages whose scripts may read the proxy's answers (CORS: Fetch standard §3.2).
///
/// In path form, a browser takes the proxy for the media's origin, so the origin's own CORS fields mean nothing
/// there. The proxy decides instead:
///
/// | | media, playlists, subtitles, keys | all else |
/// |---|---|---|
/// | from public addresses | every page, as any page could get them elsewhere | pages that `web_origins` lists |
/// | from private addresses, or with fields added by a rule | these, and pages of hosts that `allow` names | the same |
///
/// Otherwise any page could read, through the proxy, the local network and sites that recognise this user by
/// address.
package enum CrossOrigin: Sendable, Equatable {
    case everyone
    /// The page of that origin may read the answer; other pages get another one.
    /// - Parameter showsCache: whether the page may learn what was cached.
    case only(String, showsCache: Bool)
    /// - Parameter isPrivate: whether pages of other sites may not even embed it.
    case nobody(isPrivate: Bool)

    /// - Parameters:
    ///   - isPublic: whether the response came from a public address, where anybody could get the same.
    ///   - isMedia: whether it is media, a playlist, subtitles or a key.
    ///   - policy: evaluated only for pages of other sites.
    package init(_ requester: Requester, isPublic: Bool, isMedia: Bool, policy: @autoclosure () -> AddressPolicy) {
        switch requester {
        case .trusted(let origin): self = .only(origin, showsCache: true)
        case _ where isPublic: self = isMedia ? .everyone : .nobody(isPrivate: false)
        case .own: self = .nobody(isPrivate: true)
        case .foreign(let origin):
            // `null` stands for any sandboxed page.
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
        // RFC 9110 §12.5.5: a browser's cache must not hand this answer to a page that may read the resource.
        case .nobody(isPrivate: false): Self.lines(("Vary", "Origin"))
        case .nobody(isPrivate: true): Self.lines(("Cross-Origin-Resource-Policy", "same-origin"), ("Vary", "Origin"))
        }
    }

    private static let exposed = "Accept-Ranges, Content-Length, Content-Range, ETag"

    /// The answer to a browser's preflight request (§3.2.2). A page may send a request if it may read the answer,
    /// as far as that is known before the origin is contacted.
    /// - Parameters:
    ///   - request: an OPTIONS request.
    ///   - host: the host that the target names.
    ///   - isOpen: whether the request to the origin carries nothing that a rule adds.
    /// - Returns: nil if the request is not a preflight.
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
            // Other pages have no reason to control the cache.
            if showsCache { headers += ", Cache-Control" }
        case .nobody: return fields
        }
        fields.append("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
        fields.append("Access-Control-Allow-Headers", headers)
        fields.append("Access-Control-Max-Age", "86400")
        // Private Network Access: a page of a public site sends a request to this machine.
        if case .trusted = requester, request.value(of: "Access-Control-Request-Private-Network") == "true" {
            fields.append("Access-Control-Allow-Private-Network", "true")
        }
        return fields
    }

    /// The fields that players send. Others could mean anything to an origin, which does not see that a page sent
    /// them.
    private static let usual =
        "Range, If-Range, If-None-Match, If-Modified-Since, Accept, Authorization, "
        + "CMCD-Request, CMCD-Object, CMCD-Status, CMCD-Session"

    private static func lines(_ lines: (String, String)...) -> HeaderFields {
        HeaderFields(lines.map { .init(name: $0.0, value: $0.1) })
    }
}
