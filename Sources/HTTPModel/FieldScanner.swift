/// Parses a field value from left to right, for grammars that splitting at commas cannot handle.
struct FieldScanner {
    private(set) var rest: Substring.UTF8View
    /// Whether a quoted string has no end. No other one is attempted then: each attempt would scan to the end of
    /// the field.
    private var hasOpenQuote = false

    init(_ text: String) { rest = text.utf8[...] }

    var isAtEnd: Bool { rest.isEmpty }

    /// Consumes `byte` if it is next.
    mutating func take(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest.removeFirst()
        return true
    }

    /// Consumes `text` if it is next, with exactly this case.
    mutating func take(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest.removeFirst(text.utf8.count)
        return true
    }

    mutating func take(while condition: (UInt8) -> Bool) -> Substring.UTF8View {
        let taken = rest.prefix(while: condition)
        rest = rest[taken.endIndex...]
        return taken
    }

    mutating func skipOptionalSpace() { _ = take(while: ASCII.isOptionalSpace) }

    /// Advances to the element after the next comma, or to the end.
    mutating func skipElement() {
        _ = take { $0 != ASCII.comma }
        _ = take(ASCII.comma)
    }

    /// The text inside a quoted-string, with its escapes resolved; nil, and nothing consumed, if none is next (RFC
    /// 9110 §5.6.4).
    mutating func takeQuotedString() -> String? {
        var scanner = self
        guard !hasOpenQuote, scanner.take(ASCII.quote) else { return nil }
        var text: [UInt8] = []
        while let byte = scanner.rest.popFirst() {
            if byte == ASCII.quote {
                self = scanner
                return String(decoding: text, as: UTF8.self)
            }
            guard let literal = byte == ASCII.backslash ? scanner.rest.popFirst() : byte else { break }
            text.append(literal)
        }
        hasOpenQuote = true
        return nil
    }
}
