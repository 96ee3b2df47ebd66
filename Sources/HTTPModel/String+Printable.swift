extension String {
    /// The text on one line, without characters that a terminal obeys or that reverse the order of the following
    /// text: text from an origin, a file or an argument is shown, not executed.
    package var printable: String {
        unicodeScalars.reduce(into: "") { $0 += Self.isObeyed($1) ? $1.escaped(asASCII: true) : Swift.String($1) }
    }

    /// The same of the beginning, at most so many scalars long. Characters would be no limit: a single one may have any
    /// number of combining marks.
    /// - Parameter keepsJoiners: whether ZWNJ and ZWJ stay, for JSON: they belong to words and emoji.
    package func printable(upTo count: Int, keepsJoiners: Bool = false) -> String {
        beginning(count).unicodeScalars.reduce(into: "") {
            let isKept = keepsJoiners && ($1 == "\u{200C}" || $1 == "\u{200D}")
            $0 += Self.isObeyed($1) && !isKept ? $1.escaped(asASCII: true) : Swift.String($1)
        }.beginning(count)
    }

    /// The first scalars.
    package func beginning(_ count: Int) -> String { String(UnicodeScalarView(unicodeScalars.prefix(count))) }

    /// Control characters (C0 and C1), format characters such as U+202E, and line separators.
    private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

extension Unicode.Scalar {
    /// Whether logs and JSON escape it: a terminal obeys it (C0, DEL, C1), or it ends a line (U+2028, U+2029), or turns
    /// the following text around (U+202A to U+202E, U+2066 to U+2069).
    package var isEscapedInLines: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// Its escape in JSON (RFC 8259 §7), if it is below U+10000.
    package var escapedAsJSON: String {
        let digits = String(value, radix: 16)
        return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
