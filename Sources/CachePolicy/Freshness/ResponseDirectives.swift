import HTTPModel

/// The cache directives of a response, as a cache of one kind reads them (RFC 9111 §5.2.2, RFC 9213 §2.2).
package struct ResponseDirectives: Sendable, Equatable {
    /// As the origin states them.
    package let stated: CacheControl
    /// As this cache obeys them: a shared one reads those that are for shared caches as the ones for all.
    package let obeyed: CacheControl
    /// The field that states them.
    package let source: String
    /// Whether they are in a field for certain caches, so that `Cache-Control` and `Expires` don't count.
    package let isTargeted: Bool
    private let kind: CacheMode

    package init(_ fields: HeaderFields, _ terms: CacheTerms) {
        kind = terms.kind
        // RFC 9213 §2.2: the first that is valid, and not empty.
        for name in terms.targetedFields {
            guard let field = fields.combined(name), let control = CacheControl(targeted: field) else { continue }
            (stated, source, isTargeted) = (control, name, true)
            obeyed = control.obeyed(by: terms.kind)
            return
        }
        (stated, source, isTargeted) = (CacheControl(parsing: fields.combined("Cache-Control")), "Cache-Control", false)
        obeyed = stated.obeyed(by: terms.kind)
    }

    // MARK: What a shared cache may store

    /// Whether the response is for one user, so that a shared cache must not store it (RFC 9111 §5.2.2.7).
    package var isForOneUser: Bool { kind == .shared && stated.isPrivate }

    /// The fields that must not be stored, in lower case (RFC 9111 §5.2.2.7).
    package var unstoredFields: [String] { kind == .shared ? stated.privateFields : [] }

    /// Whether the response to a request with `Authorization` may answer other requests. `proxy-revalidate` alone does
    /// not allow it (RFC 9111 §3.5).
    package var sharesWhatAuthorizationOpened: Bool {
        kind == .shared && (stated.isPublic || stated.sMaxAge != nil || stated.mustRevalidate)
    }

    /// Whether the origin states that the response is the same for all users, whatever their requests contained.
    package var isForEveryone: Bool { stated.isPublic || kind == .shared && stated.sMaxAge != nil }

    /// Whether a response in the cache may answer a request. It may have been stored while the cache was private, or an
    /// origin may have changed its directives with a 304.
    /// - Parameters:
    ///   - fields: its stored fields.
    ///   - variant: the request fields that selected it.
    ///   - isAuthorized: whether the request has credentials of its client's own.
    package func permitsUse(of fields: HeaderFields, _ variant: Variant, isAuthorized: @autoclosure () -> Bool) -> Bool
    {
        guard kind == .shared else { return true }
        if isForOneUser || unstoredFields.contains(where: { fields[$0] != nil }) { return false }
        return !variant.hasAuthorization || sharesWhatAuthorizationOpened || !isAuthorized()
    }

    /// The directive that forbids serving the response stale, with its field; nil if none does.
    package var ruleAgainstStale: String? {
        let word: String? =
            if stated.noCache {
                "no-cache"
            } else if stated.mustRevalidate {
                "must-revalidate"
            } else if obeyed.mustRevalidate {
                stated.proxyRevalidate ? "proxy-revalidate" : "s-maxage"
            } else {
                nil
            }
        return word.map { "\(source): \($0)" }
    }
}

extension CacheControl {
    /// The directives of a response, as a cache of one kind obeys them. A private cache ignores those for shared ones.
    package func obeyed(by kind: CacheMode) -> CacheControl {
        guard kind == .shared else { return self }
        var control = self
        // RFC 9111 §5.2.2.10: it takes precedence over max-age and Expires.
        if let sMaxAge { control.maxAge = sMaxAge }
        // §5.2.2.8; §5.2.2.10: s-maxage has the meaning of proxy-revalidate, too.
        if proxyRevalidate || sMaxAge != nil { control.mustRevalidate = true }
        return control
    }
}
