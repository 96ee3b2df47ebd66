/// Percent-encoding of URLs (RFC 3986 §2.1 and §6.2.2), on bytes.
@usableFromInline
package enum PercentEncoding {
    /// Encodes bytes outside of ASCII, and nothing else.
    package static func encodingNonASCII(_ bytes: some Collection<UInt8>) -> String {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count + 16)
        for byte in bytes {
            if byte < 0x80 { encoded.append(byte) } else { append(byte, to: &encoded) }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Encodes spaces and bytes outside of ASCII.
    package static func encodingSpaces(_ bytes: some Collection<UInt8>) -> String {
        encodingNonASCII(bytes).replacing(" ", with: "%20")
    }

    /// The normalised spelling: digits in upper case, and characters that need no encoding decoded (RFC 3986
    /// §6.2.2).
    ///
    /// If any percent sign does not begin an encoded byte, the whole text stays as it is: decoding the characters
    /// after such a sign could complete it, and `%%411` would mean the same as `%A1`.
    package static func normalized(_ text: String) -> String {
        var normal: [UInt8] = []
        normal.reserveCapacity(text.utf8.count)
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                normal.append(byte)
                continue
            }
            guard let decoded = hexPair(rest) else { return text }
            rest.removeFirst(2)
            if isUnreserved(decoded) { normal.append(decoded) } else { append(decoded, to: &normal) }
        }
        return String(decoding: normal, as: UTF8.self)
    }

    /// The bytes that an encoded text stands for; nil if a percent sign does not begin an encoded byte.
    package static func decoded(_ text: Substring.UTF8View) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let byte = hexPair(rest) else { return nil }
            rest.removeFirst(2)
            decoded.append(byte)
        }
        return decoded
    }

    /// Encodes all but unreserved characters, for use as a value in a query.
    package static func encodingReserved(_ text: String) -> String {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.utf8.count + 32)
        for byte in text.utf8 {
            if isUnreserved(byte) { encoded.append(byte) } else { append(byte, to: &encoded) }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// RFC 3986 §2.3
    @inlinable package static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: ASCII.isLetter(byte) || ASCII.isDigit(byte)
        }
    }

    private static func append(_ byte: UInt8, to encoded: inout [UInt8]) {
        encoded.append(UInt8(ascii: "%"))
        encoded.append(ASCII.hexDigit(byte >> 4))
        encoded.append(ASCII.hexDigit(byte & 15))
    }

    private static func hexPair(_ bytes: Substring.UTF8View) -> UInt8? {
        let pair = bytes.prefix(2).compactMap { ASCII.hexValue($0) }
        return pair.count == 2 ? pair[0] << 4 | pair[1] : nil
    }
}
