/// How an origin wants its file to be kept (RFC 6266): above all under which name.
package struct ContentDisposition: Sendable, Equatable {
    /// `attachment`, `inline` or another one, in lower case.
    package var type: String
    /// The name without any directory, decoded; nil where there is none that could be one. It may still be no good name
    /// on this machine.
    package var fileName: String?

    /// Nil where the field is none: then nothing in it can be relied upon. A parameter that cannot be read is passed
    /// over.
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
            // What ends a list that is written one semicolon too long.
            if name.isEmpty, scanner.isAtEnd || scanner.rest.first == Self.semicolon { continue }
            guard !name.isEmpty, scanner.take(UInt8(ascii: "=")), let value = Self.takeValue(&scanner) else {
                return nil
            }
            // Of repeated ones the first counts.
            switch name {
            case "filename": plain = plain ?? value
            case "filename*": extended = extended ?? Self.decoded(value)
            default: break
            }
        }
        guard scanner.isAtEnd else { return nil }
        // RFC 6266 §4.3: the extended one is preferred, wherever it stands.
        fileName = extended.flatMap(Self.name) ?? plain.flatMap(Self.name)
    }

    private static let semicolon = UInt8(ascii: ";")

    /// A quoted string, or what stands before the next semicolon: origins write names with spaces without quotes, and
    /// there is one way only to understand that.
    private static func takeValue(_ scanner: inout FieldScanner) -> String? {
        scanner.skipOptionalSpace()
        guard scanner.rest.first == ASCII.quote else {
            return String(Substring(ASCII.trimmed(scanner.take { $0 != semicolon })))
        }
        defer { scanner.skipOptionalSpace() }
        return scanner.takeQuotedString()
    }

    /// `UTF-8'en'na%C3%AFve.mp4` (RFC 8187 §3.2); nil for other character sets, and for what is not well-formed.
    private static func decoded(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].allSatisfy(ASCII.isFieldContent), let bytes = PercentEncoding.decoded(parts[2])
        else { return nil }
        switch ASCII.lowercased(Substring(parts[0])) {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        // Each byte is the number of its character.
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }

    /// RFC 6266 §4.3: of a path only the last part, whatever separates its parts where the origin runs.
    private static func name(_ text: String) -> String? {
        let last = text.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? ""
        // Whoever makes a file of it would have the part before a NUL for its name.
        return last.isEmpty || last == "." || last == ".." || last.utf8.contains(0) ? nil : last
    }
}
