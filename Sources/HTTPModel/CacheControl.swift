/// The directives of `Cache-Control` that matter to a private cache (RFC 9111 §5.2, RFC 5861, RFC 8246). Times are
/// seconds.
package struct CacheControl: Sendable, Equatable {
    package var noStore = false
    package var noCache = false
    package var mustRevalidate = false
    package var isPrivate = false
    package var immutable = false
    package var onlyIfCached = false
    package var isPublic = false
    package var mustUnderstand = false
    package var maxAge: Int64?
    package var sMaxAge: Int64?
    package var staleIfError: Int64?
    package var staleWhileRevalidate: Int64?
    /// Of a request: how stale a response may be; `Int64.max` without a number (RFC 9111 §5.2.1.2).
    package var maxStale: Int64?
    /// Of a request: for how long it has to be fresh yet (RFC 9111 §5.2.1.3).
    package var minFresh: Int64?

    /// - Parameter field: all field lines, joined by commas; nil where there is none. Unknown directives are passed
    ///   over.
    package init(parsing field: String?) {
        guard let field else { return }
        var scanner = FieldScanner(field)
        while !scanner.isAtEnd {
            scanner.skipOptionalSpace()
            let name = ASCII.lowercased(Substring(scanner.take(while: ASCII.isToken)))
            note(name, Self.takeArgument(&scanner))
            scanner.skipElement()
        }
    }

    /// RFC 9111 §5.2: a token or a quoted string, whichever the directive's definition says; nil where the directive
    /// has none. What stands there instead, such as a space before the "=", counts as an argument that says nothing.
    private static func takeArgument(_ scanner: inout FieldScanner) -> String? {
        if scanner.take(UInt8(ascii: "=")) {
            return scanner.takeQuotedString() ?? String(Substring(scanner.take(while: ASCII.isToken)))
        }
        scanner.skipOptionalSpace()
        return scanner.isAtEnd || scanner.rest.first == ASCII.comma ? nil : ""
    }

    /// `no-cache` and `private` with names of fields are taken as if they had none: stricter, and allowed (RFC 9111
    /// §5.2.2.4).
    private mutating func note(_ name: String, _ argument: String?) {
        switch name {
        case "no-store": noStore = true
        case "no-cache": noCache = true
        case "must-revalidate": mustRevalidate = true
        case "private": isPrivate = true
        case "immutable": immutable = true
        case "only-if-cached": onlyIfCached = true
        case "public": isPublic = true
        case "must-understand": mustUnderstand = true
        // Without a number: however stale it is.
        case "max-stale": Self.note(argument ?? String(Int64.max), in: &maxStale)
        // Of this one the greatest number is the strictest, and one that is no number asks for nothing.
        case "min-fresh":
            minFresh = argument.flatMap { ASCII.saturatingDecimal($0.utf8) }.map { max($0, minFresh ?? 0) } ?? minFresh
        case "max-age": Self.note(argument, in: &maxAge)
        case "s-maxage": Self.note(argument, in: &sMaxAge)
        case "stale-if-error": Self.note(argument, in: &staleIfError)
        case "stale-while-revalidate": Self.note(argument, in: &staleWhileRevalidate)
        default: break
        }
    }

    /// RFC 9111 §4.2.1: of repeated directives the strictest counts, and one that is no number of seconds counts as 0,
    /// so that what it says is stale. A number too great to hold means "long enough" (§1.2.2).
    private static func note(_ argument: String?, in seconds: inout Int64?) {
        let stated = argument.flatMap { ASCII.saturatingDecimal($0.utf8) } ?? 0
        seconds = min(seconds ?? stated, stated)
    }
}
