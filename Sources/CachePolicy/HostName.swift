import CIDN2
import HTTPModel

/// The name of a host, as written in settings and URLs.
package enum HostName {
    /// The normalised spelling of a name: in the letters of DNS, in lower case, and without the dot that makes it
    /// absolute.
    package static func normalized(_ host: String) -> String {
        let name = inASCII(host) ?? ASCII.lowercased(host)
        return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    /// A name in the letters of DNS and in lower case: `bücher.example` is `xn--bcher-kva.example`. By IDNA 2008
    /// (RFC 5891), after the mapping of UTS 46 that browsers apply. The result may hold any ASCII, as the name
    /// may: check it.
    /// - Returns: nil if no such name can be registered.
    package static func inASCII(_ name: String) -> String? {
        guard name.utf8.contains(where: { $0 >= 0x80 }) else { return ASCII.lowercased(name) }
        // To C, a name would end there.
        guard !name.utf8.contains(0) else { return nil }
        var ascii: UnsafeMutablePointer<UInt8>?
        let flags = Int32(IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue) // no trap: constants
        guard idn2_lookup_u8(name, &ascii, flags) == IDN2_OK.rawValue, let ascii else { return nil }
        defer { idn2_free(ascii) }
        return String(cString: ascii)
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
