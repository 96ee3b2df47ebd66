/// How an origin wants its file to be saved (RFC 6266), above all under which name.
package struct ContentDisposition: Sendable, Equatable {
    /// `attachment`, `inline` or another type, in lower case.
    package var type: String
    /// The decoded name without any directory; nil if no parameter holds a possible name. It may still be
    /// unsuitable on this machine.
    package var fileName: String?

    /// Nil if the field is malformed: then nothing in it is reliable. Unreadable parameters are skipped.
    package init?(parsing field: String) {
        var scanner = FieldScanner(field)
        scanner.skipOptionalSpace()
        type = ASCII.lowercased(Substring(scanner.take(while: ASCII.isToken)))
        var plain: String?, extended: String?
        scanner.skipOptionalSpace()
        guard !type.isEmpty, scanner.isAtEnd || scanner.rest.first == Self.semicolon else { return nil }
        while scanner.take(Self.semicolon) {
            scanner.skipOptionalSpace()
            let name = ASCII.lowercased(Substring(scanner.take(while: ASCII.isToken)))
            scanner.skipOptionalSpace()
            // A list may end with one semicolon too many.
            if name.isEmpty, scanner.isAtEnd || scanner.rest.first == Self.semicolon { continue }
            guard !name.isEmpty, scanner.take(UInt8(ascii: "=")), let value = Self.takeValue(&scanner) else {
                return nil
            }
            // Of repeated parameters, the first counts.
            switch name {
            case "filename": plain = plain ?? value
            case "filename*": extended = extended ?? Self.decoded(value)
            default: break
            }
        }
        guard scanner.isAtEnd else { return nil }
        // RFC 6266 §4.3: the extended parameter is preferred, wherever it stands.
        fileName = extended.flatMap(Self.name) ?? plain.flatMap(Self.name)
    }

    /// The value of a field that lets a file be saved under a name, but does not ask for that (RFC 6266 §4.3, RFC 8187).
    package static func inline(fileName: String) -> String {
        "inline; filename*=UTF-8''" + PercentEncoding.encodingReserved(fileName)
    }

    private static let semicolon = UInt8(ascii: ";")

    /// A quoted string, or the text up to the next semicolon: origins write names with spaces without quotes, and
    /// that can be understood in only one way.
    private static func takeValue(_ scanner: inout FieldScanner) -> String? {
        scanner.skipOptionalSpace()
        guard scanner.rest.first == ASCII.quote else {
            return String(Substring(ASCII.trimmed(scanner.take { $0 != semicolon })))
        }
        defer { scanner.skipOptionalSpace() }
        return scanner.takeQuotedString()
    }

    /// Decodes `UTF-8'en'na%C3%AFve.mp4` (RFC 8187 §3.2); nil for other character sets, and for malformed values.
    private static func decoded(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].allSatisfy(ASCII.isFieldContent), let bytes = PercentEncoding.decoded(parts[2])
        else { return nil }
        switch ASCII.lowercased(Substring(parts[0])) {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        // Each byte is the code point of its character.
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }

    /// RFC 6266 §4.3: only the last part of a path, whichever separator the origin's system uses.
    private static func name(_ text: String) -> String? {
        let last = text.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? ""
        // A file created under a name with a NUL would get only the part before it.
        return last.isEmpty || last == "." || last == ".." || last.utf8.contains(0) ? nil : last
    }
}
