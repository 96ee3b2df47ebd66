import HTTPModel

/// A header field that a rule sends to an origin.
package enum ConfiguredField {
    /// - Throws: if the field is invalid, or may not be configured.
    package static func check(name: String, value: String) throws(RuleError) {
        guard !name.isEmpty, name.utf8.allSatisfy(ASCII.isToken) else {
            throw RuleError("'\(name)' is not a header field name; write it like Referer")
        }
        guard !HeaderFields.hopByHop.contains(name) else {
            throw RuleError("\(name) applies to one connection and is not for the origin; remove it")
        }
        guard !own.contains(name) else { throw RuleError("the proxy writes \(name) itself; remove it") }
        guard !value.isEmpty else { throw RuleError("\(name) has no value; write one, or remove it") }
        guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 || $0 == ASCII.tab }), value.first != " ", value.last != " "
        else {
            throw RuleError(
                "the value of \(name) is not a field value; write it in printable ASCII on one line, without spaces at its ends"
            )
        }
    }

    /// Fields that the cache depends on, as they determine which bytes are requested, under which condition and in
    /// which coding; and the field that detects loops, by the proxies that a request passed.
    private static let own: FieldNames = [
        "accept-encoding", "content-length", "expect", "host", "if-match", "if-modified-since", "if-none-match",
        "if-range", "if-unmodified-since",
        "max-forwards", "range", "via",
    ]
}
