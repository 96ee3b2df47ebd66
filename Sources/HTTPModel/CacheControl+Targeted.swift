import RawStructuredFieldValues

extension CacheControl {
    /// The directives of a targeted field, such as `CDN-Cache-Control`: a dictionary of structured field values (RFC
    /// 9213 §2.1, RFC 8941 §3.2).
    /// - Parameter field: all field lines, joined by commas.
    /// - Returns: nil if it is empty or malformed, so that the next field counts.
    package init?(targeted field: String) {
        guard field.utf8.count <= Self.longestTargeted else { return nil }
        var parser = StructuredFieldValueParser(Array(field.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        var isEmpty = true
        self.init(parsing: nil)
        for (name, member) in members {
            isEmpty = false
            // Parameters mean nothing here.
            guard case .item(let item) = member else {
                note(name, "")
                continue
            }
            note(name, item.rfc9651BareItem)
        }
        if isEmpty { return nil }
    }

    /// In bytes. A longer field counts as malformed: the time to parse one grows with the square of its members.
    private static let longestTargeted = 1024

    private mutating func note(_ name: String, _ value: RFC9651BareItem) {
        switch value {
        case .bool(true): note(name, nil)
        case .bool(false): break
        case .integer(let number): note(name, String(number))
        // RFC 9213 §2.1: numbers are integers, lists of names are strings.
        case .string(let text), .token(let text): note(name, text.utf8.allSatisfy(ASCII.isDigit) ? "" : text)
        case .decimal, .undecodedByteSequence, .date, .displayString: note(name, "")
        }
    }
}
