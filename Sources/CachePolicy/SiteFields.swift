import HTTPModel

/// Fields with which origins and browsers describe a whole site. In path form, each origin would speak for the
/// proxy, and for all other origins behind it, so these fields are removed in both directions.
package enum SiteFields {
    /// Whether a response field controls how browsers treat the whole site, or who may read the response.
    package static func isOfOrigin(_ name: String) -> Bool {
        ofOrigins.contains(name) || ASCII.begins(name, with: "access-control-")
    }

    /// These include challenges: a browser stores credentials by host and realm, and would send them to the next
    /// origin behind the proxy that names the same realm (RFC 7617 §2.2).
    private static let ofOrigins: FieldNames = [
        "alt-svc", "authentication-info", "clear-site-data", "content-security-policy",
        "content-security-policy-report-only", "expect-ct", "nel", "public-key-pins",
        "cross-origin-embedder-policy", "cross-origin-opener-policy", "cross-origin-resource-policy",
        "public-key-pins-report-only", "refresh", "report-to", "reporting-endpoints", "service-worker-allowed",
        "set-cookie", "set-cookie2",
        "strict-transport-security", "timing-allow-origin", "www-authenticate", "x-content-type-options",
    ]

    /// Whether a request field identifies the requesting page by the proxy's name, tells how the proxy was reached,
    /// or demands a method or URL other than the request's own.
    package static func isOfClient(_ name: String) -> Bool {
        ofClients.contains(name) || ASCII.begins(name, with: "x-forwarded-")
            || ASCII.begins(name, with: "x-http-method")
    }

    private static let ofClients: FieldNames = [
        "forwarded", "origin", "referer", "x-method-override", "x-original-url", "x-rewrite-url",
    ]

    /// The fields that the proxy sends instead, in path form. Otherwise a page, an image with scripts or a script
    /// of any origin would run with the proxy's origin, and read its private media and statistics. Content that
    /// cannot run is not confined, because browsers do not play sandboxed media in a tab of its own.
    package static func inPathForm(_ content: ContentSafety, readableBy pages: CrossOrigin) -> HeaderFields {
        let sandbox: [HeaderFields.Line] =
            content.isInert ? [] : [.init(name: "Content-Security-Policy", value: "sandbox")]
        return HeaderFields(sandbox + [.init(name: "X-Content-Type-Options", value: "nosniff")] + pages.fields.lines)
    }

    /// The policy that confines a page below a mount if the proxy serves other origins, too: the page works, but
    /// without the proxy's origin, so it cannot read other mounts, `/https/` or `/api`. It is added to the origin's
    /// own policy; both apply (CSP3 §8.1).
    package static let belowMount = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"
}

extension ProxyPolicy {
    /// Whether the proxy serves one origin only. Only then do a browser's cookies for the proxy's host belong to
    /// that origin.
    package var isOneSite: Bool {
        guard !servesAnyOrigin, let first = mounts.first?.origin else { return false }
        return mounts.allSatisfy {
            ($0.origin.scheme, $0.origin.host, $0.origin.port) == (first.scheme, first.host, first.port)
        }
    }
}
