/// The directives of `Cache-Control`, or of a field in its place (RFC 9213), that matter to this cache (RFC 9111 §5.2,
/// RFC 5861, RFC 8246). Times are in seconds.
package struct CacheControl: Sendable, Equatable {
    package var noStore = false
    package var noCache = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var isPrivate = false
    /// The fields that only a private cache may store, in lower case (RFC 9111 §5.2.2.7).
    package var privateFields: [String] = []
    package var immutable = false
    package var onlyIfCached = false
    package var isPublic = false
    package var mustUnderstand = false
    package var maxAge: Int64?
    package var sMaxAge: Int64?
    package var staleIfError: Int64?
    package var staleWhileRevalidate: Int64?
    /// In a request: how stale a response may be; `Int64.max` without a number (RFC 9111 §5.2.1.2).
    package var maxStale: Int64?
    /// In a request: how much longer the response must be fresh (RFC 9111 §5.2.1.3).
    package var minFresh: Int64?

    /// - Parameter field: all field lines, joined by commas; nil if absent. Unknown directives are ignored.
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

    /// RFC 9111 §5.2: a token or a quoted string, whichever the directive defines; nil if the directive has no
    /// argument. Malformed text, such as a space before the "=", counts as an empty argument.
    private static func takeArgument(_ scanner: inout FieldScanner) -> String? {
        if scanner.take(UInt8(ascii: "=")) {
            return scanner.takeQuotedString() ?? String(Substring(scanner.take(while: ASCII.isToken)))
        }
        scanner.skipOptionalSpace()
        return scanner.isAtEnd || scanner.rest.first == ASCII.comma ? nil : ""
    }

    /// `no-cache` with field names is treated as if it had none, which is stricter and allowed (RFC 9111 §5.2.2.4).
    /// - Parameter argument: nil if the directive has none; empty if it has one that cannot be read.
    mutating func note(_ name: String, _ argument: String?) {
        switch name {
        case "no-store": noStore = true
        case "no-cache": noCache = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "private": notePrivate(argument)
        case "immutable": immutable = true
        case "only-if-cached": onlyIfCached = true
        case "public": isPublic = true
        case "must-understand": mustUnderstand = true
        // Without a number: however stale.
        case "max-stale": Self.note(argument ?? String(Int64.max), in: &maxStale)
        // For this directive, the greatest number is the strictest, and an invalid one demands nothing.
        case "min-fresh":
            minFresh = argument.flatMap { ASCII.saturatingDecimal($0.utf8) }.map { max($0, minFresh ?? 0) } ?? minFresh
        case "max-age": Self.note(argument, in: &maxAge)
        case "s-maxage": Self.note(argument, in: &sMaxAge)
        case "stale-if-error": Self.note(argument, in: &staleIfError)
        case "stale-while-revalidate": Self.note(argument, in: &staleWhileRevalidate)
        default: break
        }
    }

    /// RFC 9111 §5.2.2.7: with a list of field names, it is for these alone. Anything else is for the whole response,
    /// which is stricter.
    private mutating func notePrivate(_ argument: String?) {
        let names = argument?.split(separator: ",").map { ASCII.lowercased(ASCII.trimmed($0)) } ?? []
        guard !names.isEmpty, names.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isToken) }) else {
            isPrivate = true
            return
        }
        privateFields += names
    }

    /// RFC 9111 §4.2.1: of repeated directives, the strictest counts, and an invalid number of seconds counts as 0,
    /// so that the response is stale. A number too great to represent means "long enough" (§1.2.2).
    private static func note(_ argument: String?, in seconds: inout Int64?) {
        let stated = argument.flatMap { ASCII.saturatingDecimal($0.utf8) } ?? 0
        seconds = min(seconds ?? stated, stated)
    }
}
