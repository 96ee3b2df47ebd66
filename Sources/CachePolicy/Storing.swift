import HTTPModel

/// Whether a response may be kept (RFC 9111 §3), for GET.
package enum Storing: Sendable, Equatable {
    case store
    case pass(Reason)

    /// Why not, as `Cache-Status` tells it.
    package enum Reason: String, Sendable {
        /// Not a whole 200, nor a part of one.
        case status
        case noStore = "no-store"
        /// The request said so (§5.2.1.5).
        case requestNoStore = "request-no-store"
        case varyAny = "vary"
        case encoded
        case tooLong = "max-object"
        /// A web page in the place of media (`StrayPage`).
        case page
        /// What would have to be kept with it is too long.
        case fields
        case rule
    }

    /// - Parameters:
    ///   - fields: of the response.
    ///   - total: the length of the whole, where it is known.
    ///   - expectsMedia: whether media was asked for.
    ///   - isCodedPlaylist: whether it is a playlist in a coding that can be taken off, and all of it comes.
    package static func decide(
        status: Int, fields: HeaderFields, total: Int64?, request: RequestDirectives, expectsMedia: Bool,
        isCodedPlaylist: Bool = false, _ resolvedRule: ResolvedRule
    ) -> Storing {
        if resolvedRule.bypasses { return .pass(.rule) }
        // §3: of final status codes this cache understands those of media. Errors of an origin are not kept, however
        // long they hold.
        guard status == 200 || status == 206 else { return .pass(.status) }
        let response = CacheControl(parsing: fields.combined("Cache-Control"))
        // §5.2.2.5: also where the directive comes with arguments, or where others contradict it. §5.2.2.3: but with
        // `must-understand` it is meant for caches that do not know the status. `private`, `s-maxage` and
        // `Authorization` bind shared caches (§3.5, §5.2.2.7, §5.2.2.10); `Set-Cookie` forbids nothing (§7.3) and is
        // not kept.
        if response.noStore && !response.mustUnderstand && !resolvedRule.ignoresNoStore { return .pass(.noStore) }
        if request.control.noStore && !resolvedRule.ignoresNoStore { return .pass(.requestNoStore) }
        // §4.1: nothing would ever match it.
        if Variant.names(in: fields) == nil { return .pass(.varyAny) }
        // RFC 9110 §8.4: ranges count bytes of the encoded form, which another answer may not share.
        guard ContentEncoding.isUncoded(fields) || isCodedPlaylist else { return .pass(.encoded) }
        if expectsMedia, !resolvedRule.storesPages, StrayPage.isPage(fields) { return .pass(.page) }
        guard fields.canBeKept else { return .pass(.fields) }
        if let most = resolvedRule.largestStored, let total, total > most { return .pass(.tooLong) }
        return .store
    }
}
