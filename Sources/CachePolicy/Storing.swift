import HTTPModel

/// Whether a response to GET may be stored (RFC 9111 §3).
package enum Storing: Sendable, Equatable {
    case store
    case pass(Reason)

    /// Why not, as stated in `Cache-Status`.
    package enum Reason: String, Sendable {
        /// Neither a whole 200 nor a part of one.
        case status
        case noStore = "no-store"
        /// It is for one user, and the cache is shared (§5.2.2.7).
        case forOneUser = "private"
        /// Credentials opened it, and nothing allows a shared cache to store it (§3.5).
        case authorization
        /// It sets a cookie for its client, and the cache is shared.
        case setCookie = "set-cookie"
        /// The request forbids it (§5.2.1.5).
        case requestNoStore = "request-no-store"
        case varyAny = "vary"
        case encoded
        case tooLong = "max-object"
        /// A web page in place of media (`StrayPage`).
        case page
        /// The fields that must be stored with it are too long.
        case fields
        case rule
    }

    /// What the request has to do with it.
    package struct Request {
        let directives: RequestDirectives
        /// Whether it had credentials of its client's own (`Authorization`).
        let isAuthorized: Bool
        /// Whether the client takes the cookies that the response sets.
        let passesCookies: Bool
        /// Whether a redirect that led to the response has set one that its client takes.
        let setsCookies: Bool

        package init(
            _ directives: RequestDirectives, isAuthorized: Bool = false, passesCookies: Bool = false,
            setsCookies: Bool = false
        ) {
            (self.directives, self.isAuthorized) = (directives, isAuthorized)
            (self.passesCookies, self.setsCookies) = (passesCookies, setsCookies)
        }
    }

    /// - Parameters:
    ///   - fields: the fields of the response.
    ///   - total: the length of the whole resource, if known.
    ///   - expectsMedia: whether media was requested.
    ///   - isUnreadable: whether it is a playlist or feed in a coding that cannot be decoded here.
    package static func decide(
        status: Int, fields: HeaderFields, total: Int64?, _ request: Request, expectsMedia: Bool,
        isUnreadable: Bool = false, _ resolvedRule: ResolvedRule
    ) -> Storing {
        if resolvedRule.bypasses { return .pass(.rule) }
        // §3: this cache understands only the final status codes of media. An origin's errors are never stored,
        // whatever their lifetime.
        guard status == 200 || status == 206 else { return .pass(.status) }
        let directives = ResponseDirectives(fields, resolvedRule.terms), response = directives.stated
        // §5.2.2.5: even if the directive has arguments, or other directives contradict it. §5.2.2.3: together with
        // `must-understand`, it is meant for caches that do not know the status. `Set-Cookie` forbids nothing (§7.3)
        // and is not stored.
        if response.noStore && !response.mustUnderstand && !resolvedRule.ignoresNoStore { return .pass(.noStore) }
        if request.directives.control.noStore && !resolvedRule.ignoresNoStore { return .pass(.requestNoStore) }
        // §5.2.2.7: a shared cache must not store it; with field names, it stores the rest (`withoutPrivate`).
        if directives.isForOneUser { return .pass(.forOneUser) }
        // §3.5. Credentials that a rule sends are for all who use the proxy.
        if request.isAuthorized, resolvedRule.terms.kind == .shared, !directives.sharesWhatAuthorizationOpened {
            return .pass(.authorization)
        }
        // §7.3 lets a cache store it, but what begins a session may be meant for its client alone.
        if request.passesCookies, resolvedRule.terms.kind == .shared, request.setsCookies || fields["Set-Cookie"] != nil
        {
            return .pass(.setCookie)
        }
        // §4.1: no request would ever match it.
        if Variant.names(in: fields) == nil { return .pass(.varyAny) }
        // RFC 9110 §8.4: ranges count bytes of the encoded form, which may differ in another answer. So it is stored as
        // it came, if it comes as a whole.
        guard ContentEncoding.isUncoded(fields) || status == 200 && !isUnreadable else { return .pass(.encoded) }
        if expectsMedia, !resolvedRule.storesPages, StrayPage.isPage(fields) { return .pass(.page) }
        guard fields.canBeKept else { return .pass(.fields) }
        if let most = resolvedRule.largestStored, let total, total > most { return .pass(.tooLong) }
        return .store
    }
}
