/// The range of the whole representation that a body encloses (RFC 9110 §14.4).
package struct ContentRange: Sendable, Equatable {
    /// The enclosed bytes, half-open; nil in `bytes */N`, the answer to a range that cannot be satisfied.
    package var range: Range<Int64>?
    /// The length of the whole; nil for `*`, if the sender does not know it.
    package var total: Int64?

    package init(range: Range<Int64>?, total: Int64?) {
        self.range = range
        self.total = total
    }

    /// Nil for other units, for a last byte before the first, for bytes beyond the total, and for numbers beyond
    /// `ByteNumber.greatest`: such a body must not be stored (§14.4).
    package init?(parsing field: String) {
        var scanner = FieldScanner(field)
        scanner.skipOptionalSpace()
        let unit = scanner.take(while: ASCII.isToken)
        guard ASCII.equalIgnoringCase(unit, "bytes".utf8), scanner.take(ASCII.space) else { return nil }
        let text = ASCII.trimmed(scanner.rest)
        guard let slash = text.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        self.init(range: text[..<slash], total: text[text.index(after: slash)...])
    }

    private init?(range rangeText: Substring.UTF8View, total totalText: Substring.UTF8View) {
        range = Self.range(rangeText)
        total = ByteNumber.parse(totalText)
        guard range != nil || Self.isUnknown(rangeText), total != nil || Self.isUnknown(totalText) else { return nil }
        guard range != nil || total != nil else { return nil }
        if let range, let total, range.upperBound > total { return nil }
    }

    private static func isUnknown(_ text: Substring.UTF8View) -> Bool {
        text.elementsEqual(CollectionOfOne(UInt8(ascii: "*")))
    }

    private static func range(_ text: Substring.UTF8View) -> Range<Int64>? {
        let positions = text.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard positions.count == 2 else { return nil }
        guard let first = ByteNumber.parse(positions[0]), let last = ByteNumber.parse(positions[1]) else { return nil }
        return first <= last ? Range(from: first, upTo: last +| 1) : nil
    }

    /// The field's value: `bytes 0-9/100`. The range must not be empty, as an empty range cannot be stated.
    package var fieldValue: String {
        let total = total.map(String.init) ?? "*"
        guard let range else { return "bytes */\(total)" }
        precondition(!range.isEmpty, "a Content-Range cannot be empty")
        return "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)" // no trap: it is not empty
    }
}
