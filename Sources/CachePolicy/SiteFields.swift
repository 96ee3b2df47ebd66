import HTTPModel

/// Fields by which origins and browsers speak of a site as a whole. In path form every origin would speak for the proxy, and for all
/// others behind it: there these fields go neither way.
package enum SiteFields {
    /// Whether a response's field says what browsers do with all of a site, or who may read it.
    package static func isOfOrigin(_ name: String) -> Bool {
        let name = ASCII.lowercased(name)
        return ofOrigins.contains(name) || name.hasPrefix("access-control-")
    }

    private static let ofOrigins: Set<String> = [
        "alt-svc", "clear-site-data", "content-security-policy", "content-security-policy-report-only", "expect-ct", "nel", "public-key-pins",
        "public-key-pins-report-only", "refresh", "report-to", "reporting-endpoints", "service-worker-allowed", "set-cookie", "set-cookie2",
        "strict-transport-security", "x-content-type-options",
    ]

    /// Whether a request's field tells of the page that asks, by the proxy's name, or of how the proxy was reached, or asks for another
    /// method or URL than the request's own.
    package static func isOfClient(_ name: String) -> Bool {
        let name = ASCII.lowercased(name)
        return ofClients.contains(name) || name.hasPrefix("x-forwarded-") || name.hasPrefix("x-http-method")
    }

    private static let ofClients: Set<String> = ["forwarded", "origin", "referer", "x-method-override", "x-original-url", "x-rewrite-url"]

    /// What the proxy says in their place, in path form. A page, an image with scripts or a script of any origin would otherwise run as one of
    /// the proxy's own, and read what private media and statistics it has.
    package static func inPathForm(readableBy pages: CrossOrigin) -> FieldLines {
        FieldLines([.init(name: "Content-Security-Policy", value: "sandbox"), .init(name: "X-Content-Type-Options", value: "nosniff")] + pages.fields.lines)
    }
}

extension ProxyPolicy {
    /// Whether all that the proxy serves is of one origin. Only then are a browser's cookies for the proxy's host that origin's.
    package var isOneSite: Bool {
        guard !servesAnyOrigin, let first = mounts.first?.origin else { return false }
        return mounts.allSatisfy { ($0.origin.scheme, $0.origin.host, $0.origin.port) == (first.scheme, first.host, first.port) }
    }
}
