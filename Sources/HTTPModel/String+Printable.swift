extension String {
    /// On one line, and with nothing in it that a terminal obeys or that turns the order of what follows around: what
    /// an origin, a file or an argument said is shown, not done.
    package var printable: String {
        unicodeScalars.reduce(into: "") { $0 += Self.isObeyed($1) ? $1.escaped(asASCII: true) : Swift.String($1) }
    }

    /// Control characters of both sets, format characters such as U+202E, and the separators of lines.
    private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
