extension String {
    /// The text on one line, without characters that a terminal obeys or that reverse the order of the following
    /// text: text from an origin, a file or an argument is shown, not executed.
    package var printable: String {
        unicodeScalars.reduce(into: "") { $0 += Self.isObeyed($1) ? $1.escaped(asASCII: true) : Swift.String($1) }
    }

    /// The same for what is written as JSON: joiners (ZWNJ and ZWJ) stay, as they belong to words and emoji.
    package func printableWithJoiners(upTo count: Int) -> String {
        beginning(count).unicodeScalars.reduce(into: "") {
            let isJoiner = $1 == "\u{200C}" || $1 == "\u{200D}"
            $0 += Self.isObeyed($1) && !isJoiner ? $1.escaped(asASCII: true) : Swift.String($1)
        }.beginning(count)
    }

    /// The same of the beginning, at most so many scalars long. Characters would be no limit: a single one may have any
    /// number of combining marks.
    package func printable(upTo count: Int) -> String { beginning(count).printable.beginning(count) }

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
