import HTTPModel

/// Fields by which origins and browsers speak of a site as a whole. In path form every origin would speak for the
/// proxy, and for all others behind it: there these fields go neither way.
package enum SiteFields {
    /// Whether a response's field says what browsers do with all of a site, or who may read it.
    package static func isOfOrigin(_ name: String) -> Bool {
        ofOrigins.contains(name) || ASCII.begins(name, with: "access-control-")
    }

    /// Challenges are among them: a browser keeps credentials by host and realm, and would send them to the next origin
    /// behind the proxy that names the same realm (RFC 7617 §2.2).
    private static let ofOrigins: FieldNames = [
        "alt-svc", "authentication-info", "clear-site-data", "content-security-policy",
        "content-security-policy-report-only", "expect-ct", "nel", "public-key-pins",
        "cross-origin-embedder-policy", "cross-origin-opener-policy", "cross-origin-resource-policy",
        "public-key-pins-report-only", "refresh", "report-to", "reporting-endpoints", "service-worker-allowed",
        "set-cookie", "set-cookie2",
        "strict-transport-security", "timing-allow-origin", "www-authenticate", "x-content-type-options",
    ]

    /// Whether a request's field tells of the page that asks, by the proxy's name, or of how the proxy was reached, or
    /// asks for another method or URL than the request's own.
    package static func isOfClient(_ name: String) -> Bool {
        ofClients.contains(name) || ASCII.begins(name, with: "x-forwarded-")
            || ASCII.begins(name, with: "x-http-method")
    }

    private static let ofClients: FieldNames = [
        "forwarded", "origin", "referer", "x-method-override", "x-original-url", "x-rewrite-url",
    ]

    /// What the proxy says in their place, in path form. A page, an image with scripts or a script of any origin would
    /// otherwise run as one of the proxy's own, and read what private media and statistics it has. What cannot run is
    /// not confined: browsers do not play media that is in a sandbox in a tab of its own.
    package static func inPathForm(_ content: ContentSafety, readableBy pages: CrossOrigin) -> HeaderFields {
        let sandbox: [HeaderFields.Line] =
            content.isInert ? [] : [.init(name: "Content-Security-Policy", value: "sandbox")]
        return HeaderFields(sandbox + [.init(name: "X-Content-Type-Options", value: "nosniff")] + pages.fields.lines)
    }

    /// What confines a page below a mount, where the proxy serves more than that origin: it works, but not as a page of
    /// the proxy's site, and so reads neither other mounts, nor `/https/`, nor `/api`. It stands beside the origin's
    /// own policy; both hold (CSP3 §8.1).
    package static let belowMount = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"
}

extension ProxyPolicy {
    /// Whether all that the proxy serves is of one origin. Only then are a browser's cookies for the proxy's host that
    /// origin's.
    package var isOneSite: Bool {
        guard !servesAnyOrigin, let first = mounts.first?.origin else { return false }
        return mounts.allSatisfy {
            ($0.origin.scheme, $0.origin.host, $0.origin.port) == (first.scheme, first.host, first.port)
        }
    }
}
