import HTTPModel

/// A header field that a rule sends to an origin.
package enum ConfiguredField {
    /// - Throws: where the field is none, or is not for people to set.
    package static func check(name: String, value: String) throws(RuleError) {
        guard !name.isEmpty, name.utf8.allSatisfy(ASCII.isToken) else {
            throw RuleError("'\(name)' is not a header field name; write it like Referer")
        }
        guard !HeaderFields.hopByHop.contains(name) else {
            throw RuleError("\(name) is about one connection, and not for the origin; remove it")
        }
        guard !own.contains(name) else { throw RuleError("the proxy writes \(name) itself; remove it") }
        guard !value.isEmpty else { throw RuleError("\(name) has no value; write one, or remove it") }
        guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 || $0 == ASCII.tab }), value.first != " ", value.last != " "
        else {
            throw RuleError(
                "the value of \(name) holds what no field may; write it in printable ASCII on one line, without spaces at its ends"
            )
        }
    }

    /// Which bytes are asked for, under which condition and in which encoding, is what the cache lives by; by whom a
    /// request has passed tells loops.
    private static let own: FieldNames = [
        "accept-encoding", "content-length", "expect", "host", "if-match", "if-modified-since", "if-none-match",
        "if-range", "if-unmodified-since",
        "max-forwards", "range", "via",
    ]
}
