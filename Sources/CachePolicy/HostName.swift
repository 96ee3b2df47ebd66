import HTTPModel

/// The name of a host, as written in settings and URLs.
package enum HostName {
    /// The normalised spelling of a name: in lower case, and without the dot that makes it absolute.
    package static func normalized(_ host: String) -> String {
        let name = ASCII.lowercased(host)
        return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    /// Whether a text is a host name. A name whose last label is a number is a malformed address (RFC 3986 §3.2.2,
    /// WHATWG URL "ends in a number").
    package static func isOne(_ text: String) -> Bool {
        let labels = normalized(text).utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard let last = labels.last, !last.allSatisfy(ASCII.isDigit) else { return false }
        return labels.allSatisfy { !$0.isEmpty && $0.allSatisfy(isLabelCharacter) }
    }

    private static func isLabelCharacter(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}
