import HTTPModel

/// Whether a final response to GET that is not media is stored (RFC 9111 §3), and for how long it is reused: redirects,
/// errors, 204. With its body, it has to be short.
package enum ShortStoring {
    /// Bytes of a body.
    package static let longestBody: Int64 = 64 << 10

    /// - Parameters:
    ///   - length: of the body; nil if unknown.
    package static func isStorable(
        status: Int, fields: HeaderFields, length: Int64?, _ freshness: Freshness, _ request: Storing.Request,
        _ resolvedRule: ResolvedRule
    ) -> Bool {
        guard isKind(status), length ?? 0 <= longestBody else { return false }
        // §5.2.2.3: it understands the statuses that RFC 9110 defines.
        let directives = ResponseDirectives(fields, resolvedRule.terms)
        guard !directives.stated.mustUnderstand || isUnderstood(status) else { return false }
        // What the origin and the client say about storing holds for every status.
        let storing = Storing.decide(
            status: 200, fields: fields, total: length, request, expectsMedia: false, resolvedRule)
        guard storing == .store else { return false }
        // The resolver may find the media elsewhere the next time.
        guard resolvedRule.resolver == nil else { return false }
        return freshness.isFresh && !freshness.isValidatedEachTime
            && isReusable(status: status, freshness, resolvedRule)
    }

    /// Whether a stored response may still be used under the rules that hold now, if its freshness permits.
    package static func isReusable(status: Int, _ freshness: Freshness, _ resolvedRule: ResolvedRule) -> Bool {
        guard !resolvedRule.bypasses else { return false }
        // §4.2.2: an error without a stated lifetime may be over at any time, so it takes a rule to believe it.
        // A segment of a live stream is missing until it is there.
        return freshness.source == .explicit || freshness.source == .stream
            || resolvedRule.storesHeuristically && isHeuristic(status)
    }

    /// 200 and 206 are media. The others depend on more than the URL: on conditions (304, 412), on a range (416), or,
    /// as RFC 6585 §3 to §6 says of them, on the client or the network (428, 429, 431, 511).
    private static func isKind(_ status: Int) -> Bool {
        (200...599).contains(status) && ![200, 206, 304, 412, 416, 428, 429, 431, 511].contains(status)
    }

    /// RFC 9110 §15.1
    private static func isHeuristic(_ status: Int) -> Bool {
        [203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
    }

    /// RFC 9110 §15
    private static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...206, 300...305, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }
}
