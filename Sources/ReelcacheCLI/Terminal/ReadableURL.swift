extension String {
    /// A URL in readable form: `Gr%C3%BC%C3%9Fe` as `Grüße`. Only letters, digits, their marks and symbols are decoded.
    /// ASCII, invalid UTF-8 and everything else stay encoded, so that a copied URL keeps its meaning and cannot be
    /// mistaken for another.
    package var readableURL: String {
        var (text, rest) = (Substring.UnicodeScalarView(), utf8[...])
        while let byte = rest.first {
            if byte == UInt8(ascii: "%"), let (scalar, length) = Self.encodedScalar(rest),
                Self.isReadable(scalar, after: text.last)
            {
                text.append(scalar)
                rest.removeFirst(length)
            } else {
                let raw = String(decoding: rest.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self)
                text.append(contentsOf: (byte == UInt8(ascii: "%") ? "%" : raw).unicodeScalars)
                rest.removeFirst(byte == UInt8(ascii: "%") ? 1 : raw.utf8.count)
            }
        }
        return String(Substring(text)).printable
    }

    /// The percent-encoded scalar beyond ASCII at the beginning of a text, and how many bytes of the text it occupies.
    private static func encodedScalar(_ text: Substring.UTF8View) -> (Unicode.Scalar, Int)? {
        var (bytes, rest): ([UInt8], Substring.UTF8View) = ([], text)
        while bytes.count < 4, rest.first == UInt8(ascii: "%"),
            let byte = UInt8(String(decoding: rest.dropFirst().prefix(2), as: UTF8.self), radix: 16)
        {
            guard byte >= 0x80, rest.count >= 3 else { return nil }
            bytes.append(byte)
            rest.removeFirst(3)
            if let scalars = String(validating: bytes, as: UTF8.self)?.unicodeScalars {
                return scalars.first.map { ($0, bytes.count * 3) }
            }
        }
        return nil
    }

    private static func isReadable(_ scalar: Unicode.Scalar, after last: Unicode.Scalar?) -> Bool {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .otherLetter, .decimalNumber, .letterNumber,
            .otherNumber, .otherSymbol:
            true
        // After a slash or a dot, a mark would make that look like another character.
        case .nonspacingMark, .spacingMark:
            last.map { $0.properties.isAlphabetic || $0.properties.generalCategory == .nonspacingMark } ?? false
        default: false
        }
    }
}
