import HTTPModel

/// How long an origin asks to be left alone (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// - Parameter now: seconds since 1970.
    /// - Returns: seconds, never negative; nil if the field is neither a number nor a date.
    package static func seconds(_ field: String?, now: Int64) -> Int64? {
        guard let field else { return nil }
        if let seconds = ASCII.saturatingDecimal(ASCII.trimmed(field.utf8)) { return seconds }
        return HTTPDate.parse(field).map { max(0, $0 -| now) }
    }
}
